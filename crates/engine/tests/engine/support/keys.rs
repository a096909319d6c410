//! One key of each type, generated on first use: the large ones take seconds, and each test is a process.

use boring::{
    ec::{EcGroup, EcKey},
    nid::Nid,
    pkey::PKey,
    rsa::Rsa,
};
use quadrille_engine::{Key, KeyType, MlDsa, SignatureScheme as S};
use std::sync::LazyLock;

static RSA: [LazyLock<Key>; 4] = [
    LazyLock::new(|| new_rsa(1024)),
    LazyLock::new(|| new_rsa(2048)),
    LazyLock::new(|| new_rsa(3072)),
    LazyLock::new(|| new_rsa(4096)),
];
static EC: LazyLock<[Key; 3]> =
    LazyLock::new(|| [Nid::X9_62_PRIME256V1, Nid::SECP384R1, Nid::SECP521R1].map(new_ec));

/// Fastest RSA key that the engine accepts.
pub(crate) fn rsa1024() -> Key {
    (*RSA[0]).clone()
}

pub(crate) fn rsa2048() -> Key {
    (*RSA[1]).clone()
}

pub(crate) fn ec_p256() -> Key {
    EC[0].clone()
}

pub(crate) fn ec_p384() -> Key {
    EC[1].clone()
}

/// Key from fixed bytes: every seed is a private key.
pub(crate) fn ed25519() -> Key {
    const PKCS8_HEADER: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let der = [&PKCS8_HEADER[..], &[7; 32]].concat();
    key(PKey::private_key_from_der(&der).unwrap())
}

/// Generates a key.
pub(crate) fn ml_dsa(set: MlDsa) -> Key {
    Key::generate(KeyType::MlDsa(set)).unwrap()
}

pub(crate) fn all_keys() -> Vec<Key> {
    let classical = RSA.iter().map(|key| (**key).clone()).chain(EC.iter().cloned()).chain([ed25519()]);
    classical.chain(MlDsa::ALL.map(ml_dsa)).collect()
}

/// Returns every scheme that a key of this type and size supports.
pub(crate) fn schemes_of(key: &Key) -> &'static [S] {
    match key.key_type() {
        KeyType::Rsa { bits: 1024 } => &RSA_SCHEMES[..7],
        KeyType::Rsa { .. } => &RSA_SCHEMES,
        KeyType::Ed25519 => &[S::Ed25519],
        KeyType::MlDsa(MlDsa::MlDsa44) => &[S::MlDsa(MlDsa::MlDsa44)],
        KeyType::MlDsa(MlDsa::MlDsa65) => &[S::MlDsa(MlDsa::MlDsa65)],
        KeyType::MlDsa(MlDsa::MlDsa87) => &[S::MlDsa(MlDsa::MlDsa87)],
        _ => &[S::EcdsaSha256, S::EcdsaSha1, S::EcdsaSha384, S::EcdsaSha512],
    }
}

const RSA_SCHEMES: [S; 8] = [
    S::RsaPkcs1Sha256,
    S::RsaPkcs1Sha1,
    S::RsaPkcs1Sha384,
    S::RsaPkcs1Sha512,
    S::RsaPkcs1Md5Sha1,
    S::RsaPssSha256,
    S::RsaPssSha384,
    S::RsaPssSha512,
];

fn new_rsa(bits: u32) -> Key {
    key(PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap())
}

fn new_ec(curve: Nid) -> Key {
    let group = EcGroup::from_curve_name(curve).unwrap();
    key(PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap())
}

fn key(pkey: PKey<boring::pkey::Private>) -> Key {
    Key::from_pkey(pkey).unwrap()
}
