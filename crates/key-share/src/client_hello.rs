//! Prediction of the group that BoringSSL will choose, with the client's share of it.

use quadrille_engine::{ClientShare, Group};

/// Returns the client's share of the group that BoringSSL will choose, if the engine computes that group.
///
/// `extension` returns the body of a ClientHello extension by its code point. `groups` are the server's, in its order
/// of preference, which determines the choice (`SSL_OP_CIPHER_SERVER_PREFERENCE`). `computes` returns whether to
/// submit a share of a group ([`Engine::awaits`](quadrille_engine::Engine::awaits)), and is called at most once.
/// `None` for a client that does not negotiate TLS 1.3, that needs a HelloRetryRequest, or that sends key shares that
/// BoringSSL rejects. The server must allow TLS 1.3.
pub fn predict<'a>(
    extension: impl Fn(u16) -> Option<&'a [u8]>,
    groups: &[u16],
    computes: impl Fn(Group) -> bool,
) -> Option<ClientShare> {
    const SUPPORTED_GROUPS: u16 = 10;
    const SUPPORTED_VERSIONS: u16 = 43;
    const KEY_SHARE: u16 = 51;
    let group = chosen(extension(SUPPORTED_VERSIONS)?, extension(SUPPORTED_GROUPS)?, groups)?;
    if !computes(group) {
        return None;
    }
    ClientShare::new(group, share(extension(KEY_SHARE)?, group)?)
}

/// Returns the server's first group that the client supports (RFC 8446 section 4.2.7).
fn chosen(versions: &[u8], offered: &[u8], groups: &[u16]) -> Option<Group> {
    const TLS_1_3: [u8; 2] = [3, 4];
    if !versions.get(1..)?.chunks_exact(2).any(|version| version == TLS_1_3) {
        return None;
    }
    let offered = offered.get(2..)?;
    let has = |group: &&u16| offered.chunks_exact(2).any(|other| other == group.to_be_bytes());
    groups.iter().find(has).copied().and_then(Group::from_code_point)
}

/// Returns the client's only share of this group (RFC 8446 section 4.2.8).
fn share(extension: &[u8], group: Group) -> Option<&[u8]> {
    let (mut rest, behind) = vector(extension)?;
    if !behind.is_empty() {
        return None;
    }
    let mut found = None;
    while !rest.is_empty() {
        let (code, entry) = rest.split_first_chunk()?;
        let (key, next) = vector(entry)?;
        if key.is_empty() {
            return None;
        }
        if u16::from_be_bytes(*code) == group.code_point() && found.replace(key).is_some() {
            return None;
        }
        rest = next;
    }
    found
}

/// Splits off a vector with a two-byte length prefix, and returns it with the rest.
fn vector(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X25519: u16 = 0x001d;
    const HYBRID: u16 = 0x11ec;
    const P256: u16 = 23;
    const GREASE: u16 = 0x8a8a;

    fn list(codes: &[u16]) -> Vec<u8> {
        let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_be_bytes()).collect();
        [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat()
    }

    fn shares(entries: &[(u16, &[u8])]) -> Vec<u8> {
        let entry = |(group, key): &(u16, &[u8])| {
            [&group.to_be_bytes()[..], &(key.len() as u16).to_be_bytes(), key].concat()
        };
        let entries: Vec<u8> = entries.iter().flat_map(entry).collect();
        [&(entries.len() as u16).to_be_bytes()[..], &entries].concat()
    }

    #[test]
    fn the_servers_first_group_that_the_client_has() {
        let versions = [4, 0x8a, 0x8a, 3, 4];
        let offered = list(&[GREASE, HYBRID, X25519, P256]);
        let chosen = |groups: &[u16]| chosen(&versions, &offered, groups);
        assert_eq!(chosen(&[HYBRID, X25519]), Some(Group::X25519MlKem768));
        assert_eq!(chosen(&[X25519, HYBRID]), Some(Group::X25519));
        assert_eq!(chosen(&[24, X25519]), Some(Group::X25519), "the client does not support P-384");
        assert_eq!(chosen(&[P256, X25519]), Some(Group::P256));
        assert_eq!(chosen(&[24]), None);
        let offered = list(&[24, X25519]);
        assert_eq!(super::chosen(&versions, &offered, &[24, X25519]), None, "BoringSSL computes P-384");
    }

    #[test]
    fn only_clients_that_get_tls_1_3() {
        assert_eq!(chosen(&[2, 3, 3], &list(&[X25519]), &[X25519]), None);
        assert_eq!(chosen(&[], &list(&[X25519]), &[X25519]), None);
        assert_eq!(chosen(&[2, 3, 4], &[], &[X25519]), None);
    }

    #[test]
    fn what_the_engine_does_not_compute_is_not_read() {
        let extensions = [(10, list(&[P256])), (43, vec![2, 3, 4]), (51, shares(&[(P256, &[4; 65])]))];
        let extension = |code| extensions.iter().find(|(other, _)| *other == code).map(|(_, body)| &body[..]);
        let predicted =
            |computes: bool| predict(extension, &[X25519, P256], |group| computes && group == Group::P256);
        assert_eq!(predicted(true).map(|share| share.group()), Some(Group::P256));
        assert!(predicted(false).is_none());
    }

    #[test]
    fn one_share_among_several() {
        let several = shares(&[(GREASE, &[0]), (HYBRID, &[1; 5]), (X25519, &[2; 32])]);
        assert_eq!(share(&several, Group::X25519), Some(&[2; 32][..]));
        assert_eq!(share(&several, Group::X25519MlKem768), Some(&[1; 5][..]));
        assert_eq!(share(&shares(&[(P256, &[4; 65])]), Group::X25519), None, "a HelloRetryRequest follows");
        assert_eq!(share(&shares(&[(P256, &[4; 65])]), Group::P256), Some(&[4; 65][..]));
    }

    #[test]
    fn what_boringssl_refuses_has_no_share() {
        let twice = shares(&[(X25519, &[2; 32]), (X25519, &[3; 32])]);
        assert_eq!(share(&twice, Group::X25519), None);
        assert_eq!(share(&shares(&[(X25519, &[2; 32]), (P256, &[])]), Group::X25519), None, "an empty share");
        let whole = shares(&[(X25519, &[2; 32])]);
        for len in 0..whole.len() {
            assert_eq!(share(&whole[..len], Group::X25519), None, "cut after {len} bytes");
        }
        assert_eq!(share(&[&whole[..], &[0]].concat(), Group::X25519), None, "a trailing byte");
    }
}
