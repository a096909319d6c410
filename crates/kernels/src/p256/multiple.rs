//! Multiples of eight points: windows of four bits over per-lane tables.

use super::comb::{Kernels, put_digits};
use super::element::{Element, U64x8};
use super::modulus::{Number, P};
use zeroize::{Zeroize, Zeroizing};

/// Bits of a window; as in `codegen/p256_multiple.rs`.
pub(super) const WINDOW_BITS: usize = 4;
/// Number of windows of a scalar.
pub(super) const WINDOWS: usize = 256 / WINDOW_BITS;
/// Number of points of a table.
pub(super) const ENTRIES: usize = 1 << (WINDOW_BITS - 1);

/// Point arithmetic, described in `codegen/p256_multiple.rs`.
pub(crate) trait PointKernels: Kernels {
    /// Computes minus twice the point.
    fn double(self, state: &mut PointState);
    /// Adds the entry.
    fn add(self, state: &mut PointState);
    /// Sets the point to the entries of the highest window.
    fn windows_begin(self, state: &mut PointState, digits: &U64x8, table: &Table);
    /// Multiplies the point by 16 and adds the entries of a window, for each of them, the highest first.
    fn windows_add(self, state: &mut PointState, digits: &[U64x8], table: &Table);
}

/// State of the kernels: a point as x / z^2, v / (2 z^3), and z^2; an entry; the factor of z in the last addition;
/// and temporaries.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct PointState {
    pub(crate) x: Element,
    pub(crate) v: Element,
    pub(crate) z: Element,
    pub(crate) zz: Element,
    pub(crate) entry: Entry,
    pub(crate) factor: Element,
    pub(crate) room: [Element; 9],
}

/// Point as x, v / 2.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) x: Element,
    pub(crate) v: Element,
}

/// Multiples 1, 3 .. 15 of minus the point of each lane: the sign does not change the multiple's x.
pub(crate) type Table = [Entry; ENTRIES];

/// Points, in Montgomery form: x, y and p - y.
pub(super) struct Points {
    pub(super) x: Element,
    pub(super) y: Element,
    pub(super) minus_y: Element,
}

/// Tables under construction, which contain no secrets.
pub(super) struct Tables {
    /// Entries; all but the first one are times their own z.
    entries: Table,
    /// Factors: an entry's z is its factor times the previous entry's.
    factors: [Element; ENTRIES],
    /// Coordinate z of the last entry.
    pub(super) z: Element,
}

impl Tables {
    pub(super) fn new(kernels: impl PointKernels, points: &Points) -> Self {
        let Points { x, y, minus_y } = points;
        let (one, minus_v) = (Element::broadcast(&P.one), minus_y.plus(minus_y));
        let mut state = PointState { x: *x, v: y.plus(y), z: one, zz: one, ..PointState::default() };
        kernels.double(&mut state);

        // The factors x z^2 and y z^3 map points to another curve, where z is 1 and additions are the same.
        let (z, zz) = (state.z, state.zz);
        state.entry = Entry { x: state.x, v: state.v };
        state.x = kernels.multiply(x, &zz);
        state.v = kernels.multiply(&kernels.multiply(&minus_v, &zz), &z);
        (state.z, state.zz) = (one, one);
        let mut entries = [Entry { x: *x, v: minus_v }; ENTRIES];
        let mut factors = [one; ENTRIES];
        for (entry, factor) in entries.iter_mut().zip(&mut factors).skip(1) {
            kernels.add(&mut state);
            *entry = Entry { x: state.x, v: state.v };
            // A product, in clean digits.
            *factor = kernels.multiply(&state.factor, &one);
        }
        Self { entries, factors, z: kernels.multiply(&state.z, &z) }
    }

    /// Returns the tables, after `z` was replaced by 1 / z.
    pub(super) fn finish(&mut self, kernels: impl PointKernels) -> &Table {
        let mut inverse = self.z;
        for (entry, factor) in self.entries.iter_mut().zip(&self.factors).skip(1).rev() {
            let square = kernels.multiply(&inverse, &inverse);
            entry.x = kernels.multiply(&entry.x, &square);
            entry.v = kernels.multiply(&kernels.multiply(&entry.v, &square), &inverse);
            inverse = kernels.multiply(&inverse, factor);
        }
        &self.entries
    }
}

/// Computes the multiples by odd scalars, of which only x / z^2 is used. z is zero if the last addition was of equal
/// points: for the scalar n - 2 (`docs/kernels/p256.md`).
pub(super) fn multiply(
    kernels: impl PointKernels,
    table: &Table,
    scalars: &[Number; 8],
) -> Zeroizing<PointState> {
    let mut digits = Zeroizing::new([U64x8::default(); WINDOWS]);
    for (lane, scalar) in scalars.iter().enumerate() {
        put_digits::<WINDOW_BITS>(&mut *digits, lane, scalar);
    }
    digits.reverse();
    let mut state = Zeroizing::new(PointState::default());
    kernels.windows_begin(&mut state, &digits[0], table);
    kernels.windows_add(&mut state, &digits[1..], table);
    state
}

impl Zeroize for PointState {
    fn zeroize(&mut self) {
        let Self { x, v, z, zz, entry, factor, room } = self;
        [x, v, z, zz, &mut entry.x, &mut entry.v, factor].into_iter().for_each(Zeroize::zeroize);
        room.zeroize();
    }
}
