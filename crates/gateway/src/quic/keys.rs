//! What a gateway proves to its clients by, before and after there is a connection: the root of the keys of its Retry tokens
//! (RFC 9000 section 8.1.2) and stateless resets (section 10.3).
//!
//! The gateways of a fleet have it in common, and take each other's Retry tokens. One that was started again has it still, and
//! tells clients whose connections it had that these are gone.

use boring::{
    hash::{MessageDigest, hmac_sha256},
    hkdf::HkdfSuite,
};
use quadrille_resumption::FleetSecret;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// Of all QUIC listeners of a process.
#[derive(Clone)]
pub(crate) struct QuicKeys {
    root: Zeroizing<[u8; 32]>,
}

/// Makes the tokens by which clients know that a connection is gone.
pub(super) struct ResetTokens {
    key: Zeroizing<[u8; 32]>,
}

impl QuicKeys {
    /// Those of a fleet, or of this process alone. `None` if there are no random bytes.
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
    /// The token of a connection id: whoever has the key can tell it again, and nobody else. `local` is where the connection's
    /// datagrams come to: another gateway of the fleet, asked for the same id, must not tell the token of a connection
    /// that lives here (RFC 9000 section 21.11). Without memory there is none.
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
