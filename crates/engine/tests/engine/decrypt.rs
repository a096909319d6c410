//! Raw RSA decryption, and operations that do not fit their key.

use crate::support::{all_keys, ec_p256, ec_p384, ed25519, rsa1024, rsa2048, settings, start};
use boring::{bn::BigNum, rsa::Padding};
use quadrille_engine::{
    Engine, Key, KeyType, Operation, OperationError as E, Scalar, SignatureScheme as S, Unobserved,
};

fn engine() -> Engine {
    start(settings(1, 8), Scalar, Unobserved)
}

#[test]
fn what_the_public_key_encrypts_is_decrypted_with_its_padding_on() {
    let engine = engine();
    for key in all_keys().into_iter().filter(|key| matches!(key.key_type(), KeyType::Rsa { .. })) {
        let rsa = key.pkey().rsa().unwrap();
        let mut ciphertext = vec![0; rsa.size() as usize];
        rsa.public_encrypt(b"premaster secret", &mut ciphertext, Padding::PKCS1).unwrap();
        let operation = Operation::decrypt(&ciphertext);
        let outcome = engine.submit(&key, operation).unwrap().wait().unwrap();
        let (padding, message) = outcome.bytes.split_at(ciphertext.len() - 16);
        assert_eq!(message, b"premaster secret");
        assert!(
            matches!(padding, [0, 2, fill @ .., 0] if fill.iter().all(|&byte| byte != 0)),
            "RFC 8017, 7.2.1"
        );
    }
}

#[test]
fn every_number_below_the_modulus_is_decrypted_and_no_other() {
    let key = rsa1024();
    let rsa = key.pkey().rsa().unwrap();
    let len = rsa.size() as usize;
    let modulus = rsa.n().to_vec_padded(len).unwrap();
    let mut below = BigNum::from_slice(&modulus).unwrap();
    below.sub_word(1).unwrap();
    let below = below.to_vec_padded(len).unwrap();
    let decrypt = |ciphertext: &[u8]| {
        engine().submit(&key, Operation::decrypt(ciphertext))?.wait().map(|outcome| outcome.bytes.to_vec())
    };
    assert_eq!(decrypt(&vec![0; len]).unwrap(), vec![0; len], "0 is its own power");
    assert_eq!(decrypt(&below).unwrap(), below, "and so is -1, for an odd exponent");
    assert_eq!(decrypt(&modulus), Err(E::InvalidInput));
    assert_eq!(decrypt(&vec![0xff; len]), Err(E::InvalidInput));
    for wrong in [0, 1, len - 1, len + 1] {
        assert_eq!(decrypt(&vec![0; wrong]), Err(E::InvalidInput), "{wrong} bytes");
    }
}

/// Returns the reason for which an operation is rejected.
fn refused(key: &Key, operation: Operation) -> Option<E> {
    let refusal = operation.check(key.public()).err();
    assert_eq!(engine().submit(key, operation).err(), refusal, "the engine makes the same check");
    refusal
}

#[test]
fn only_rsa_decrypts() {
    for key in [ec_p256(), ec_p384(), ed25519()] {
        assert_eq!(refused(&key, Operation::decrypt(&[0; 128])), Some(E::WrongKeyType));
    }
}

#[test]
fn schemes_of_other_keys_are_refused() {
    for key in all_keys() {
        let (rsa, ec) = (S::RsaPssSha256, S::EcdsaSha256);
        for scheme in [rsa, ec, S::Ed25519].into_iter().filter(|scheme| !scheme.fits(key.key_type())) {
            let operation = Operation::sign(scheme, b"message").unwrap();
            assert_eq!(refused(&key, operation), Some(E::WrongKeyType), "{scheme:?}");
        }
    }
}

/// Operations are plain data, and may be constructed with invalid contents: submitting reports it, and signs nothing.
#[test]
fn operations_made_by_hand_are_checked() {
    let (rsa, small) = (rsa2048(), rsa1024());
    let sign = |scheme, len| Operation::Sign { scheme, digest: vec![1; len].into() };

    assert_eq!(refused(&ec_p384(), sign(S::RsaPkcs1Sha256, 32)), Some(E::WrongKeyType));
    assert_eq!(refused(&ed25519(), sign(S::RsaPssSha256, 32)), Some(E::WrongKeyType));
    assert_eq!(refused(&rsa, sign(S::EcdsaSha256, 32)), Some(E::WrongKeyType));
    for scheme in [S::RsaPkcs1Sha256, S::RsaPssSha256, S::RsaPkcs1Md5Sha1] {
        assert_eq!(refused(&rsa, sign(scheme, 20)), Some(E::InvalidInput), "{scheme:?}");
    }
    assert_eq!(refused(&ec_p384(), sign(S::EcdsaSha384, 32)), Some(E::InvalidInput));
    let ciphertext = |len| Operation::Decrypt { ciphertext: vec![1; len].into() };
    assert_eq!(refused(&rsa, ciphertext(5)), Some(E::InvalidInput));
    assert_eq!(refused(&ec_p256(), ciphertext(256)), Some(E::WrongKeyType));
    let too_long = Operation::sign(S::RsaPssSha512, b"message").unwrap();
    assert_eq!(refused(&small, too_long), Some(E::InvalidInput), "no room");
}
