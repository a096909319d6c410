//! Handshake hints: BoringSSL's interface for precomputed results (`SSL_set_handshake_hints`).

use boring::{error::ErrorStack, ssl::SslRef};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_engine::ServerShare;
use zeroize::Zeroize;

/// Passes the server's share and the shared secret to a connection in its handshake. BoringSSL uses them if it
/// chooses their group in TLS 1.3, and computes its own otherwise. They must be the response to the share in this
/// connection's ClientHello.
///
/// # Errors
/// If BoringSSL has no memory.
pub fn hand_over(ssl: &mut SslRef, share: &ServerShare) -> Result<(), ErrorStack> {
    let hint = encode(share.group.code_point(), &share.public, &share.secret);
    // SAFETY: the connection is live, and the hint readable for its length; BoringSSL copies it, and wipes the copy.
    match unsafe { ffi::SSL_set_handshake_hints(ssl.as_ptr(), hint.der.as_ptr(), hint.der.len()) } {
        1 => Ok(()),
        _ => Err(ErrorStack::get()),
    }
}

/// Encoded hint. Only the secret, its end, is wiped on drop: a public share of ML-KEM is much longer.
struct Hint {
    der: Vec<u8>,
    secret: usize,
}

impl Drop for Hint {
    fn drop(&mut self) {
        let public = self.der.len() - self.secret;
        self.der[public..].zeroize();
    }
}

/// Encodes the DER form `SEQUENCE { [1] { INTEGER group, OCTET STRING public, OCTET STRING secret } }`, described as
/// `HandshakeHints` in `ssl/handoff.cc`. All other hints are optional.
fn encode(group: u16, public: &[u8], secret: &[u8]) -> Hint {
    const SEQUENCE: u8 = 0x30;
    const KEY_SHARE: u8 = 0xa1;
    const INTEGER: u8 = 0x02;
    const OCTET_STRING: u8 = 0x04;
    let group = group.to_be_bytes();
    // Minimal unsigned form: a group from 0x8000 on would need a leading zero.
    let group = if group[0] == 0 { &group[1..] } else { &group[..] };
    let parts = [(INTEGER, group), (OCTET_STRING, public), (OCTET_STRING, secret)];
    let inner = parts.iter().map(|(_, part)| element_len(part.len())).sum();
    // Allocates the full size: a vector that grows would leave a copy of the secret behind.
    let mut der = Vec::with_capacity(element_len(element_len(inner)));
    begin_element(&mut der, SEQUENCE, element_len(inner));
    begin_element(&mut der, KEY_SHARE, inner);
    for (tag, part) in parts {
        begin_element(&mut der, tag, part.len());
        der.extend_from_slice(part);
    }
    Hint { der, secret: secret.len() }
}

/// Returns the length of an element with contents of `inside` bytes, less than 64 Ki.
fn element_len(inside: usize) -> usize {
    let length = match inside {
        0..0x80 => 1,
        0x80..0x100 => 2,
        _ => 3,
    };
    1 + length + inside
}

fn begin_element(der: &mut Vec<u8>, tag: u8, inside: usize) {
    der.push(tag);
    let [.., high, low] = inside.to_be_bytes();
    match inside {
        0..0x80 => der.push(low),
        0x80..0x100 => der.extend([0x81, low]),
        _ => der.extend([0x82, high, low]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_the_shortest_form() {
        let hint = encode(0x1d, &[7; 32], &[9; 32]);
        let der = &hint.der;
        assert_eq!(der[..7], [0x30, 73, 0xa1, 71, 2, 1, 0x1d]);
        assert_eq!((der[7..9].to_vec(), der[41..43].to_vec()), (vec![4, 32], vec![4, 32]));
        assert_eq!((der.len(), der.capacity()), (75, 75));
        let hint = encode(0x11ec, &[7; 1120], &[9; 64]);
        let der = &hint.der;
        assert_eq!(der[..8], [0x30, 0x82, 4, 0xae, 0xa1, 0x82, 4, 0xaa]);
        assert_eq!(der[8..16], [2, 2, 0x11, 0xec, 4, 0x82, 4, 0x60]);
        assert_eq!((der.len(), der.capacity()), (4 + 0x4ae, 4 + 0x4ae));
        assert_eq!(encode(0x1d, &[7; 200], &[]).der[..3], [0x30, 0x81, 211]);
    }
}
