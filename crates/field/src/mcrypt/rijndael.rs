//! Rijndael with blocks of 128, 192 and 256 bits (Daemen and Rijmen, "AES Proposal: Rijndael", version 2): AES is the
//! variant with 128. No maintained crate has the others.
//!
//! It uses table lookups with secret-dependent timing. It only serves to read old fields once, by a holder of their
//! key, and offers no encryption.

use zeroize::Zeroizing;

/// Key schedule for blocks of one size.
pub(super) struct Rijndael {
    /// Block length in bytes.
    block: usize,
    /// Round keys, each as long as a block.
    round_keys: Zeroizing<Vec<u8>>,
    tables: Tables,
}

impl Rijndael {
    /// Creates the key schedule; `block` and the length of `key` are 16, 24 or 32 bytes.
    pub(super) fn new(key: &[u8], block: usize) -> Self {
        let tables = Tables::new();
        let rounds = key.len().max(block) / 4 + 6;
        let round_keys = expand(key, block * (rounds + 1), &tables);
        Self { block, round_keys, tables }
    }

    pub(super) fn block(&self) -> usize {
        self.block
    }

    pub(super) fn encrypt(&self, state: &mut [u8]) {
        let rounds = self.round_keys.chunks_exact(self.block);
        let mut rounds_left = rounds.len();
        for key in rounds {
            add(state, key);
            rounds_left -= 1;
            if rounds_left == 0 {
                return;
            }
            state.iter_mut().for_each(|byte| *byte = self.tables.substitute[usize::from(*byte)]);
            self.shift_rows(state, |column, offset, columns| (column + offset) % columns);
            if rounds_left > 1 {
                mix(state, [2, 3, 1, 1]);
            }
        }
    }

    pub(super) fn decrypt(&self, state: &mut [u8]) {
        let rounds = self.round_keys.len() / self.block - 1;
        for (round, key) in self.round_keys.chunks_exact(self.block).enumerate().rev() {
            add(state, key);
            if round == 0 {
                return;
            }
            if round < rounds {
                mix(state, [14, 11, 13, 9]);
            }
            self.shift_rows(state, |column, offset, columns| (column + columns - offset) % columns);
            state.iter_mut().for_each(|byte| *byte = self.tables.restore[usize::from(*byte)]);
        }
    }

    /// Moves to `column`, in each row, the byte of the column that `from` returns.
    fn shift_rows(&self, state: &mut [u8], from: impl Fn(usize, usize, usize) -> usize) {
        let columns = self.block / 4;
        let offsets = if columns == 8 { [0, 1, 3, 4] } else { [0, 1, 2, 3] };
        let before = Zeroizing::new(state.to_vec());
        for column in 0..columns {
            for (row, offset) in offsets.into_iter().enumerate() {
                state[4 * column + row] = before[4 * from(column, offset, columns) + row];
            }
        }
    }
}

fn add(state: &mut [u8], key: &[u8]) {
    state.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
}

/// Multiplies each column with the circulant matrix with first row `row`.
fn mix(state: &mut [u8], row: [u8; 4]) {
    for column in state.chunks_exact_mut(4) {
        let before: [u8; 4] = std::array::from_fn(|i| column[i]);
        for (i, byte) in column.iter_mut().enumerate() {
            *byte = (0..4).fold(0, |sum, j| sum ^ multiply(row[(j + 4 - i) % 4], before[j]));
        }
    }
}

/// Expands the key to round keys, `length` bytes in all.
fn expand(key: &[u8], length: usize, tables: &Tables) -> Zeroizing<Vec<u8>> {
    let mut expanded = Zeroizing::new(Vec::with_capacity(length));
    expanded.extend_from_slice(key);
    let mut constant = 1;
    while expanded.len() < length {
        let at = expanded.len();
        let mut word: [u8; 4] = std::array::from_fn(|i| expanded[at - 4 + i]);
        if at.is_multiple_of(key.len()) {
            word.rotate_left(1);
            word = word.map(|byte| tables.substitute[usize::from(byte)]);
            word[0] ^= constant;
            constant = multiply(2, constant);
        } else if key.len() == 32 && at % 32 == 16 {
            word = word.map(|byte| tables.substitute[usize::from(byte)]);
        }
        for (i, byte) in word.into_iter().enumerate() {
            let earlier = expanded[at + i - key.len()];
            expanded.push(byte ^ earlier);
        }
    }
    expanded.truncate(length);
    expanded
}

/// Substitution table and its inverse.
struct Tables {
    substitute: [u8; 256],
    restore: [u8; 256],
}

impl Tables {
    fn new() -> Self {
        let mut tables = Self { substitute: [0; 256], restore: [0; 256] };
        for byte in 0..=255u8 {
            // x^254 is the inverse, and 0 for 0.
            let inverse = (0..253).fold(byte, |power, _| multiply(power, byte));
            let rotated = (1..5).fold(inverse, |sum, bits| sum ^ inverse.rotate_left(bits));
            tables.substitute[usize::from(byte)] = rotated ^ 0x63;
            tables.restore[usize::from(rotated ^ 0x63)] = byte;
        }
        tables
    }
}

/// Multiplies in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
fn multiply(mut one: u8, mut other: u8) -> u8 {
    let mut product = 0;
    while other != 0 {
        if other & 1 != 0 {
            product ^= one;
        }
        one = (one << 1) ^ if one & 0x80 == 0 { 0 } else { 0x1b };
        other >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of Brian Gladman's specification of Rijndael: the digits of pi under the key of FIPS 197, appendix B.
    #[test]
    fn published_vectors() {
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let plain = hex("3243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c8");
        for expected in [
            "3925841d02dc09fbdc118597196a0b32",
            "b24d275489e82bb8f7375e0d5fcdb1f481757c538b65148a",
            "7d15479076b69a46ffb3b3beae97ad8313f622f67fedb487de9f06b9ed9c8f19",
        ] {
            let expected = hex(expected);
            let cipher = Rijndael::new(&key, expected.len());
            let mut block = plain[..expected.len()].to_vec();
            cipher.encrypt(&mut block);
            assert_eq!(block, expected);
            cipher.decrypt(&mut block);
            assert_eq!(block, plain[..expected.len()]);
        }
    }

    /// FIPS 197, appendix C: keys of all sizes.
    #[test]
    fn aes_vectors() {
        let key: Vec<u8> = (0..32).collect();
        let plain = hex("00112233445566778899aabbccddeeff");
        for (length, expected) in [
            (16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
            (24, "dda97ca4864cdfe06eaf70a0ec0d7191"),
            (32, "8ea2b7ca516745bfeafc49904b496089"),
        ] {
            let mut block = plain.clone();
            Rijndael::new(&key[..length], 16).encrypt(&mut block);
            assert_eq!(block, hex(expected));
        }
    }

    fn hex(text: &str) -> Vec<u8> {
        base16ct::mixed::decode_vec(text).expect("hexadecimal")
    }
}
