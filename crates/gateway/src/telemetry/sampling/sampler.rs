//! Selection of the handshakes that are measured.

use quadrille_config::model::Sampling;
use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

thread_local! {
    static SAMPLER: RefCell<Sampler> = const { RefCell::new(Sampler { skip: 0, second: None, taken: 0 }) };
}

/// Returns whether the handshake that begins now on this thread is measured.
pub(super) fn should_sample(settings: &Sampling, now: Instant) -> bool {
    SAMPLER.with_borrow_mut(|sampler| sampler.should_sample(settings, now))
}

struct Sampler {
    /// Number of handshakes to skip before the next one.
    skip: usize,
    /// Start of the second in which `taken` were sampled.
    second: Option<Instant>,
    taken: usize,
}

impl Sampler {
    fn should_sample(&mut self, settings: &Sampling, now: Instant) -> bool {
        let others = settings.one_in.get() - 1;
        // A reload may have changed the number of handshakes to skip.
        self.skip = self.skip.min(others);
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.skip = others;
        if self.second.is_none_or(|began| now.saturating_duration_since(began) >= Duration::from_secs(1)) {
            (self.second, self.taken) = (Some(now), 0);
        }
        self.taken += 1;
        self.taken <= settings.per_second.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn settings(one_in: usize, per_second: usize) -> Sampling {
        let count = |count| NonZeroUsize::new(count).expect("a count");
        Sampling { one_in: count(one_in), per_second: count(per_second) }
    }

    fn sampler() -> Sampler {
        Sampler { skip: 0, second: None, taken: 0 }
    }

    #[test]
    fn the_first_is_taken_and_then_one_in_so_many() {
        let (mut sampler, now) = (sampler(), Instant::now());
        let taken: Vec<usize> = (0..10).filter(|_| sampler.should_sample(&settings(4, 100), now)).collect();
        assert_eq!(taken, [0, 4, 8]);
        // After a reload with a higher sampling rate.
        assert!(
            !sampler.should_sample(&settings(2, 100), now) && sampler.should_sample(&settings(2, 100), now)
        );
    }

    #[test]
    fn no_more_than_so_many_are_taken_in_a_second() {
        let (mut sampler, start) = (sampler(), Instant::now());
        let in_second = |sampler: &mut Sampler, second: u64| {
            let at = |tick| start + Duration::from_millis(second * 1000 + tick);
            (0..500).filter(|&tick| sampler.should_sample(&settings(1, 20), at(tick))).count()
        };
        assert_eq!(
            (in_second(&mut sampler, 0), in_second(&mut sampler, 1), in_second(&mut sampler, 7)),
            (20, 20, 20)
        );
    }
}
