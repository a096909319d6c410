//! Retry tokens for address validation (RFC 9000 section 8.1.2), so that a flood from spoofed addresses causes no
//! handshakes. They require no state.

use boring::symm::{self, Cipher};
use quiche::ConnectionId;
use std::net::SocketAddr;
use zeroize::Zeroizing;

/// Lifetime of a token in seconds: several times the round trip of any path.
const LIFETIME: u64 = 15;

const NONCE: usize = 12;
const TAG: usize = 16;
const TIME: usize = 8;

/// Seals tokens, and opens those of the same key.
pub(super) struct RetryTokens {
    /// AES-256-GCM key.
    key: Zeroizing<[u8; 32]>,
}

impl RetryTokens {
    pub(super) fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self { key }
    }

    /// Seals a token for a client with the original destination connection ID `original`; `now` is in seconds.
    pub(super) fn seal(&self, now: u64, client: SocketAddr, original: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE];
        boring::rand::rand_bytes(&mut nonce).ok()?;
        let (content, mut tag) = ([&now.to_be_bytes()[..], original].concat(), [0; TAG]);
        let place = place(client);
        let cipher = Cipher::aes_256_gcm();
        let sealed = symm::encrypt_aead(cipher, &*self.key, Some(&nonce), &place, &content, &mut tag).ok()?;
        Some([&nonce[..], &sealed, &tag].concat())
    }

    /// Returns the original destination connection ID; `None` if the token was not recently issued to this client.
    pub(super) fn open(&self, now: u64, client: SocketAddr, token: &[u8]) -> Option<ConnectionId<'static>> {
        let (nonce, rest) = token.split_at_checked(NONCE)?;
        let (sealed, tag) = rest.split_at_checked(rest.len().checked_sub(TAG)?)?;
        let place = place(client);
        let cipher = Cipher::aes_256_gcm();
        let opened = symm::decrypt_aead(cipher, &*self.key, Some(nonce), &place, sealed, tag);
        if opened.is_err() {
            // BoringSSL's error queue belongs to the thread, and another caller would read this error.
            drop(boring::error::ErrorStack::get());
        }
        let opened = opened.ok()?;
        let (made, original) = opened.split_at_checked(TIME)?;
        let made = u64::from_be_bytes(made.try_into().ok()?);
        let is_fresh = now.checked_sub(made).is_some_and(|age| age <= LIFETIME);
        let is_id = (1..=quiche::MAX_CONN_ID_LEN).contains(&original.len());
        (is_fresh && is_id).then(|| ConnectionId::from_vec(original.to_vec()))
    }
}

/// Encodes the client's address including its port, because many clients may share an address.
fn place(client: SocketAddr) -> Vec<u8> {
    let port = client.port().to_be_bytes();
    match client.ip().to_canonical() {
        std::net::IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        std::net::IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_client_and_for_a_while() {
        let tokens = RetryTokens::new(Zeroizing::new([1; 32]));
        let client: SocketAddr = "192.0.2.1:4433".parse().expect("an address");
        let token = tokens.seal(1000, client, b"original").expect("a token");
        let open = |now, client: &str| tokens.open(now, client.parse().expect("an address"), &token);
        assert_eq!(open(1000, "192.0.2.1:4433").as_deref(), Some(&b"original"[..]));
        assert!(open(1000 + LIFETIME, "192.0.2.1:4433").is_some());
        assert!(open(1000 + LIFETIME + 1, "192.0.2.1:4433").is_none(), "too late");
        assert!(open(999, "192.0.2.1:4433").is_none(), "from the future");
        assert!(open(1000, "192.0.2.1:4434").is_none(), "another port");
        assert!(open(1000, "192.0.2.2:4433").is_none(), "another address");
        assert!(open(1000, "[::ffff:192.0.2.1]:4433").is_some(), "the same, as a socket for both sees it");
        assert!(RetryTokens::new(Zeroizing::new([2; 32])).open(1000, client, &token).is_none());
        assert!(
            RetryTokens::new(Zeroizing::new([1; 32])).open(1000, client, &token).is_some(),
            "another gateway's"
        );
        for at in 0..token.len() {
            let mut damaged = token.clone();
            damaged[at] ^= 1;
            assert!(tokens.open(1000, client, &damaged).is_none(), "byte {at}");
            assert!(tokens.open(1000, client, &token[..at]).is_none(), "{at} bytes");
        }
        assert!(tokens.open(1000, client, &tokens.seal(1000, client, b"").expect("a token")).is_none());
    }
}
