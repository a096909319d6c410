//! Assignment of operations to the lanes of rings.
//!
//! The lanes of a ring may differ in kind: a lane is a modulus, an exponent and an input. A batch that would leave
//! half of its lanes empty therefore takes one ring instead of two, and about half the time:
//!
//! ```text
//!   more than LANES/2 operations        up to LANES/2 operations
//!   ring 0   p0 p1 p2 p3 p4 p5 p6 p7    ring 0   p0 p1 p2 p3 q0 q1 q2 q3
//!   ring 1   q0 q1 q2 q3 q4 q5 q6 q7
//! ```

use super::arithmetic::Arithmetic;

/// Halves of an operation: modulo p with dp, modulo q with dq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    P,
    Q,
}

/// Lane of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LanePosition {
    pub(crate) ring: usize,
    pub(crate) lane: usize,
}

/// Positions of the halves of a batch's operations. Depends only on the number of operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneLayout {
    operations: usize,
    lanes: usize,
    together: bool,
}

impl LaneLayout {
    /// Creates the layout for 1 to `A::LANES` operations.
    pub(crate) fn new<A: Arithmetic>(operations: usize) -> Self {
        debug_assert!((1..=A::LANES).contains(&operations));
        Self { operations, lanes: A::LANES, together: operations <= A::LANES / 2 }
    }

    /// Number of rings.
    pub(crate) fn rings(self) -> usize {
        if self.together { 1 } else { 2 }
    }

    /// Returns the position of one half of an operation.
    pub(crate) fn position(self, operation: usize, half: Half) -> LanePosition {
        if self.together {
            LanePosition { ring: 0, lane: half as usize * self.lanes / 2 + operation }
        } else {
            LanePosition { ring: half as usize, lane: operation }
        }
    }

    /// Returns all lanes of a ring with the operation and the half that each computes. Lanes that would be empty
    /// repeat the others.
    pub(crate) fn lanes(self, ring: usize) -> impl Iterator<Item = (usize, usize, Half)> {
        let block = if self.together { self.lanes / 2 } else { self.lanes };
        (0..self.lanes).map(move |lane| {
            let half = if ring + lane / block == 0 { Half::P } else { Half::Q };
            (lane, lane % block % self.operations, half)
        })
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::x86_64::ifma::Ifma;

    #[test]
    fn every_half_has_its_own_position_and_no_lane_is_empty() {
        for operations in 1..=8 {
            let layout = LaneLayout::new::<Ifma>(operations);
            assert_eq!(layout.rings(), if operations <= 4 { 1 } else { 2 });
            for (operation, half) in (0..operations).flat_map(|i| [(i, Half::P), (i, Half::Q)]) {
                let LanePosition { ring, lane } = layout.position(operation, half);
                assert!(ring < layout.rings());
                assert_eq!(layout.lanes(ring).nth(lane), Some((lane, operation, half)));
            }
        }
    }
}
