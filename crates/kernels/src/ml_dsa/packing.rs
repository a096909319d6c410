//! Packing of coefficients to bytes (FIPS 204, section 7.1), and of hints (section 7.2).

use super::parameters::{Gamma2, MAX_K, Parameters};
use super::polynomial::{BLOCKS, Polynomial};
use super::rounding::Bytes;
use super::vector::Vector;

/// Room for a packed polynomial, from which whole vectors can be loaded.
pub(crate) type Packed = [u8; 704];

/// Packs numbers of the given bits, lowest first (algorithm 16). They fill whole bytes.
pub(crate) fn pack(bits: usize, numbers: impl Iterator<Item = u32>, bytes: &mut [u8]) {
    let (mut buffer, mut filled, mut at) = (0u64, 0, 0);
    for number in numbers {
        buffer |= u64::from(number) << filled;
        filled += bits;
        while filled >= 8 {
            bytes[at] = buffer as u8;
            (buffer, filled, at) = (buffer >> 8, filled - 8, at + 1);
        }
    }
}

/// Unpacks numbers of the given bits (algorithm 18).
pub(crate) fn unpack(bits: usize, bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    (0..8 * bytes.len() / bits).map(move |i| {
        let first = bits * i / 8;
        let near = bytes[first..].iter().take(4).rev();
        let word = near.fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        (word >> (bits * i % 8)) as u32 & ((1 << bits) - 1)
    })
}

/// Packs a polynomial of z. Coefficients are below gamma1 in absolute value.
pub(crate) fn pack_mask(bits: u32, polynomial: &Polynomial, bytes: &mut [u8]) {
    if bits == 18 {
        pack_fours::<18, 9>(polynomial, bytes);
    } else {
        pack_fours::<20, 10>(polynomial, bytes);
    }
}

/// Packs fields of BITS bits, of which four take BYTES bytes.
fn pack_fours<const BITS: u32, const BYTES: usize>(polynomial: &Polynomial, bytes: &mut [u8]) {
    let field = |x: i32| ((1 << (BITS - 1)) - x) as u64;
    let groups = bytes.as_chunks_mut::<BYTES>().0.as_chunks_mut::<4>().0;
    for (block, groups) in polynomial.0.iter().zip(groups) {
        for ([a, b, c, d], bytes) in block.0.as_chunks::<4>().0.iter().zip(groups) {
            let low = field(*a) | field(*b) << BITS | field(*c) << (2 * BITS) | field(*d) << (3 * BITS);
            let high = field(*d) >> (64 - 3 * BITS);
            let (low_bytes, high_bytes) = bytes.split_at_mut(8);
            low_bytes.copy_from_slice(&low.to_le_bytes());
            high_bytes.copy_from_slice(&high.to_le_bytes()[..BYTES - 8]);
        }
    }
}

/// Unpacks a polynomial of y or z from the first bytes (algorithm 19).
#[inline(always)]
pub(crate) fn unpack_mask<V: Vector>(bits: u32, bytes: &Packed, to: &mut Polynomial) {
    if bits == 18 {
        for i in 0..BLOCKS {
            let bytes = bytes[36 * i..].first_chunk().expect("room for a vector");
            V::words(1 << 17).minus(V::unpack_18_bits(bytes)).store(&mut to.0[i]);
        }
    } else {
        for i in 0..BLOCKS {
            let bytes = bytes[40 * i..].first_chunk().expect("room for a vector");
            V::words(1 << 19).minus(V::unpack_20_bits(bytes)).store(&mut to.0[i]);
        }
    }
}

/// Packs the high parts of a polynomial (algorithm 28).
pub(crate) fn pack_high(gamma2: Gamma2, high: &Bytes, bytes: &mut [u8]) {
    let words = high.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight));
    match gamma2 {
        Gamma2::Of88 => {
            for (word, bytes) in words.zip(bytes.as_chunks_mut::<6>().0) {
                let word = word & 0x003f_003f_003f_003f | (word & 0x3f00_3f00_3f00_3f00) >> 2;
                let word = word & 0x0000_0fff_0000_0fff | (word & 0x0fff_0000_0fff_0000) >> 4;
                let word = word & 0x00ff_ffff | (word & 0x00ff_ffff_0000_0000) >> 8;
                bytes.copy_from_slice(&word.to_le_bytes()[..6]);
            }
        }
        Gamma2::Of32 => {
            for (word, bytes) in words.zip(bytes.as_chunks_mut::<4>().0) {
                let word = word & 0x000f_000f_000f_000f | (word & 0x0f00_0f00_0f00_0f00) >> 4;
                let word = word & 0x0000_00ff_0000_00ff | (word & 0x00ff_0000_00ff_0000) >> 8;
                let word = word & 0xffff | (word & 0xffff_0000_0000) >> 16;
                bytes.copy_from_slice(&(word as u32).to_le_bytes());
            }
        }
    }
}

