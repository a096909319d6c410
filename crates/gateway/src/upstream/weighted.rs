//! Weighted distribution of requests or connections to several upstreams.

use super::cluster::{Upstream, Upstreams};
use quadrille_config::model::Weighted;
use std::sync::Arc;

/// Upstreams with their weights.
#[derive(Default)]
pub(crate) struct WeightedUpstreams {
    members: Box<[WeightedUpstream]>,
    total: u64,
}

/// An upstream with its cumulative weight.
pub(crate) struct WeightedUpstream {
    /// Index in the model.
    pub(crate) index: usize,
    /// The upstream; `None` if there is no upstream of that name.
    pub(crate) upstream: Option<Arc<Upstream>>,
    /// Sum of the weights up to and including this one.
    up_to: u64,
}

impl WeightedUpstreams {
    pub(crate) fn new(to: &[Weighted], upstreams: &Upstreams) -> Self {
        let mut total = 0;
        let member = |(index, weighted): (usize, &Weighted)| {
            total += u64::from(weighted.weight.get());
            WeightedUpstream { index, upstream: upstreams.get(&weighted.upstream).cloned(), up_to: total }
        };
        let members = to.iter().enumerate().map(member).collect();
        Self { members, total }
    }

    /// Picks an upstream at random, by weight.
    pub(crate) fn pick(&self) -> Option<&WeightedUpstream> {
        match &*self.members {
            [] => None,
            [only] => Some(only),
            several => {
                let point = fastrand::u64(..self.total);
                several.get(several.partition_point(|member| member.up_to <= point))
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
        let members = WeightedUpstreams::new(&[weighted(1), weighted(7), weighted(2)], &Upstreams::new());
        let mut counts = [0_u32; 3];
        for _ in 0..100_000 {
            counts[members.pick().expect("a member").index] += 1;
        }
        for (count, expected) in counts.into_iter().zip([10_000, 70_000, 20_000]) {
            assert!(count.abs_diff(expected) < 1_500, "{counts:?}");
        }
        assert!(WeightedUpstreams::default().pick().is_none());
    }
}
