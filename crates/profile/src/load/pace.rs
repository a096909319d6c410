//! Start times of connections.

use std::time::Duration;

/// Policy for the start times of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Starts a connection when one ends: as fast as the server is. Under overload, latencies look better than they
    /// are, because a waiting client sends no requests.
    Closed,
    /// Starts connections at a fixed rate, whether the server keeps up or not. Latencies count from when a connection
    /// was due, not from when it could start, so that they are accurate under overload.
    Open {
        /// Connections per second.
        per_second: f64,
    },
}

impl Pace {
    /// Returns the time after the start at which connection number `index`, from 0, is due; `None` if it starts when
    /// a slot is free.
    pub(super) fn due(self, index: u64) -> Option<Duration> {
        match self {
            Self::Closed => None,
            Self::Open { per_second } => Some(Duration::from_secs_f64(index as f64 / per_second)),
        }
    }

    /// Returns the pace of one of several threads.
    pub(super) fn shared(self, threads: usize) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Open { per_second } => Self::Open { per_second: per_second / threads as f64 },
        }
    }
}

/// Returns whether connection number `index` belongs to this share of all, spread evenly.
pub(super) fn in_share(index: u64, share: f64) -> bool {
    ((index + 1) as f64 * share).floor() > (index as f64 * share).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_is_due_by_the_clock_alone() {
        let pace = Pace::Open { per_second: 500.0 };
        assert_eq!(pace.due(0), Some(Duration::ZERO));
        assert_eq!(pace.due(1000), Some(Duration::from_secs(2)));
        assert_eq!(pace.shared(2).due(1000), Some(Duration::from_secs(4)));
        assert_eq!(Pace::Closed.due(7), None);
    }

    #[test]
    fn a_share_is_spread_evenly_and_exact() {
        for (share, expected) in [(0.0, 0), (0.25, 25), (0.5, 50), (0.9, 90), (1.0, 100)] {
            let chosen: Vec<u64> = (0..100).filter(|&index| in_share(index, share)).collect();
            assert_eq!(chosen.len(), expected, "{share}");
            let widest = chosen.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(share == 0.0 || widest as f64 <= (1.0 / share).ceil(), "{share}: a gap of {widest}");
        }
    }
}
