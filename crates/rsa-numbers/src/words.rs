//! Numbers as little-endian slices of 64-bit words, handled in constant time.
//!
//! For work done once per key or once per operation: it is not fast, and does not branch or index by a value. Lengths
//! are public.

use zeroize::Zeroizing;

/// Secret number; its memory is cleared on drop.
pub type Secret = Zeroizing<Vec<u64>>;

/// Returns a secret zero of `len` words.
pub fn secret(len: usize) -> Secret {
    Zeroizing::new(vec![0; len])
}

/// Parses a big-endian number into `len` words; `None` if it does not fit. Branches on the position of the first
/// non-zero byte beyond the space, no further.
pub fn from_be_bytes(bytes: &[u8], len: usize) -> Option<Secret> {
    let mut words = secret(len);
    let excess = bytes.len().saturating_sub(8 * len);
    if bytes[..excess].iter().any(|&byte| byte != 0) {
        return None;
    }
    for (i, &byte) in bytes[excess..].iter().rev().enumerate() {
        words[i / 8] |= u64::from(byte) << (8 * (i % 8));
    }
    Some(words)
}

/// Writes the low `out.len()` bytes, big-endian.
pub fn to_be_bytes(words: &[u64], out: &mut [u8]) {
    for (i, byte) in out.iter_mut().rev().enumerate() {
        *byte = words.get(i / 8).map_or(0, |word| (word >> (8 * (i % 8))) as u8);
    }
}

/// Computes x += y where `mask` is all ones, and leaves x unchanged where it is zero; `y` may be shorter. Returns the
/// carry.
pub fn add_masked(x: &mut [u64], y: &[u64], mask: u64) -> u64 {
    let mut carry = 0;
    for (i, word) in x.iter_mut().enumerate() {
        let addend = y.get(i).copied().unwrap_or(0) & mask;
        let sum = u128::from(*word) + u128::from(addend) + u128::from(carry);
        (*word, carry) = (sum as u64, (sum >> 64) as u64);
    }
    carry
}

/// Computes x += y; see [`add_masked`].
pub fn add(x: &mut [u64], y: &[u64]) -> u64 {
    add_masked(x, y, u64::MAX)
}

/// Computes x -= y where `mask` is all ones; `y` may be shorter. Returns the borrow, 0 or 1.
pub fn subtract_masked(x: &mut [u64], y: &[u64], mask: u64) -> u64 {
    let mut borrow = 0;
    for (i, word) in x.iter_mut().enumerate() {
        let subtrahend = y.get(i).copied().unwrap_or(0) & mask;
        let difference =
            u128::from(*word).wrapping_sub(u128::from(subtrahend)).wrapping_sub(u128::from(borrow));
        (*word, borrow) = (difference as u64, (difference >> 64) as u64 & 1);
    }
    borrow
}

/// Computes x -= y; see [`subtract_masked`].
pub fn subtract(x: &mut [u64], y: &[u64]) -> u64 {
    subtract_masked(x, y, u64::MAX)
}

/// Computes x -= n if x >= n, given that x < 2^(64 * len); `n` may be shorter than `x`.
pub fn reduce_once(x: &mut [u64], n: &[u64]) {
    let borrow = subtract(x, n);
    // A compiler that knew the mask to be all ones or all zeros would branch on it, and one did.
    add_masked(x, n, std::hint::black_box(borrow.wrapping_neg()));
}

/// Reduces x, a two's complement number with -2n <= x < 3n and a word to spare, to [0, n).
pub fn canonicalise(x: &mut [u64], n: &[u64]) {
    add(x, n);
    add(x, n);
    for _ in 0..4 {
        reduce_once(x, n);
    }
}

/// Overwrites secrets in a way that the compiler does not remove.
pub fn wipe<T: Copy + Default>(secret: &mut [T]) {
    secret.fill(T::default());
    std::hint::black_box(secret);
}

/// Returns all ones if x < y, else zero; the lengths are equal.
pub fn less_mask(x: &[u64], y: &[u64]) -> u64 {
    let borrow = x.iter().zip(y).fold(0u64, |borrow, (&a, &b)| {
        let difference = u128::from(a).wrapping_sub(u128::from(b)).wrapping_sub(u128::from(borrow));
        (difference >> 64) as u64 & 1
    });
    borrow.wrapping_neg()
}

