//! Probe of a batch in progress, for tests.

use super::arithmetic::{Arithmetic, Ring};
use super::exponents::Exponents;

/// Stages of a batch at which a [`Probe`] may inspect, or corrupt, the contents of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Constants and inputs are loaded.
    Loaded,
    /// The window table of both halves is complete.
    TableBuilt,
    /// Middle of the exponentiation.
    HalfwayThrough,
    /// Values m1 and m2, still in Montgomery form.
    Exponentiated,
}

/// Observes a batch; production uses [`NoProbe`], the fault tests flip bits.
pub(crate) trait Probe<A: Arithmetic> {
    /// Called with the rings that are at this stage, all or one after the other; the first of them is ring number
    /// `first` of the [`LaneLayout`](super::lane_layout::LaneLayout).
    fn on_stage(&mut self, stage: Stage, first: usize, rings: &mut [Ring<A>], exponents: &mut [Exponents<A>]);
}

/// Probe without effect or cost.
pub(crate) struct NoProbe;

impl<A: Arithmetic> Probe<A> for NoProbe {
    fn on_stage(&mut self, _: Stage, _: usize, _: &mut [Ring<A>], _: &mut [Exponents<A>]) {}
}
