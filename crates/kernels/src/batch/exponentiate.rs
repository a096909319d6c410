//! Exponentiation modulo both primes in every lane, by fixed windows.

use super::arithmetic::{Arithmetic, Ring};
use super::exponents::Exponents;
use super::probe::{Probe, Stage};
use quadrille_rsa_numbers::words;

/// Computes x = x^exponent in each ring and lane; the form of x, Montgomery or not, is preserved.
///
/// The sequence of operations is the same for all keys of one size: WINDOW squarings and one multiplication per
/// window, with the power chosen by reading the whole table. `first` is the first ring's number, for the probe.
pub(super) fn exponentiate<A: Arithmetic>(
    arithmetic: A,
    rings: &mut [Ring<A>],
    exponents: &mut [Exponents<A>],
    first: usize,
    probe: &mut impl Probe<A>,
) {
    build_table(arithmetic, rings);
    probe.on_stage(Stage::TableBuilt, first, rings, exponents);

    let windows = exponents[0].windows();
    select(arithmetic, rings, exponents, windows - 1);
    for ring in rings.iter_mut() {
        ring.x.copy_from_slice(&ring.y);
    }
    for window in (0..windows - 1).rev() {
        for _ in 0..A::WINDOW {
            arithmetic.square(rings);
        }
        select(arithmetic, rings, exponents, window);
        arithmetic.multiply(rings);
        if window == windows / 2 {
            probe.on_stage(Stage::HalfwayThrough, first, rings, exponents);
        }
    }
}

/// Computes table[i] = x^i for i < 2^WINDOW.
fn build_table<A: Arithmetic>(arithmetic: A, rings: &mut [Ring<A>]) {
    for ring in rings.iter_mut() {
        let digits = ring.radix.digits;
        ring.table[..digits].copy_from_slice(&ring.one);
        ring.table[digits..2 * digits].copy_from_slice(&ring.x);
        ring.y.copy_from_slice(&ring.x);
    }
    for power in 2..1 << A::WINDOW {
        arithmetic.multiply(rings);
        for ring in rings.iter_mut() {
            let digits = ring.radix.digits;
            ring.table[power * digits..][..digits].copy_from_slice(&ring.x);
        }
    }
}

/// Computes y = table[window of the exponent] in each ring.
fn select<A: Arithmetic>(arithmetic: A, rings: &mut [Ring<A>], exponents: &[Exponents<A>], window: usize) {
    let mut index = [0; 8];
    let index = &mut index[..A::LANES];
    for (ring, exponents) in rings.iter_mut().zip(exponents) {
        exponents.window(window, index);
        arithmetic.select(ring, index);
    }
    words::wipe(index);
}