/// Packs hints, at most omega (algorithm 20). They are public: part of a signature.
pub(crate) fn pack_hints(parameters: &Parameters, hints: &[Bytes], bytes: &mut [u8]) {
    let (positions, ends) = bytes.split_at_mut(parameters.omega);
    positions.fill(0);
    let mut count = 0;
    for (hints, end) in hints.iter().zip(ends) {
        for position in odd_bytes(hints) {
            positions[count] = position as u8;
            count += 1;
        }
        *end = count as u8;
    }
}

/// Returns the positions of odd bytes.
pub(super) fn odd_bytes(bytes: &Bytes) -> impl Iterator<Item = usize> + '_ {
    bytes.as_chunks::<64>().0.iter().enumerate().flat_map(|(i, bytes)| {
        let eights = bytes.as_chunks().0.iter().rev();
        // Moves the lowest bit of each byte to the highest byte.
        let bits = |eight: u64| (eight & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        let bits = eights.fold(0, |all, eight| all << 8 | bits(u64::from_le_bytes(*eight)));
        Ones(bits).map(move |position| 64 * i + position)
    })
}

/// Positions of ones in a word.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let position = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (position < 64).then_some(position)
    }
}

/// Positions of the hints of every polynomial.
pub(crate) struct Hints<'a> {
    positions: &'a [u8],
    ends: &'a [u8],
}

impl<'a> Hints<'a> {
    /// Parses packed hints (algorithm 21); `None` if they are not in the one valid form.
    pub(crate) fn parse(parameters: &Parameters, bytes: &'a [u8]) -> Option<Self> {
        let (positions, ends) = bytes.split_at(parameters.omega);
        let mut start = 0;
        for end in ends.iter().map(|end| usize::from(*end)) {
            let ascending = positions.get(start..end)?.is_sorted_by(|a, b| a < b);
            ascending.then_some(())?;
            start = end;
        }
        positions[start..].iter().all(|position| *position == 0).then_some(Self { positions, ends })
    }

    /// Returns the positions in polynomial `i`.
    pub(crate) fn of(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        debug_assert!(i < MAX_K);
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        let positions = &self.positions[usize::from(start)..usize::from(self.ends[i])];
        positions.iter().map(|position| usize::from(*position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ml_dsa::MlDsa;
    use crate::ml_dsa::polynomial::N;

    #[test]
    fn packed_numbers_unpack() {
        for bits in [3, 4, 10, 13] {
            let numbers = || (0..N as u32).map(|i| i.wrapping_mul(2_654_435_761) >> (32 - bits));
            let mut bytes = vec![0; N * bits / 8];
            pack(bits, numbers(), &mut bytes);
            assert!(unpack(bits, &bytes).eq(numbers()), "{bits} bits");
        }
    }

    #[test]
    fn high_parts_are_packed_as_numbers() {
        for gamma2 in [Gamma2::Of88, Gamma2::Of32] {
            let high: Bytes = std::array::from_fn(|i| (7 * i % usize::from(gamma2.highs())) as u8);
            let (mut fast, mut slow) = ([0; 192], [0; 192]);
            let bytes = 32 * gamma2.high_bits();
            pack_high(gamma2, &high, &mut fast[..bytes]);
            pack(gamma2.high_bits(), high.iter().map(|byte| u32::from(*byte)), &mut slow[..bytes]);
            assert_eq!(fast, slow);
        }
    }

    #[test]
    fn hints_have_one_form() {
        let parameters = MlDsa::MlDsa44.parameters();
        let mut hints = [[0; N]; 4];
        for (i, position) in [(0, 3), (0, 200), (2, 0), (3, 255)] {
            hints[i][position] = 1;
        }
        let mut bytes = [0; 84];
        pack_hints(parameters, &hints, &mut bytes);
        let parsed = Hints::parse(parameters, &bytes).expect("valid");
        let found: Vec<Vec<usize>> = (0..4).map(|i| parsed.of(i).collect()).collect();
        assert_eq!(found, [vec![3, 200], vec![], vec![0], vec![255]]);
        for (at, byte) in [(0, 200), (0, 201), (4, 1), (79, 1), (80, 3), (81, 1), (83, 3), (83, 81)] {
            let mut changed = bytes;
            changed[at] = byte;
            let accepted = Hints::parse(parameters, &changed).is_some();
            assert_eq!(accepted, (at, byte) == (83, 3) && bytes[3] == 0, "byte {at} is {byte}");
        }
    }
}
