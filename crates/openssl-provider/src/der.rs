//! Encoding of short values in DER (X.690).

/// Encodes `AlgorithmIdentifier` (RFC 5280 section 4.1.1.2) with NULL as its parameters.
pub(crate) fn algorithm(identifier: &[u8]) -> Vec<u8> {
    sequence(&[oid(identifier), NULL.to_vec()])
}

pub(crate) fn oid(bytes: &[u8]) -> Vec<u8> {
    tagged(0x06, bytes)
}

pub(crate) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

/// Encodes a number that is not negative, with as few bytes as possible.
pub(crate) fn integer(number: usize) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(bytes.len() - 1);
    let sign: &[u8] = if bytes[zeros] & 0x80 == 0 { &[] } else { &[0] };
    tagged(0x02, &[sign, &bytes[zeros..]].concat())
}

/// The contents are always shorter than 128 bytes.
pub(crate) fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    debug_assert!(bytes.len() < 128, "a long form of length");
    let length = u8::try_from(bytes.len()).unwrap_or(0);
    [&[tag, length], bytes].concat()
}

const NULL: [u8; 2] = [5, 0];

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn integers_are_positive_and_short() {
        for (number, encoded) in [
            (0, &[2, 1, 0][..]),
            (20, &[2, 1, 20]),
            (127, &[2, 1, 127]),
            (128, &[2, 2, 0, 128]),
            (222, &[2, 2, 0, 222]),
            (478, &[2, 2, 1, 222]),
        ] {
            assert_eq!(integer(number), encoded, "{number}");
        }
    }
}
