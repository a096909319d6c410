//! Frames of HTTP/3 (RFC 9114), written as bytes.

/// Frame types (RFC 9114 section 7.2).
pub(super) const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;

/// Type of a control stream (RFC 9114 section 6.2.1).
const CONTROL: u64 = 0;

/// Encodes an integer with a variable length (RFC 9000 section 16), below 2^30.
fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        _ => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
    }
}

/// Returns a frame.
pub(super) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [varint(kind), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// Returns the start of a control stream, with empty settings.
pub(super) fn control() -> Vec<u8> {
    [varint(CONTROL), frame(SETTINGS, &[])].concat()
}

/// Returns the HEADERS frame of a request.
pub(super) fn request(method: &str, path: &str) -> Vec<u8> {
    // No dynamic table; indexed fields of the static table: GET or POST, https (RFC 9204 section 4.5 and appendix A).
    let mut block = vec![0, 0, if method == "POST" { 0xd4 } else { 0xd1 }, 0xd7];
    // Literal values of `:authority` and `:path`.
    for (name, value) in [(0x50, "localhost"), (0x51, path)] {
        block.extend([name, value.len() as u8 & 0x7f]);
        block.extend(value.bytes());
    }
    // `accept-encoding: gzip, deflate, br`: servers with compression compress the response.
    block.push(0xdf);
    frame(HEADERS, &block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_form_of_the_rfc() {
        assert_eq!(frame(DATA, b"x"), [0, 1, b'x']);
        assert_eq!(frame(DATA, &[0; 1024])[..3], [0, 0x44, 0]);
        assert_eq!(varint(100_000), [0x80, 1, 0x86, 0xa0]);
        assert_eq!(control(), [0, 4, 0]);
        assert_eq!(request("GET", "/")[..6], [1, 19, 0, 0, 0xd1, 0xd7]);
    }
}
