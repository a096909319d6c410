//! Looking into a batch on its way.

use super::arithmetic::{Arithmetic, Ring};
use super::exponents::Exponents;

/// The moments of a batch at which a [`Probe`] may look at, or spoil, what the lanes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Constants and inputs are loaded.
    Loaded,
    /// The window table of both halves is complete.
    TableBuilt,
    /// In the middle of the exponentiation.
    HalfwayThrough,
    /// m1 and m2, still in Montgomery form.
    Exponentiated,
}

/// Watches a batch; production uses [`NoProbe`], the fault tests flip bits.
pub(crate) trait Probe<A: Arithmetic> {
    /// Called with the rings that are at this stage, all or one after the other; the first of them is ring number
    /// `first` of the [`LaneLayout`](super::lane_layout::LaneLayout).
    fn on_stage(&mut self, stage: Stage, first: usize, rings: &mut [Ring<A>], exponents: &mut [Exponents<A>]);
}

/// Does nothing and costs nothing.
pub(crate) struct NoProbe;

impl<A: Arithmetic> Probe<A> for NoProbe {
    fn on_stage(&mut self, _: Stage, _: usize, _: &mut [Ring<A>], _: &mut [Exponents<A>]) {}
}
