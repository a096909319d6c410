//! Constants of P-256 (SP 800-186, section 3.2.1.3), and arithmetic modulo them in constant time.

use crate::secrecy::declassify;
use zeroize::Zeroizing;

/// Number, the lowest word first.
pub(crate) type Number = [u64; 4];

/// Prime modulus, with its constants for computation.
pub(crate) struct Modulus {
    pub(super) words: Number,
    /// 1 / the prime, modulo 2^62
    pub(super) inverse: u64,
    /// R modulo the prime, R being 2^260
    pub(super) one: Number,
    /// R^2 modulo the prime
    pub(super) r_squared: Number,
}

/// Prime of the field.
pub(super) const P: Modulus = Modulus {
    words: [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001],
    inverse: u64::MAX >> 2,
    one: [0x0000_0000_0000_0010, 0xffff_fff0_0000_0000, 0xffff_ffff_ffff_ffff, 0x0000_000f_ffff_ffef],
    r_squared: [0x300, 0xffff_fbff_ffff_ff00, 0xffff_ffff_ffff_feff, 0x04ff_ffff_fdff],
};

/// Order of the group.
pub(super) const N: Modulus = Modulus {
    words: [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000],
    inverse: 0x332e_3755_11ff_43b1,
    one: [0xc463_53d0_39cd_aaf0, 0x3190_5525_8e86_17b0, 0x0000_0000_0000_0004, 0x0000_000f_ffff_fff0],
    r_squared: [0x0845_cc0d_ea6d_c3ba, 0x5571_bb19_2a06_7d8a, 0x45b2_392b_6bec_5961, 0xe12d_9559_d956_1fc2],
};

impl Modulus {
    /// Returns whether a number is one of 1 .. the prime - 1, which is public.
    pub(super) fn holds(&self, number: &Number) -> bool {
        let below = subtract(number, &self.words).1;
        declassify(below & !is_zero(number)) != 0
    }

    /// Computes number R, by 260 doublings.
    pub(super) fn montgomery(&self, number: &Number) -> Number {
        (0..260).fold(*number, |number, _| {
            let above = number[3] >> 63;
            let double =
                std::array::from_fn(|i| number[i] << 1 | if i > 0 { number[i - 1] >> 63 } else { 0 });
            self.reduced(&double, above)
        })
    }

    /// Reduces a number below twice the prime, with `above` as its fifth word, modulo the prime.
    pub(super) fn reduced(&self, number: &Number, above: u64) -> Number {
        let (less, borrow) = subtract(number, &self.words);
        select(borrow & above.wrapping_sub(1), number, &less)
    }

    /// Computes the prime - number, for a number that is not larger.
    pub(super) fn minus(&self, number: &Number) -> Number {
        subtract(&self.words, number).0
    }
}

/// Computes a - b modulo 2^256, and all ones if b is larger.
pub(super) fn subtract(a: &Number, b: &Number) -> (Number, u64) {
    let mut borrow = 0;
    let difference = std::array::from_fn(|i| {
        let difference = i128::from(a[i]) - i128::from(b[i]) + borrow;
        borrow = difference >> 64;
        difference as u64
    });
    (difference, opaque(borrow as u64))
}

/// Returns a where the mask is all ones, b where it is zero.
pub(super) fn select(mask: u64, a: &Number, b: &Number) -> Number {
    let mask = opaque(mask);
    std::array::from_fn(|i| a[i] & mask | b[i] & !mask)
}

/// Returns all ones if the number is zero.
pub(super) fn is_zero(number: &[u64]) -> u64 {
    let bits = number.iter().fold(0, |bits, word| bits | word);
    opaque(((bits | bits.wrapping_neg()) >> 63).wrapping_sub(1))
}

/// Returns the value, opaque to the compiler, which then cannot turn a mask into a branch.
#[inline]
pub(super) fn opaque(value: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut value = value;
        // SAFETY: the assembly has no instructions.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
        };
        value
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(value)
}

/// Parses big-endian bytes.
pub(super) fn from_bytes(bytes: &[u8; 32]) -> Number {
    std::array::from_fn(|i| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[24 - 8 * i..32 - 8 * i]);
        u64::from_be_bytes(word)
    })
}

/// Parses a scalar from big-endian bytes, if it is one of 1 .. the order - 1.
pub(super) fn parsed_scalar(bytes: &[u8; 32]) -> Option<Zeroizing<Number>> {
    let scalar = Zeroizing::new(from_bytes(bytes));
    N.holds(&scalar).then_some(scalar)
}

/// Writes big-endian bytes.
pub(super) fn to_bytes(number: &Number, bytes: &mut [u8]) {
    bytes
        .rchunks_exact_mut(8)
        .zip(number)
        .for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_be_bytes()));
}