/// Returns whether two numbers of the same length are equal, without an early exit.
pub fn equal(x: &[u64], y: &[u64]) -> bool {
    x.len() == y.len() && x.iter().zip(y).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Computes out = a * b; `out` is as long as both together.
pub fn multiply(out: &mut [u64], a: &[u64], b: &[u64]) {
    debug_assert_eq!(out.len(), a.len() + b.len());
    out.fill(0);
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0;
        for (word, &y) in out[i..].iter_mut().zip(b) {
            let sum = u128::from(x) * u128::from(y) + u128::from(*word) + u128::from(carry);
            (*word, carry) = (sum as u64, (sum >> 64) as u64);
        }
        out[i + b.len()] = carry;
    }
}

/// Computes x * 2^doublings mod n, given x < n.
pub fn shift_mod(x: &[u64], n: &[u64], doublings: usize) -> Secret {
    let mut wide = secret(n.len() + 1);
    wide[..n.len()].copy_from_slice(x);
    for _ in 0..doublings {
        let mut carry = 0;
        for word in wide.iter_mut() {
            (*word, carry) = (*word << 1 | carry, *word >> 63);
        }
        reduce_once(&mut wide, n);
    }
    wide.truncate(n.len());
    wide
}

/// Returns `count` bits (at most 64) of x from bit `at` upwards; zeros beyond its end.
pub fn bits(x: &[u64], at: usize, count: usize) -> u64 {
    let (index, shift) = (at / 64, at % 64);
    let word = |i: usize| u128::from(x.get(i).copied().unwrap_or(0));
    let window = (word(index) | word(index + 1) << 64) >> shift;
    window as u64 & (u64::MAX >> (64 - count))
}

/// Returns the number of significant bits. Not constant time: for public numbers, and for sizes that are public.
pub fn bit_length(x: &[u64]) -> usize {
    x.iter().rposition(|&word| word != 0).map_or(0, |i| 64 * (i + 1) - x[i].leading_zeros() as usize)
}

/// Computes -n^-1 mod 2^64 for odd n, by Newton's iteration: n itself is right to 3 bits, each step doubles them.
pub fn negated_inverse(n: u64) -> u64 {
    let inverse = (0..5).fold(n, |x, _| x.wrapping_mul(2u64.wrapping_sub(n.wrapping_mul(x))));
    inverse.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_overflow_is_refused() {
        let bytes: Vec<u8> = (1..=11).collect();
        let words = from_be_bytes(&bytes, 2).expect("the number fits");
        assert_eq!(*words, [0x0405_0607_0809_0a0b, 0x01_0203]);
        let mut back = [0; 13];
        to_be_bytes(&words, &mut back);
        assert_eq!(back[2..], bytes);
        assert!(from_be_bytes(&bytes, 1).is_none());
        assert!(from_be_bytes(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 1).is_some());
        assert!(from_be_bytes(&[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 1).is_none());
    }

    #[test]
    fn canonicalise_covers_its_whole_range() {
        let n = [7u64];
        for x in -14i64..21 {
            let mut words = [x as u64, (x >> 63) as u64];
            canonicalise(&mut words, &n);
            assert_eq!(words, [x.rem_euclid(7) as u64, 0], "{x}");
        }
    }

    #[test]
    fn products_and_shifts_agree_with_u128() {
        let (a, b) = (0xfedc_ba98_7654_3210u64, u64::MAX - 4);
        let mut out = [0; 2];
        multiply(&mut out, &[a], &[b]);
        assert_eq!(u128::from(out[0]) | u128::from(out[1]) << 64, u128::from(a) * u128::from(b));
        assert_eq!(shift_mod(&[5], &[b], 9)[0], (u128::from(5u64 << 9) % u128::from(b)) as u64);
        assert_eq!(bits(&[a, 0b1011], 60, 8), 0b1011_1111);
        assert_eq!(negated_inverse(b).wrapping_mul(b), u64::MAX);
        assert_eq!((bit_length(&[0, 0]), bit_length(&[a, 1]), bit_length(&[1, 0])), (0, 65, 1));
    }

    #[test]
    fn comparisons() {
        assert_eq!(less_mask(&[1, 2], &[0, 3]), u64::MAX);
        assert_eq!(less_mask(&[0, 3], &[0, 3]), 0);
        assert_eq!(less_mask(&[1, 3], &[0, 3]), 0);
        assert!(equal(&[1, 2], &[1, 2]) && !equal(&[1, 2], &[1, 3]));
    }
}
