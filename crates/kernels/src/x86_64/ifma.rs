//! AVX-512 IFMA: eight lanes, digits of 52 bits.
//!
//! A digit is the low 52 bits of its 64-bit word: the multiply-add instructions read no more, so the kernels do not
//! clear the higher bits. The bounds are proved in `docs/kernels/ifma.md`.

use std::arch::global_asm;

use zeroize::Zeroizing;

use crate::batch::{Arithmetic, Radix, Ring, Vector};
use crate::cpu::HaveIfma;
use quadrille_rsa_numbers::words;

global_asm!(include_str!(concat!(env!("OUT_DIR"), "/ifma.s")), options(raw));

const DIGIT_BITS: usize = 52;
const DIGIT_MASK: u64 = (1 << DIGIT_BITS) - 1;

/// Eight 64-bit lanes: one zmm register.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct U64x8([u64; 8]);

impl Vector for U64x8 {
    type Digit = u64;

    fn lanes(&self) -> &[u64] {
        &self.0
    }

    fn lanes_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

/// The IFMA tier; its existence proves that the CPU has the instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma(HaveIfma);

impl Ifma {
    pub(crate) fn new(proof: HaveIfma) -> Self {
        Self(proof)
    }
}

impl Arithmetic for Ifma {
    type Vector = U64x8;

    const LANES: usize = 8;

    const STREAMS: usize = 1;

    /// 16 table entries of 1024-bit numbers fit the first-level cache with the operands, 32 do not.
    const WINDOW: usize = 4;

    /// Least multiple of ten digits (a tile) with at least four bits above the modulus.
    fn radix(modulus_bits: usize) -> Radix {
        let digits = (modulus_bits + 4).div_ceil(10 * DIGIT_BITS) * 10;
        Radix { bits: DIGIT_BITS, digits }
    }

    /// Constants: n' = -n^-1 mod 2^52, then NH = (n' n + 1) / 2^52, then n and a zero digit.
    fn modulus_constants(modulus: &[u64], radix: Radix) -> Zeroizing<Vec<u64>> {
        let inverse = words::negated_inverse(modulus[0]) & DIGIT_MASK;
        let mut product = words::secret(modulus.len() + 1);
        words::multiply(&mut product, modulus, &[inverse]);
        words::add(&mut product, &[1]);

        let digit = |number: &[u64], i: usize| words::bits(number, DIGIT_BITS * i, DIGIT_BITS);
        let mut constants = Zeroizing::new(Vec::with_capacity(2 * radix.digits + 2));
        constants.push(inverse);
        constants.extend((0..radix.digits).map(|i| digit(&product, i + 1)));
        constants.extend((0..=radix.digits).map(|i| digit(modulus, i)));
        constants
    }

    fn scratch(radix: Radix) -> usize {
        radix.digits + 1
    }

    fn encode(number: &[u64], radix: Radix) -> Zeroizing<Vec<u64>> {
        let digits = (0..radix.digits).map(|i| words::bits(number, DIGIT_BITS * i, DIGIT_BITS));
        Zeroizing::new(digits.collect())
    }

    fn decode(digits: &[u64], _: Radix, out: &mut [u64]) {
        out.fill(0);
        for (i, digit) in digits.iter().enumerate() {
            let (index, shift) = (DIGIT_BITS * i / 64, DIGIT_BITS * i % 64);
            let placed = u128::from(digit & DIGIT_MASK) << shift;
            for (word, part) in out.iter_mut().skip(index).zip([placed as u64, (placed >> 64) as u64]) {
                *word |= part;
            }
        }
    }

    fn multiply(self, rings: &mut [Ring<Self>]) {
        for ring in rings {
            let y = ring.y.as_ptr();
            run(Kernels::with_digits(ring.radix.digits).multiply, ring, y);
        }
    }

    fn square(self, rings: &mut [Ring<Self>]) {
        for ring in rings {
            let x = ring.x.as_ptr();
            run(Kernels::with_digits(ring.radix.digits).square, ring, x);
        }
    }

    fn select(self, ring: &mut Ring<Self>, index: &[u64]) {
        let digits = ring.radix.digits;
        assert!(index.len() == Self::LANES);
        assert!(ring.y.len() == digits && ring.table.len().is_multiple_of(digits));
        let select = Kernels::with_digits(digits).select;
        // SAFETY: `self` proves the instructions; y is one entry long and the table a whole number of them.
        unsafe {
            select(ring.y.as_mut_ptr(), ring.table.as_ptr(), index.as_ptr(), ring.table.len() / digits);
        }
    }

