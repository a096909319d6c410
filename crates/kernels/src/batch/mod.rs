//! RSA private operation by the Chinese remainder theorem on several lanes at once, for any instruction set.
//!
//! ```text
//!   c ──> mod p ──> ^dp ──> m1 ─┐
//!    └──> mod q ──> ^dq ──> m2 ─┴─> h = (m1 - m2) qInv mod p ──> s = m2 + q h ──> s^e = c mod n ? ──> out
//!         (both halves of all operations in step: `lane_layout`)            (all operations in step)
//! ```
//!
//! [`Arithmetic`] is supplied by an instruction set: Montgomery multiplication of vectors of digits. The rest
//! (windows, table, recombination, fault check) is implemented here, once.

mod arithmetic;
mod check;
mod constants;
mod exponentiate;
mod exponents;
#[cfg(test)]
mod faults;
mod lane;
mod lane_layout;
mod probe;
mod recombine;
#[cfg(test)]
mod test_keys;

pub(crate) use arithmetic::{Arithmetic, Radix, Ring, Vector};
pub(crate) use constants::KeyConstants;
pub(crate) use lane::Lane;
pub(crate) use probe::{NoProbe, Probe, Stage};
#[cfg(test)]
pub(crate) use {arithmetic::Digit, test_keys::test_keys};

use exponents::Exponents;
use lane_layout::{Half, LaneLayout};
use quadrille_rsa_numbers::{KeySize, words::Secret};

/// Memory of one batch: reused from batch to batch, cleared after each.
pub(crate) struct Workspace<A: Arithmetic> {
    size: KeySize,
    /// Rings modulo p and modulo q, placed by [`LaneLayout`].
    halves: [Ring<A>; 2],
    /// Exponents dp and dq, in the same places.
    exponents: [Exponents<A>; 2],
    /// Ring modulo n, for the fault check.
    whole: Ring<A>,
}

impl<A: Arithmetic> Workspace<A> {
    /// Allocates memory for batches of keys of one size.
    pub(crate) fn new(size: KeySize) -> Self {
        let half = || Ring::new(A::radix(size.bits() / 2), 1 << A::WINDOW);
        let exponents = || Exponents::new(size.prime_words());
        Self {
            size,
            halves: [half(), half()],
            exponents: [exponents(), exponents()],
            whole: Ring::new(A::radix(size.bits()), check::POWERS),
        }
    }

    /// Computes input^d mod n in every lane, 1 to `A::LANES` of them. `None` marks a lane with a result that failed
    /// the check with the public key, and was destroyed.
    pub(crate) fn run(
        &mut self,
        arithmetic: A,
        lanes: &[Lane<'_, A>],
        probe: &mut impl Probe<A>,
    ) -> Vec<Option<Secret>> {
        debug_assert!(lanes.iter().all(|lane| lane.numbers.size == self.size));
        let layout = LaneLayout::new::<A>(lanes.len());
        self.load(layout, lanes);

        let rings = &mut self.halves[..layout.rings()];
        let exponents = &mut self.exponents[..layout.rings()];
        probe.on_stage(Stage::Loaded, 0, rings, exponents);
        reduce_inputs(arithmetic, rings, layout, lanes);
        let streams = rings.chunks_mut(A::STREAMS).zip(exponents.chunks_mut(A::STREAMS));
        for (i, (rings, exponents)) in streams.enumerate() {
            exponentiate::exponentiate(arithmetic, rings, exponents, i * A::STREAMS, probe);
        }
        probe.on_stage(Stage::Exponentiated, 0, rings, exponents);
        let results = recombine::recombine(arithmetic, rings, layout, lanes);

        let sound = check::check(arithmetic, &mut self.whole, lanes, &results.iter().collect::<Vec<_>>());
        self.wipe();
        results.into_iter().zip(sound).map(|(result, sound)| sound.then_some(result)).collect()
    }

    /// Returns which results, one for each lane and below its modulus, pass the check with the public key.
    pub(crate) fn confirm(&mut self, arithmetic: A, lanes: &[Lane<'_, A>], results: &[&Secret]) -> Vec<bool> {
        debug_assert!(lanes.iter().all(|lane| lane.numbers.size == self.size));
        self.load_whole(lanes);
        let sound = check::check(arithmetic, &mut self.whole, lanes, results);
        self.whole.wipe();
        A::wipe_registers();
        sound
    }

    /// Loads the modulus and the exponent of every lane.
    fn load(&mut self, layout: LaneLayout, lanes: &[Lane<'_, A>]) {
        let rings = self.halves.iter_mut().zip(&mut self.exponents).take(layout.rings());
        for (i, (ring, exponents)) in rings.enumerate() {
            for (at, operation, half) in layout.lanes(i) {
                let Lane { numbers, constants, .. } = lanes[operation];
                ring.load(at, &constants.halves[half as usize]);
                exponents.load(at, if half == Half::P { &numbers.dp } else { &numbers.dq });
            }
        }
        self.load_whole(lanes);
    }

    fn load_whole(&mut self, lanes: &[Lane<'_, A>]) {
        for (i, lane) in lanes.iter().cycle().take(A::LANES).enumerate() {
            self.whole.load(i, &lane.constants.whole);
        }
    }

    fn wipe(&mut self) {
        self.halves.iter_mut().for_each(Ring::wipe);
        self.whole.wipe();
        self.exponents.iter_mut().for_each(Exponents::wipe);
        A::wipe_registers();
    }
}

#[cfg(test)]
impl<A: Arithmetic> Workspace<A> {
    /// Returns whether every number that depends on a key has been cleared.
    pub(crate) fn is_clear(&mut self) -> bool {
        self.halves.iter_mut().all(Ring::is_clear)
            && self.whole.is_clear()
            && self.exponents.iter().all(Exponents::is_clear)
    }
}

impl<A: Arithmetic> Drop for Workspace<A> {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Computes x = c mod p (mod q) in Montgomery form: c = high * 2^half + low, so x = high * (R^2 2^half) / R + low *
/// R^2 / R.
fn reduce_inputs<A: Arithmetic>(
    arithmetic: A,
    rings: &mut [Ring<A>],
    layout: LaneLayout,
    lanes: &[Lane<'_, A>],
) {
    let parts = |i: usize| lanes[i].input.split_at(lanes[i].input.len() / 2);
    for (i, ring) in rings.iter_mut().enumerate() {
        layout.lanes(i).for_each(|(at, operation, _)| ring.put_x(at, parts(operation).1));
        ring.y.copy_from_slice(&ring.r_squared_high);
    }
    arithmetic.multiply(rings);
    for (i, ring) in rings.iter_mut().enumerate() {
        // The table's first entry is unused until the table is built.
        ring.table[..ring.x.len()].copy_from_slice(&ring.x);
        layout.lanes(i).for_each(|(at, operation, _)| ring.put_x(at, parts(operation).0));
        ring.y.copy_from_slice(&ring.r_squared);
    }
    arithmetic.multiply(rings);
    for ring in rings {
        let limbs = ring.x.len();
        A::add(&mut ring.x, &ring.table[..limbs], ring.radix);
    }
}
