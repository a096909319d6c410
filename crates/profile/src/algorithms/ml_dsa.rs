//! Signatures of ML-DSA: in scalar code, by BoringSSL, and in lanes.

use super::case::{Case, Purpose};
use boring::{
    error::ErrorStack,
    sign::{Signer, Verifier},
};
use quadrille_engine::{Key, KeyType};
use quadrille_kernels::{Ceiling, Lanes, MlDsa, MlDsaMessage, MlDsaSignature, MlDsaVerification};
use std::rc::Rc;

/// Length of what a server signs in TLS 1.3 with SHA-256 (RFC 8446 section 4.4.3).
const MESSAGE: [u8; 130] = [0x5a; 130];

/// Operations in one batch of lanes, as many as the engine takes at once.
const OPERATIONS: usize = 8;

pub(super) fn cases() -> Result<Vec<Case>, ErrorStack> {
    let mut cases = Vec::new();
    for (set, name) in
        [(MlDsa::MlDsa44, "ML-DSA-44"), (MlDsa::MlDsa65, "ML-DSA-65"), (MlDsa::MlDsa87, "ML-DSA-87")]
    {
        cases.extend(scalar(set, name)?);
        for ceiling in [Ceiling::Avx2, Ceiling::Ifma] {
            let lanes = Lanes::up_to(ceiling);
            if lanes.name() == ceiling.to_string() {
                cases.extend(in_lanes(set, name, lanes));
            }
        }
    }
    Ok(cases)
}

fn scalar(set: MlDsa, name: &str) -> Result<Vec<Case>, ErrorStack> {
    let Ok(key) = Key::generate(KeyType::MlDsa(set)) else { return Ok(Vec::new()) };
    let signature = Signer::new_without_digest(key.pkey())?.sign_oneshot_to_vec(&MESSAGE)?;
    let verifier = key.clone();
    Ok(vec![
        Case::new(Purpose::Sign, name, move || {
            drop(
                Signer::new_without_digest(key.pkey())
                    .and_then(|mut signer| signer.sign_oneshot_to_vec(&MESSAGE)),
            );
        }),
        Case::new(Purpose::Verify, name, move || {
            drop(
                Verifier::new_without_digest(verifier.pkey())
                    .and_then(|mut verifier| verifier.verify_oneshot(&signature, &MESSAGE)),
            );
        }),
    ])
}

/// Fills all lanes with operations of one key. Each signature is another one, so that the mean has all numbers of
/// attempts.
fn in_lanes(set: MlDsa, name: &str, lanes: Lanes) -> [Case; 2] {
    let by = lanes.name();
    let (lanes, key) = (Rc::new(lanes), Rc::new(lanes_key(set)));
    let message = MlDsaMessage::Pure { message: &MESSAGE, context: &[] };
    let mut signatures = vec![vec![0; set.signature_bytes()]; OPERATIONS];
    let sign = {
        let (lanes, key) = (Rc::clone(&lanes), Rc::clone(&key));
        move |signatures: &mut Vec<Vec<u8>>| {
            let batch = signatures.iter_mut().map(|signature| MlDsaSignature::new(&key, message, signature));
            lanes.sign_ml_dsa(&mut batch.collect::<Vec<_>>());
        }
    };
    sign(&mut signatures);
    let signed = signatures.clone();
    let verify = move || {
        let batch =
            signed.iter().map(|signature| MlDsaVerification::new(key.public_key(), message, signature));
        lanes.verify_ml_dsa(&mut batch.collect::<Vec<_>>());
    };
    let case = |purpose, run: Box<dyn FnMut()>| Case {
        by,
        operations: OPERATIONS,
        run,
        ..Case::new(purpose, name, || ())
    };
    [case(Purpose::Sign, Box::new(move || sign(&mut signatures))), case(Purpose::Verify, Box::new(verify))]
}

fn lanes_key(set: MlDsa) -> quadrille_kernels::MlDsaKey {
    Lanes::up_to(Ceiling::Portable).ml_dsa_key(set, &[7; 32])
}
