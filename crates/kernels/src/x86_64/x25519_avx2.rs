//! Kernels of X25519 on AVX2: see `codegen/x25519_avx2.rs` for the algorithms, `docs/kernels/x25519.md` for the
//! bounds.

use super::fma47::Fma47;
use crate::batch::Arithmetic;
use crate::x25519::{CombState, Differences, Digits, Element as AnyElement, Four, Kernels, LadderState};
use std::arch::global_asm;
use zeroize::Zeroizing;

global_asm!(include_str!(concat!(env!("OUT_DIR"), "/x25519_avx2.s")), options(raw));

type Element = AnyElement<Four>;

impl Kernels for Fma47 {
    type Layout = Four;
    const AHEAD: usize = 0;

    fn multiply(self, a: &Element, b: &Element) -> Element {
        let (mut out, mut scratch) = (Element::default(), Zeroizing::new(Element::default()));
        // SAFETY: `self` proves the instructions; all four are elements.
        unsafe { multiply(&mut out, a, b, &mut *scratch) };
        out
    }

    fn square(self, x: &Element, count: usize) -> Element {
        assert!(count > 0);
        let (mut out, mut scratch) = (*x, Zeroizing::new(Element::default()));
        // SAFETY: `self` proves the instructions; the kernel counts down to zero from at least one.
        unsafe { square(&mut out, count, &mut *scratch) };
        out
    }

    fn ladder(self, state: &mut LadderState<Four>, differences: &Differences) {
        // SAFETY: `self` proves the instructions; state and differences have the sizes that the kernel expects.
        unsafe { ladder(state, differences) };
    }

    fn ladders(self, states: &mut [LadderState<Four>; 2], differences: &[Differences; 2]) {
        states.iter_mut().zip(differences).for_each(|(state, differences)| self.ladder(state, differences));
    }

    fn comb(self, state: &mut CombState<Four>, digits: &Digits) {
        // SAFETY: `self` proves the instructions; state and digits have the sizes that the kernel expects.
        unsafe { comb(state, digits) };
    }

    fn wipe_registers() {
        <Self as Arithmetic>::wipe_registers();
    }
}

unsafe extern "sysv64" {
    #[link_name = "quadrille_x25519_avx2_multiply"]
    fn multiply(out: *mut Element, a: *const Element, b: *const Element, scratch: *mut Element);
    #[link_name = "quadrille_x25519_avx2_square"]
    fn square(x: *mut Element, count: usize, scratch: *mut Element);
    #[link_name = "quadrille_x25519_avx2_ladder"]
    fn ladder(state: *mut LadderState<Four>, differences: *const Differences);
    #[link_name = "quadrille_x25519_avx2_comb"]
    fn comb(state: *mut CombState<Four>, digits: *const Digits);
}
