//! Kernels of P-256 on AVX-512 IFMA: see `codegen/p256.rs` and `p256_multiple.rs` for the algorithms,
//! `docs/kernels/p256.md` for the bounds.

use super::ifma::Ifma;
use crate::batch::Arithmetic;
use crate::p256::{CombState, Element, Kernels, PointKernels, PointState, TABLE, Table, U64x8, WINDOWS};
use std::arch::global_asm;

global_asm!(include_str!(concat!(env!("OUT_DIR"), "/p256.s")), options(raw));

impl Kernels for Ifma {
    fn multiply(self, a: &Element, b: &Element) -> Element {
        let mut out = Element::default();
        // SAFETY: `self` proves the instructions; all three are elements.
        unsafe { multiply(&mut out, a, b) };
        out
    }

    fn multiply_modulo_n(self, a: &Element, b: &Element) -> Element {
        let mut out = Element::default();
        // SAFETY: as above.
        unsafe { multiply_modulo_n(&mut out, a, b) };
        out
    }

    fn comb_begin(self, state: &mut CombState, digits: &U64x8) {
        // SAFETY: `self` proves the instructions; state and digits have the sizes that the kernel expects.
        unsafe { comb_begin(state, digits) };
    }

    fn comb_add(self, state: &mut CombState, digits: &[U64x8], first: usize) {
        assert!(!digits.is_empty() && first + digits.len() <= WINDOWS);
        // SAFETY: `self` proves the instructions; the state has the size that the kernel expects, and the table has
        // these windows.
        unsafe { comb_add(state, digits.as_ptr(), first * size_of::<[u64; TABLE]>(), digits.len()) };
    }

    fn wipe_registers(self) {
        <Self as Arithmetic>::wipe_registers();
    }
}

impl PointKernels for Ifma {
    fn double(self, state: &mut PointState) {
        // SAFETY: `self` proves the instructions; the state has the size that the kernel expects.
        unsafe { double(state) };
    }

    fn add(self, state: &mut PointState) {
        // SAFETY: as above.
        unsafe { add(state) };
    }

    fn windows_begin(self, state: &mut PointState, digits: &U64x8, table: &Table) {
        // SAFETY: as above, also for the table.
        unsafe { windows_begin(state, digits, table) };
    }

    fn windows_add(self, state: &mut PointState, digits: &[U64x8], table: &Table) {
        assert!(!digits.is_empty());
        // SAFETY: as above, and the digits have the given length.
        unsafe { windows_add(state, digits.as_ptr(), table, digits.len()) };
    }
}

/// Table of the comb: for each window, for each of the five digits of x and y and for the tag, the quadwords of all
/// points.
#[cfg(test)]
pub(crate) fn table() -> &'static [[u64; TABLE]; WINDOWS] {
    unsafe extern "C" {
        #[link_name = "quadrille_p256_table"]
        static TABLE_OF_WINDOWS: [[u64; TABLE]; WINDOWS];
    }
    // SAFETY: the text of the kernels contains a table of this size, which is immutable.
    unsafe { &TABLE_OF_WINDOWS }
}

unsafe extern "sysv64" {
    #[link_name = "quadrille_p256_multiply"]
    fn multiply(out: *mut Element, a: *const Element, b: *const Element);
    #[link_name = "quadrille_p256_multiply_modulo_n"]
    fn multiply_modulo_n(out: *mut Element, a: *const Element, b: *const Element);
    #[link_name = "quadrille_p256_comb_begin"]
    fn comb_begin(state: *mut CombState, digits: *const U64x8);
    #[link_name = "quadrille_p256_comb_add"]
    fn comb_add(state: *mut CombState, digits: *const U64x8, offset: usize, count: usize);
    #[link_name = "quadrille_p256_double"]
    fn double(state: *mut PointState);
    #[link_name = "quadrille_p256_add"]
    fn add(state: *mut PointState);
    #[link_name = "quadrille_p256_windows_begin"]
    fn windows_begin(state: *mut PointState, digits: *const U64x8, table: *const Table);
    #[link_name = "quadrille_p256_windows_add"]
    fn windows_add(state: *mut PointState, digits: *const U64x8, table: *const Table, count: usize);
}
