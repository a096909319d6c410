//! Several upstreams that share requests or connections by weight.

use super::{Upstream, Upstreams};
use crate::model::Weighted;
use std::sync::Arc;

/// Upstreams with their weights.
#[derive(Default)]
pub(crate) struct Shares {
    shares: Box<[Share]>,
    total: u64,
}

/// One of them.
pub(crate) struct Share {
    /// Which it is in the model.
    pub(crate) index: usize,
    /// `None` if there is no upstream of that name.
    pub(crate) upstream: Option<Arc<Upstream>>,
    /// The sum of the weights up to here.
    up_to: u64,
}

impl Shares {
    pub(crate) fn new(to: &[Weighted], upstreams: &Upstreams) -> Self {
        let mut total = 0;
        let share = |(index, weighted): (usize, &Weighted)| {
            total += u64::from(weighted.weight.get());
            Share { index, upstream: upstreams.get(&weighted.upstream).cloned(), up_to: total }
        };
        let shares = to.iter().enumerate().map(share).collect();
        Self { shares, total }
    }

    /// At random, by weight.
    pub(crate) fn pick(&self) -> Option<&Share> {
        match &*self.shares {
            [] => None,
            [only] => Some(only),
            several => {
                let point = fastrand::u64(..self.total);
                several.get(several.partition_point(|share| share.up_to <= point))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn requests_are_shared_by_weight() {
        let weighted =
            |weight| Weighted { weight: NonZeroU32::new(weight).expect("a weight"), ..Weighted::all("a") };
        let shares = Shares::new(&[weighted(1), weighted(7), weighted(2)], &Upstreams::new());
        let mut counts = [0_u32; 3];
        for _ in 0..100_000 {
            counts[shares.pick().expect("a share").index] += 1;
        }
        for (count, expected) in counts.into_iter().zip([10_000, 70_000, 20_000]) {
            assert!(count.abs_diff(expected) < 1_500, "{counts:?}");
        }
        assert!(Shares::default().pick().is_none());
    }
}
