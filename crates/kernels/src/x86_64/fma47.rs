//! AVX2 and FMA3: four lanes, signed digits of 44 to 47 bits held as double-precision integers.
//!
//! The name refers to the study that found the representation, after the digits of 1024-bit numbers. Every operation
//! of the kernels is exact under rounding to nearest, the default mode, which this program does not change; if other
//! code of the process did, the fault check would reject the results. The bounds are proved in
//! `docs/kernels/fma47.md`.

use std::arch::global_asm;

use zeroize::Zeroizing;

use crate::batch::{Arithmetic, Radix, Ring, Vector};
use crate::cpu::HaveAvx2Fma;
use quadrille_rsa_numbers::words;

global_asm!(include_str!(concat!(env!("OUT_DIR"), "/fma47.s")), options(raw));

/// Number of digits of a block: six quotient digits are computed at once.
const BLOCK: usize = 6;

/// Four 64-bit lanes: one ymm register.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
pub(crate) struct F64x4([f64; 4]);

impl Vector for F64x4 {
    type Digit = f64;

    fn lanes(&self) -> &[f64] {
        &self.0
    }

    fn lanes_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

/// The AVX2 tier; its existence proves that the CPU has the instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fma47(HaveAvx2Fma);

impl Fma47 {
    pub(crate) fn new(proof: HaveAvx2Fma) -> Self {
        Self(proof)
    }
}

impl Arithmetic for Fma47 {
    type Vector = F64x4;

    const LANES: usize = 4;

    /// The carry chain of one modulus overlaps the products of the other.
    const STREAMS: usize = 2;

    const WINDOW: usize = 4;

    /// A number of digits that is 4 modulo 6, with at least eight bits above the modulus.
    fn radix(modulus_bits: usize) -> Radix {
        match modulus_bits {
            1024 => Radix { bits: 47, digits: 22 },
            1536 => Radix { bits: 46, digits: 34 },
            2048 => Radix { bits: 45, digits: 46 },
            3072 => Radix { bits: 44, digits: 70 },
            4096 => Radix { bits: 44, digits: 94 },
            _ => unreachable!("a modulus is as long as a supported key or its primes"),
        }
    }

    /// Constants: the anchor, 2^-b and the rounding constant; then, with k = -n^-1 mod 2^(6b), NH = (k n + 1) /
    /// 2^(6b), n with two zero digits, and k.
    fn modulus_constants(modulus: &[u64], radix: Radix) -> Zeroizing<Vec<f64>> {
        let block_bits = BLOCK * radix.bits;
        let inverse = negated_inverse(modulus, block_bits);
        let mut product = words::secret(modulus.len() + inverse.len());
        words::multiply(&mut product, modulus, &inverse);
        words::add(&mut product, &[1]);
        let high = (0..modulus.len()).map(|i| words::bits(&product, block_bits + 64 * i, 64));
        let high = Zeroizing::new(high.collect::<Vec<_>>());

        let mut constants = Zeroizing::new(Vec::with_capacity(3 + 2 * radix.digits + 2 + BLOCK));
        constants.extend([anchor(radix.bits), power_of_two(-(radix.bits as i32)), rounding(radix.bits)]);
        constants.extend_from_slice(&signed_digits(&high, radix.bits, radix.digits));
        constants.extend_from_slice(&signed_digits(modulus, radix.bits, radix.digits));
        constants.extend([0.0; 2]);
        constants.extend_from_slice(&signed_digits(&inverse, radix.bits, BLOCK));
        constants
    }

    /// Scratch: carries, one block of digits and its multiple, the quotient's digits (after two vectors of padding),
    /// and the double of the operand of a square.
    fn scratch(radix: Radix) -> usize {
        scratch_len(radix.digits)
    }

    fn encode(number: &[u64], radix: Radix) -> Zeroizing<Vec<f64>> {
        signed_digits(number, radix.bits, radix.digits)
    }

    fn decode(digits: &[f64], radix: Radix, out: &mut [u64]) {
        let (mut pending, mut pending_bits) = (0i128, 0);
        let mut digits = digits.iter();
        for word in out {
            while pending_bits < 64 {
                let digit = digits.next().copied().unwrap_or_default();
                pending += i128::from(integer(digit)) << pending_bits;
                pending_bits += radix.bits;
            }
            *word = pending as u64;
            pending >>= 64;
            pending_bits -= 64;
        }
    }

