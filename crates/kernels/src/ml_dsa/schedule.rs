//! Order of attempts: which operation has which of the eight slots in a wave.
//!
//! A signature takes 4.25 attempts on average (ML-DSA-44; 5.1 and 3.85 for the larger sets), and some take many more. A
//! slot therefore belongs to an operation for one attempt only: the slot of an operation that is done goes to the next
//! one. When operations are fewer than slots, the others make their next attempts in advance; the first accepted one
//! counts, so that the signature is the same as without.

use super::parameters::Parameters;

/// Number of attempts at once.
pub(crate) const SLOTS: usize = 8;
/// Attempts after which an operation fails, with a probability below 2^-256 (FIPS 204, appendix C, permits such a
/// bound from 814 on).
pub(super) const MAX_ATTEMPTS: usize = 1024;

/// Attempt in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Index of the operation.
    pub(super) operation: usize,
    /// Counter kappa of the first polynomial of the mask.
    pub(super) counter: u16,
}

/// Unfinished operations.
pub(super) struct Schedule {
    /// Operations in slots, with the numbers of their attempts, in the order of their arrival.
    active: Vec<(usize, usize)>,
    /// Operations that have not begun.
    waiting: std::ops::Range<usize>,
    columns: usize,
    /// Attempts in advance of an operation, when slots are free.
    ahead: usize,
}

impl Schedule {
    pub(super) fn new(parameters: &Parameters, operations: usize) -> Self {
        Self {
            active: Vec::with_capacity(SLOTS),
            waiting: 0..operations,
            columns: parameters.l,
            ahead: parameters.attempts_ahead(),
        }
    }

    /// Assigns slots for the next wave: attempts of an operation follow each other, in ascending order. Empty if all
    /// operations have been finished.
    pub(super) fn wave(&mut self) -> Vec<Attempt> {
        let free = SLOTS - self.active.len();
        self.active.extend(self.waiting.by_ref().take(free).map(|operation| (operation, 0)));
        let (operations, mut attempts) = (self.active.len(), Vec::with_capacity(SLOTS));
        let slots = SLOTS.min(operations * self.ahead);
        for (i, (operation, made)) in self.active.iter_mut().enumerate() {
            let share = slots / operations + usize::from(i < slots % operations);
            for _ in 0..share {
                let counter = (self.columns * *made) as u16;
                attempts.push(Attempt { operation: *operation, counter });
                *made += 1;
            }
        }
        attempts
    }

    /// Removes operations that are finished, and returns those that have failed by their number of attempts.
    pub(super) fn finish(&mut self, finished: impl Fn(usize) -> bool) -> bool {
        self.active.retain(|(operation, made)| !finished(*operation) && *made < MAX_ATTEMPTS);
        !self.active.is_empty() || !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ml_dsa::MlDsa;
    use std::collections::HashSet;

    /// Every attempt is made once, in order, whichever operations are finished when.
    #[test]
    fn no_attempt_is_made_twice() {
        for set in MlDsa::ALL {
            for operations in [1, 2, 3, 5, 8, 9, 40] {
                let mut schedule = Schedule::new(set.parameters(), operations);
                let (mut made, mut done) = (HashSet::new(), HashSet::new());
                let mut next = vec![0; operations];
                for round in 0.. {
                    let wave = schedule.wave();
                    assert!(!wave.is_empty() && wave.len() <= SLOTS);
                    for attempt in &wave {
                        assert!(made.insert((attempt.operation, attempt.counter)), "{attempt:?}");
                        assert_eq!(attempt.counter, next[attempt.operation]);
                        next[attempt.operation] += set.parameters().l as u16;
                        if (attempt.operation + round) % 4 == 0 {
                            done.insert(attempt.operation);
                        }
                    }
                    if !schedule.finish(|operation| done.contains(&operation)) {
                        break;
                    }
                }
                assert_eq!(done.len(), operations);
            }
        }
    }

    #[test]
    fn an_operation_without_an_accepted_attempt_ends() {
        let mut schedule = Schedule::new(MlDsa::MlDsa87.parameters(), 1);
        let mut last = 0;
        while schedule.finish(|_| false) {
            last = schedule.wave().last().expect("an attempt").counter;
        }
        assert!(usize::from(last) >= 7 * (MAX_ATTEMPTS - 1));
    }
}
