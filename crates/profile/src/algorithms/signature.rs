//! Signatures: RSA in scalar code and in lanes, ECDSA, Ed25519.

use super::case::{Case, Purpose};
use crate::gpu::numbers_of;
use boring::{
    ec::{EcGroup, EcKey},
    ecdsa::EcdsaSig,
    error::ErrorStack,
    nid::Nid,
    pkey::{PKey, Private},
    rsa::{Padding, Rsa},
    sign::{Signer, Verifier},
};
use quadrille_kernels::{
    Ceiling, Components, Lanes, P256_BYTES, P256Key, P256Signature, PrivateKey, PrivateOperation,
};
use std::rc::Rc;

pub(super) fn cases() -> Result<Vec<Case>, ErrorStack> {
    let mut cases = Vec::new();
    for bits in [2048, 3072, 4096] {
        cases.extend(rsa(bits)?);
    }
    for (name, curve) in [("ECDSA P-256", Nid::X9_62_PRIME256V1), ("ECDSA P-384", Nid::SECP384R1)] {
        cases.extend(ecdsa(name, curve)?);
    }
    cases.extend(ed25519()?);
    Ok(cases)
}

/// Returns cases for signatures with the keys of the measured handshakes, in scalar code and in lanes.
pub(super) fn of_a_handshake() -> Result<Vec<Case>, ErrorStack> {
    let scalar = ecdsa("ECDSA P-256", Nid::X9_62_PRIME256V1)?;
    Ok(rsa(2048)?.into_iter().chain(scalar).chain(ecdsa_in_lanes()).collect())
}

fn rsa(bits: u32) -> Result<Vec<Case>, ErrorStack> {
    let key = Rc::new(Rsa::generate(bits)?);
    let name = format!("RSA-{bits}");
    let len = key.size() as usize;
    let input: Vec<u8> = [&[0][..], &vec![0x5a; len - 1]].concat();
    let mut signature = vec![0; len];
    key.private_encrypt(&input, &mut signature, Padding::NONE)?;

    let (signer, verifier) = (Rc::clone(&key), Rc::clone(&key));
    let (mut signed, mut opened) = (vec![0; len], vec![0; len]);
    let message = input.clone();
    let mut cases = vec![
        Case::new(Purpose::Sign, &name, move || {
            signer.private_encrypt(&message, &mut signed, Padding::NONE).map(drop).unwrap_or_default();
        }),
        Case::new(Purpose::Verify, &name, move || {
            verifier.public_decrypt(&signature, &mut opened, Padding::NONE).map(drop).unwrap_or_default();
        }),
    ];
    for ceiling in [Ceiling::Avx2, Ceiling::Ifma] {
        let lanes = Lanes::up_to(ceiling);
        if lanes.name() == ceiling.to_string() {
            cases.extend(take_apart(&key).map(|key| in_lanes(&name, lanes, key, input.clone())));
        }
    }
    Ok(cases)
}

/// Fills all lanes with operations of one key.
fn in_lanes(name: &str, lanes: Lanes, key: PrivateKey, input: Vec<u8>) -> Case {
    let (by, operations) = (lanes.name(), lanes.width());
    let mut outputs = vec![vec![0; input.len()]; operations];
    let run = move || {
        let mut ops: Vec<_> =
            outputs.iter_mut().map(|output| PrivateOperation::new(&key, &input, output)).collect();
        lanes.private_operations(&mut ops);
    };
    Case { by, operations, ..Case::new(Purpose::Sign, name, run) }
}

fn take_apart(rsa: &Rsa<Private>) -> Option<PrivateKey> {
    let [n, e, p, q, dp, dq, qinv] = &numbers_of(rsa)?;
    PrivateKey::new(&Components { n, e, p, q, dp, dq, qinv }).ok()
}

fn ecdsa(name: &str, curve: Nid) -> Result<[Case; 2], ErrorStack> {
    let group = EcGroup::from_curve_name(curve)?;
    let key = Rc::new(EcKey::generate(&group)?);
    let digest = [0x5a; 32];
    let signature = EcdsaSig::sign(&digest, &key)?;
    let verifier = Rc::clone(&key);
    Ok([
        Case::new(Purpose::Sign, name, move || drop(EcdsaSig::sign(&digest, &key))),
        Case::new(Purpose::Verify, name, move || drop(signature.verify(&digest, &verifier))),
    ])
}

/// Fills all lanes with operations of one key; `None` on a CPU without lanes for P-256.
fn ecdsa_in_lanes() -> Option<Case> {
    let lanes = Lanes::up_to(Ceiling::Ifma);
    let (by, operations) = (lanes.name(), lanes.p256_width());
    let key = P256Key::new(&[0x5a; P256_BYTES]).filter(|_| operations > 1)?;
    let mut signatures = vec![[0; 2 * P256_BYTES]; operations];
    let run = move || {
        let sign = |signature| P256Signature::new(&key, &[0xa5; 32], signature);
        lanes.sign_p256(&mut signatures.iter_mut().map(sign).collect::<Vec<_>>());
    };
    Some(Case { by, operations, ..Case::new(Purpose::Sign, "ECDSA P-256", run) })
}

fn ed25519() -> Result<[Case; 2], ErrorStack> {
    // Any 32 bytes are a private key (RFC 8032 section 5.1.5), here in PKCS#8 (RFC 8410).
    const HEADER: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let key: Rc<PKey<Private>> = Rc::new(PKey::private_key_from_der(&[&HEADER[..], &[7; 32]].concat())?);
    let message = [0x5a; 130];
    let signature = Signer::new_without_digest(&key)?.sign_oneshot_to_vec(&message)?;
    let signer = Rc::clone(&key);
    Ok([
        Case::new(Purpose::Sign, "Ed25519", move || {
            drop(
                Signer::new_without_digest(&signer)
                    .and_then(|mut signer| signer.sign_oneshot_to_vec(&message)),
            );
        }),
        Case::new(Purpose::Verify, "Ed25519", move || {
            drop(
                Verifier::new_without_digest(&key)
                    .and_then(|mut verifier| verifier.verify_oneshot(&signature, &message)),
            );
        }),
    ])
}