    fn multiply(self, rings: &mut [Ring<Self>]) {
        run(rings, |kernels| kernels.multiply);
    }

    fn square(self, rings: &mut [Ring<Self>]) {
        run(rings, |kernels| kernels.square);
    }

    fn select(self, ring: &mut Ring<Self>, index: &[u64]) {
        let digits = ring.radix.digits;
        assert!(index.len() == Self::LANES);
        assert!(ring.y.len() == digits && ring.table.len().is_multiple_of(digits));
        let select = Kernels::with_digits(digits).select;
        // SAFETY: `self` proves the instructions; y is one entry long and the table a whole number of them.
        unsafe {
            select(ring.y.as_mut_ptr(), ring.table.as_ptr(), index.as_ptr(), ring.table.len() / digits);
        };
    }

    fn add(x: &mut [F64x4], y: &[F64x4], radix: Radix) {
        let (rounding, inverse) = (rounding(radix.bits), power_of_two(-(radix.bits as i32)));
        let mut carries = [0.0; 4];
        let last = x.len() - 1;
        for (i, (x, y)) in x.iter_mut().zip(y).enumerate() {
            for ((x, y), carry) in x.0.iter_mut().zip(&y.0).zip(&mut carries) {
                let sum = *x + y;
                let high = if i < last { (sum + rounding) - rounding } else { 0.0 };
                *x = (sum - high) + *carry * inverse;
                *carry = high;
            }
        }
    }

