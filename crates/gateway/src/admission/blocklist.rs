//! Networks whose connections the kernel drops before they are accepted: those rejected so often that even rejecting
//! them is too expensive. Pure: takes events with their times.

use std::{net::IpAddr, time::Duration};

/// Number of rejections within a [`TICK`] from which on a network is shut out.
const OFTEN: u32 = 16;
const TICK: Duration = Duration::from_millis(100);
/// Time for which a network stays shut out after its last rejection. Some of its connections still arrive.
const HOLDS: Duration = Duration::from_millis(500);
/// Maximum number of networks; the one rejected least recently is evicted.
const MOST: usize = 32;

/// Candidate networks. Times are relative to an arbitrary epoch.
#[derive(Default)]
pub(super) struct ShutOut {
    candidates: Vec<Candidate>,
}

struct Candidate {
    network: IpAddr,
    tick: Duration,
    /// Number of rejections in the tick.
    count: u32,
    is_out: bool,
    seen: Duration,
}

impl ShutOut {
    /// Records a rejected connection of this network. Returns whether the set of shut-out networks has changed.
    pub(super) fn count_rejection(&mut self, network: IpAddr, now: Duration) -> bool {
        let known = self.candidates.iter().position(|candidate| candidate.network == network);
        let index = known.unwrap_or_else(|| self.place_for(network, now));
        let candidate = &mut self.candidates[index];
        if now.saturating_sub(candidate.tick) > TICK {
            (candidate.tick, candidate.count) = (now, 0);
        }
        candidate.seen = now;
        candidate.count += 1;
        let is_new = !candidate.is_out && candidate.count >= OFTEN;
        candidate.is_out |= is_new;
        is_new
    }

    /// Removes networks without a recent rejection. Returns whether there were any.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let before = self.networks().count();
        self.candidates.retain(|candidate| now.saturating_sub(candidate.seen) < HOLDS);
        self.networks().count() != before
    }

    /// Returns the networks that are shut out.
    pub(super) fn networks(&self) -> impl Iterator<Item = IpAddr> {
        self.candidates.iter().filter(|candidate| candidate.is_out).map(|candidate| candidate.network)
    }

    fn place_for(&mut self, network: IpAddr, now: Duration) -> usize {
        let new = Candidate { network, tick: now, count: 0, is_out: false, seen: now };
        if self.candidates.len() < MOST {
            self.candidates.push(new);
            return self.candidates.len() - 1;
        }
        let rank = |candidate: &Candidate| (candidate.is_out, candidate.seen);
        let least = self.candidates.iter().enumerate().min_by_key(|(_, candidate)| rank(candidate));
        let index = least.map_or(0, |(index, _)| index);
        self.candidates[index] = new;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn network(third: u8) -> IpAddr {
        [192, 0, third, 0].into()
    }

    #[test]
    fn only_a_flood_is_shut_out_and_only_while_it_lasts() {
        let mut shut_out = ShutOut::default();
        for tick in 0..1000 {
            assert!(!shut_out.count_rejection(network(1), at(tick * 10)), "a hundred a second");
        }
        let now = 10_000;
        let changes = (0..100).filter(|&tick| shut_out.count_rejection(network(2), at(now + tick))).count();
        assert_eq!((changes, shut_out.networks().collect::<Vec<_>>()), (1, vec![network(2)]));
        assert!(!shut_out.expire(at(now + 598)));
        assert!(shut_out.expire(at(now + 599)) && shut_out.networks().next().is_none());
    }

    #[test]
    fn however_many_flood_few_are_kept() {
        let mut shut_out = ShutOut::default();
        for third in 0..=255 {
            (0..OFTEN).for_each(|_| _ = shut_out.count_rejection(network(third), at(u64::from(third))));
            shut_out.count_rejection(IpAddr::from([198, 51, third, 0]), at(u64::from(third)));
        }
        assert!(shut_out.candidates.len() == MOST && shut_out.networks().count() >= MOST - 1);
    }
}
