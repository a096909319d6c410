//! Frames of HTTP/2 (RFC 9113), written as bytes.

/// Frame types (RFC 9113 section 6).
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// Flags of frames.
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Identifier of SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Returns a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the connection preface with this initial window of streams, and the largest window of the connection.
pub(super) fn preface(window: u32) -> Vec<u8> {
    let mut setting = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
    setting.extend(window.to_be_bytes());
    let connection = frame(WINDOW_UPDATE, 0, 0, &(0x7fff_ffff_u32 - 65_535).to_be_bytes());
    [PREFACE, &frame(SETTINGS, 0, 0, &setting), &connection].concat()
}

/// Returns the header block of a request, without dynamic table entries (RFC 7541).
pub(super) fn header_block(method: &str, path: &str) -> Vec<u8> {
    // Indexed fields of the static table: GET, POST, https.
    let mut block = vec![if method == "POST" { 0x83 } else { 0x82 }, 0x87];
    for (index, value) in [(4_u8, path), (1, "localhost")] {
        block.extend([index, value.len() as u8 & 0x7f]);
        block.extend(value.bytes());
    }
    // `accept-encoding: gzip, deflate`: servers with compression compress the response.
    block.push(0x90);
    block
}

/// Returns the HEADERS frame of a request; `flags` besides END_HEADERS.
pub(super) fn request(stream: u32, method: &str, path: &str, flags: u8) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &header_block(method, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_form_of_the_rfc() {
        assert_eq!(frame(PING, 0, 0, &[0; 8])[..9], [0, 0, 8, 6, 0, 0, 0, 0, 0]);
        let get = request(1, "GET", "/", END_STREAM);
        assert_eq!(get[..9], [0, 0, 17, HEADERS, 5, 0, 0, 0, 1]);
        assert_eq!(get[9..14], [0x82, 0x87, 4, 1, b'/']);
        assert!(preface(0).starts_with(b"PRI * HTTP/2.0"));
    }
}
