//! Root of the keys of Retry tokens (RFC 9000 section 8.1.2) and stateless resets (section 10.3).
//!
//! The gateways of a fleet share it, and accept each other's Retry tokens. A restarted gateway still has it, and
//! sends stateless resets for its former connections.

use boring::{
    hash::{MessageDigest, hmac_sha256},
    hkdf::HkdfSuite,
};
use quadrille_resumption::FleetSecret;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// Keys of all QUIC listeners of a process.
#[derive(Clone)]
pub(crate) struct QuicKeys {
    root: Zeroizing<[u8; 32]>,
}

/// Key of stateless reset tokens.
pub(super) struct ResetTokens {
    key: Zeroizing<[u8; 32]>,
}

impl QuicKeys {
    /// Derives the keys of a fleet, or creates those of this process. Returns `None` if there are no random bytes.
    pub(crate) fn new(fleet: Option<&FleetSecret>) -> Option<Self> {
        if let Some(fleet) = fleet {
            return Some(Self { root: fleet.key_for(b"quic") });
        }
        let mut root = Zeroizing::new([0; 32]);
        boring::rand::rand_bytes(&mut *root).ok()?;
        Some(Self { root })
    }

    pub(super) fn for_retry(&self) -> Option<Zeroizing<[u8; 32]>> {
        self.derive(b"retry")
    }

    pub(super) fn for_resets(&self) -> Option<ResetTokens> {
        Some(ResetTokens { key: self.derive(b"stateless reset")? })
    }

    fn derive(&self, purpose: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        let mut key = Zeroizing::new([0; 32]);
        HkdfSuite::new(MessageDigest::sha256()).expand(&*self.root, purpose, &mut *key).ok()?;
        Some(key)
    }
}

impl ResetTokens {
    /// Returns the stateless reset token of a connection ID, which only a holder of the key can compute. `local` is
    /// the destination of the connection's datagrams: another gateway of the fleet that receives the same ID must not
    /// disclose the token of a connection that is live here (RFC 9000 section 21.11). Returns `None` if memory is
    /// exhausted.
    pub(super) fn of(&self, local: SocketAddr, id: &[u8]) -> Option<u128> {
        let ip = match local.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let place = [&ip.octets()[..], &local.port().to_be_bytes(), id].concat();
        let code = hmac_sha256(&*self.key, &place).ok()?;
        Some(u128::from_be_bytes(code.first_chunk().copied()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(keys: &QuicKeys, id: &[u8]) -> u128 {
        token_at("192.0.2.1:443", keys, id)
    }

    fn token_at(local: &str, keys: &QuicKeys, id: &[u8]) -> u128 {
        let local = local.parse().expect("an address");
        keys.for_resets().and_then(|tokens| tokens.of(local, id)).expect("a token")
    }

    #[test]
    fn a_fleet_has_the_same_tokens_and_others_have_not() {
        let fleet = |byte| QuicKeys::new(FleetSecret::new(&[byte; 32]).ok().as_ref()).expect("keys");
        assert_eq!(token(&fleet(1), b"id"), token(&fleet(1), b"id"));
        assert_ne!(token(&fleet(1), b"id"), token(&fleet(1), b"di"));
        assert_ne!(token(&fleet(1), b"id"), token(&fleet(2), b"id"));
        assert_ne!(token(&fleet(1), b"id"), token_at("192.0.2.2:443", &fleet(1), b"id"), "another gateway");
        assert_eq!(token(&fleet(1), b"id"), token_at("[::ffff:192.0.2.1]:443", &fleet(1), b"id"));
        let (one, other) = (QuicKeys::new(None).expect("keys"), QuicKeys::new(None).expect("keys"));
        assert_ne!(token(&one, b"id"), token(&other, b"id"));
        assert_ne!(one.for_retry(), other.for_retry());
        assert_eq!(fleet(1).for_retry(), fleet(1).for_retry());
    }
}
