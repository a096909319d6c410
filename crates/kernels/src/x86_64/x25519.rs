//! Kernels of X25519 on AVX-512 IFMA: see `codegen/x25519.rs` for the algorithms, `docs/kernels/x25519.md` for the
//! bounds.

use super::ifma::Ifma;
use crate::batch::Arithmetic;
use crate::x25519::{CombState, Differences, Digits, Eight, Element as AnyElement, Kernels, LadderState};
use std::arch::global_asm;

global_asm!(include_str!(concat!(env!("OUT_DIR"), "/x25519.s")), options(raw));

type Element = AnyElement<Eight>;

impl Kernels for Ifma {
    type Layout = Eight;
    const AHEAD: usize = 1;

    fn multiply(self, a: &Element, b: &Element) -> Element {
        let mut out = Element::default();
        // SAFETY: `self` proves the instructions; all three are elements.
        unsafe { multiply(&mut out, a, b) };
        out
    }

    fn square(self, x: &Element, count: usize) -> Element {
        assert!(count > 0);
        let mut out = *x;
        // SAFETY: `self` proves the instructions; the kernel counts down to zero from at least one.
        unsafe { square(&mut out, count) };
        out
    }

    fn ladder(self, state: &mut LadderState<Eight>, differences: &Differences) {
        // SAFETY: `self` proves the instructions; state and differences have the sizes that the kernel expects.
        unsafe { ladder(state, differences) };
    }

    fn ladders(self, states: &mut [LadderState<Eight>; 2], differences: &[Differences; 2]) {
        // SAFETY: as above, and the kernel expects two consecutive ones of each.
        unsafe { ladders(states, differences) };
    }

    fn comb(self, state: &mut CombState<Eight>, digits: &Digits) {
        // SAFETY: `self` proves the instructions; state and digits have the sizes that the kernel expects.
        unsafe { comb(state, digits) };
    }

    fn wipe_registers() {
        <Self as Arithmetic>::wipe_registers();
    }
}

unsafe extern "sysv64" {
    #[link_name = "quadrille_x25519_multiply"]
    fn multiply(out: *mut Element, a: *const Element, b: *const Element);
    #[link_name = "quadrille_x25519_square"]
    fn square(x: *mut Element, count: usize);
    #[link_name = "quadrille_x25519_ladder"]
    fn ladder(state: *mut LadderState<Eight>, differences: *const Differences);
    #[link_name = "quadrille_x25519_ladders"]
    fn ladders(states: *mut [LadderState<Eight>; 2], differences: *const [Differences; 2]);
    #[link_name = "quadrille_x25519_comb"]
    fn comb(state: *mut CombState<Eight>, digits: *const Digits);
}