    fn wipe_registers() {
        // SAFETY: called only after a batch, which only an `Fma47` can run.
        unsafe { wipe() };
    }
}

/// Length of the scratch; see [`Fma47::scratch`]. The double is followed by a zero digit.
fn scratch_len(digits: usize) -> usize {
    16 + 2 * digits + 1
}

/// Returns B, the start of sums of products: 1.5 * 2^e, so that a rounded sum is a multiple of 2^(e-52) >= 2^b, and
/// all products of a column stay below 2^(e-1).
fn anchor(digit_bits: usize) -> f64 {
    let exponent = match digit_bits {
        47 => 100,
        46 => 98,
        45 => 97,
        44 => 96,
        _ => unreachable!("no radix has digits of {digit_bits} bits"),
    };
    1.5 * power_of_two(exponent)
}

/// Constant that rounds to a multiple of 2^b when added and subtracted.
fn rounding(digit_bits: usize) -> f64 {
    1.5 * power_of_two(52 + digit_bits as i32)
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Converts an integer of magnitude below 2^51, without a conversion that special-cases some values.
fn integer(digit: f64) -> i64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52
    (digit + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i64
}

/// Returns digits in [-2^(b-1), 2^(b-1)); the last one takes the rest.
fn signed_digits(number: &[u64], digit_bits: usize, count: usize) -> Zeroizing<Vec<f64>> {
    let half = 1 << (digit_bits - 1);
    let mut carry = 0;
    let digit = |i: usize| {
        let digit = words::bits(number, digit_bits * i, digit_bits) + carry;
        carry = if i + 1 < count { (digit + half) >> digit_bits } else { 0 };
        (digit as i64 - (carry << digit_bits) as i64) as f64
    };
    Zeroizing::new((0..count).map(digit).collect())
}

/// Computes -n^-1 mod 2^bits for odd n, by Newton's iteration on whole numbers.
fn negated_inverse(n: &[u64], bits: usize) -> words::Secret {
    let len = bits.div_ceil(64);
    let n = &n[..len];
    let mut inverse = words::secret(len); // of -n
    inverse[0] = words::negated_inverse(n[0]);
    let mut product = words::secret(2 * len);
    let mut next = words::secret(2 * len);
    let mut right = 64;
    while right < bits {
        // x <- x (2 + n x), as x is close to -1/n.
        words::multiply(&mut product, n, &inverse);
        words::add(&mut product[..len], &[2]);
        words::multiply(&mut next, &product[..len], &inverse);
        inverse.copy_from_slice(&next[..len]);
        right *= 2;
    }
    inverse[len - 1] &= u64::MAX >> (64 * len - bits);
    inverse
}

/// Addresses of one ring, as the kernels read them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stream {
    x: *mut F64x4,
    y: *const F64x4,
    modulus: *const F64x4,
    scratch: *mut F64x4,
}

/// Two streams, side by side in one cache line.
#[repr(C, align(64))]
struct Streams([Stream; 2]);

/// Runs a kernel on one ring or two.
fn run(rings: &mut [Ring<Fma47>], kernel: impl Fn(&Kernels) -> Kernel) {
    let digits = rings[0].radix.digits;
    let stream = |ring: &mut Ring<Fma47>| {
        assert!(ring.x.len() == digits && ring.y.len() == digits);
        assert!(
            ring.modulus.len() == 3 + 2 * digits + 2 + BLOCK && ring.scratch.len() == scratch_len(digits)
        );
        Stream {
            x: ring.x.as_mut_ptr(),
            y: ring.y.as_ptr(),
            modulus: ring.modulus.as_ptr(),
            scratch: ring.scratch.as_mut_ptr(),
        }
    };
    let (streams, stride) = match rings {
        [only] => (Streams([stream(only); 2]), 0),
        [first, second] => (Streams([stream(first), stream(second)]), size_of::<Stream>()),
        _ => unreachable!("one or two rings, as STREAMS says"),
    };
    // SAFETY: an `Fma47` has called, so the instructions exist; all operands, constants and scratch of the streams
    // have the lengths that the kernel for this number of digits expects.
    unsafe { kernel(Kernels::with_digits(digits))(&streams, stride) };
}

/// Kernel for x = x * y / R, or x * x / R: `(streams, stride)`; see `codegen/fma47.rs`.
type Kernel = unsafe extern "sysv64" fn(*const Streams, usize);
/// Kernel `(out, table, index, entries)`.
type Select = unsafe extern "sysv64" fn(*mut F64x4, *const F64x4, *const u64, usize);

/// Kernels for one number of digits.
struct Kernels {
    multiply: Kernel,
    square: Kernel,
    select: Select,
}

macro_rules! kernels {
    ($($digits:literal: $multiply:ident $square:ident $select:ident;)*) => {
        unsafe extern "sysv64" {
            $(
                fn $multiply(streams: *const Streams, stride: usize);
                fn $square(streams: *const Streams, stride: usize);
                fn $select(out: *mut F64x4, table: *const F64x4, index: *const u64, entries: usize);
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
    22: quadrille_fma47_22_multiply quadrille_fma47_22_square quadrille_fma47_22_select;
    34: quadrille_fma47_34_multiply quadrille_fma47_34_square quadrille_fma47_34_select;
    46: quadrille_fma47_46_multiply quadrille_fma47_46_square quadrille_fma47_46_select;
    70: quadrille_fma47_70_multiply quadrille_fma47_70_square quadrille_fma47_70_select;
    94: quadrille_fma47_94_multiply quadrille_fma47_94_square quadrille_fma47_94_select;
}

unsafe extern "sysv64" {
    #[link_name = "quadrille_fma47_wipe"]
    fn wipe();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::reference;

    /// Extremes of the bounds in `docs/kernels/fma47.md`: operands of up to 8n with digits, except the top one, of
    /// the largest magnitude, under the largest and the smallest modulus of each size.
    #[test]
    fn products_are_right_at_the_extremes() {
        let Some(proof) = HaveAvx2Fma::detect() else {
            println!("skipped: this CPU lacks AVX2 or FMA");
            return;
        };
        for bits in [1024, 1536, 2048, 3072, 4096] {
            for sign in [1.0, -1.0] {
                reference::check_products(Fma47::new(proof), bits, |radix| {
                    let largest = power_of_two(radix.bits as i32 - 1) + power_of_two(radix.bits as i32 - 41);
                    let mut digits = vec![sign * largest; radix.digits];
                    digits[radix.digits - 1] =
                        power_of_two((bits + 1 - radix.bits * (radix.digits - 1)) as i32);
                    digits
                });
            }
        }
    }

    #[test]
    fn digits_round_trip() {
        let radix = Fma47::radix(1024);
        for word in [0, 1, u64::MAX, 1 << 46, (1 << 46) - 1, 0x8000_0000_0000_0000] {
            let number = [word; 16];
            let digits = Fma47::encode(&number, radix);
            assert!(digits[..21].iter().all(|digit| digit.abs() <= power_of_two(46)));
            let mut back = [0; 17];
            Fma47::decode(&digits, radix, &mut back);
            assert_eq!((&back[..16], back[16]), (&number[..], 0));
        }
        let mut minus_one = [0; 17];
        let mut digits = [0.0; 22];
        digits[0] = -1.0;
        Fma47::decode(&digits, radix, &mut minus_one);
        assert_eq!(minus_one, [u64::MAX; 17]);
    }
}