    fn add(x: &mut [U64x8], y: &[U64x8], _: Radix) {
        let mut carries = [0; 8];
        for (x, y) in x.iter_mut().zip(y) {
            for ((x, y), carry) in x.0.iter_mut().zip(&y.0).zip(&mut carries) {
                *x = (*x & DIGIT_MASK) + (y & DIGIT_MASK) + *carry;
                *carry = *x >> DIGIT_BITS;
            }
        }
    }

    fn wipe_registers() {
        // SAFETY: called only after a batch, which only an `Ifma` can run.
        unsafe { wipe() };
    }
}

/// Runs a kernel on a ring's x and `y`, result in x.
fn run(kernel: Kernel, ring: &mut Ring<Ifma>, y: *const U64x8) {
    let digits = ring.radix.digits;
    assert!(ring.x.len() == digits && ring.y.len() == digits);
    assert!(ring.modulus.len() == 2 * digits + 2 && ring.scratch.len() == digits + 1);
    // SAFETY: an `Ifma` has called, so the instructions exist; the operands, the constants and the digits
    // have the lengths that the kernel expects, `y` is one of the ring's operands, and the kernel allows its
    // result to replace either.
    unsafe {
        let x = ring.x.as_mut_ptr();
        kernel(x, x, y, ring.modulus.as_ptr(), ring.scratch.as_mut_ptr());
    }
}

/// Kernel for out = a * b / R: `(out, a, b, modulus, digits)`; see `codegen/ifma.rs`.
type Kernel = unsafe extern "sysv64" fn(*mut U64x8, *const U64x8, *const U64x8, *const U64x8, *mut U64x8);
/// Kernel `(out, table, index, entries)`.
type Select = unsafe extern "sysv64" fn(*mut U64x8, *const U64x8, *const u64, usize);

/// Kernels for one number of digits. A square's `b` is not read.
struct Kernels {
    multiply: Kernel,
    square: Kernel,
    select: Select,
}

macro_rules! kernels {
    ($($digits:literal: $multiply:ident $square:ident $select:ident;)*) => {
        unsafe extern "sysv64" {
            $(
                fn $multiply(out: *mut U64x8, a: *const U64x8, b: *const U64x8, modulus: *const U64x8, digits: *mut U64x8);
                fn $square(out: *mut U64x8, a: *const U64x8, b: *const U64x8, modulus: *const U64x8, digits: *mut U64x8);
                fn $select(out: *mut U64x8, table: *const U64x8, index: *const u64, entries: usize);
            )*
        }

        impl Kernels {
            fn with_digits(digits: usize) -> &'static Self {
                match digits {
                    $($digits => &Self { multiply: $multiply, square: $square, select: $select },)*
                    _ => unreachable!("no radix has {digits} digits"),
                }
            }
        }
    };
}

kernels! {
    20: quadrille_ifma_20_multiply quadrille_ifma_20_square quadrille_ifma_20_select;
    30: quadrille_ifma_30_multiply quadrille_ifma_30_square quadrille_ifma_30_select;
    40: quadrille_ifma_40_multiply quadrille_ifma_40_square quadrille_ifma_40_select;
    60: quadrille_ifma_60_multiply quadrille_ifma_60_square quadrille_ifma_60_select;
    80: quadrille_ifma_80_multiply quadrille_ifma_80_square quadrille_ifma_80_select;
}

unsafe extern "sysv64" {
    #[link_name = "quadrille_ifma_wipe"]
    fn wipe();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::reference;

    /// Extremes of the bounds in `docs/kernels/ifma.md`: operands of up to 4n with every digit, except the top one,
    /// all ones, under the largest and the smallest modulus of each size.
    #[test]
    fn products_are_right_at_the_extremes() {
        let Some(proof) = HaveIfma::detect() else {
            println!("skipped: this CPU lacks AVX-512 IFMA");
            return;
        };
        for bits in [1024, 1536, 2048, 3072, 4096] {
            let mut ones = vec![u64::MAX; bits / 64 + 1];
            ones[bits / 64] = 3;
            reference::check_products(Ifma::new(proof), bits, |radix| Ifma::encode(&ones, radix).to_vec());
        }
    }
}
