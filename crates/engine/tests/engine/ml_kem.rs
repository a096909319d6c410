//! ML-KEM-768 in lanes against AWS-LC.

use aws_lc_sys as ffi;
use boring::rand::rand_bytes;
use quadrille_kernels::{
    Ceiling, Encapsulation, Lanes, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES, Outcome,
};
use std::ptr;

type Key = [u8; ML_KEM_PUBLIC_KEY_BYTES];
type Result = ([u8; ML_KEM_CIPHERTEXT_BYTES], [u8; 32]);

/// `TEST_OPERATIONS` sets the number of random operations (1,000 by default).
#[test]
fn lanes_and_aws_lc_give_the_same_for_the_same_randomness() {
    let lanes = Lanes::up_to(Ceiling::default());
    if lanes.ml_kem_width() == 1 {
        println!("not tested: this CPU has no lanes for ML-KEM");
        return;
    }
    let operations = std::env::var("TEST_OPERATIONS").map_or(1_000, |n| n.parse().expect("a number"));
    let mut done = 0;
    while done < operations {
        let count = 1 + done % 9;
        let keys: Vec<Key> = (0..count).map(|_| random_key()).collect();
        let mut randomness = vec![[0; 32]; count];
        rand_bytes(randomness.as_flattened_mut()).expect("random numbers");
        let mut results = vec![([0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]); count];
        let ops = keys.iter().zip(&randomness).zip(&mut results);
        let mut batch: Vec<_> =
            ops.map(|((key, m), (to, secret))| Encapsulation::new(key, m, to, secret)).collect();
        lanes.encapsulate(&mut batch);
        assert!(batch.iter().all(|op| op.outcome() == Outcome::Computed));
        for ((key, m), result) in keys.iter().zip(&randomness).zip(&results) {
            assert!(aws_lc(key, m) == *result, "{:02x?} {m:02x?}", &key[1152..]);
        }
        done += count;
    }
}

/// The coefficients of t are arbitrary numbers below q; no key pair needs to match.
fn random_key() -> Key {
    let mut key = [0; ML_KEM_PUBLIC_KEY_BYTES];
    rand_bytes(&mut key).expect("random numbers");
    for [low, middle, high] in key[..1152].as_chunks_mut().0 {
        let pair = u32::from_le_bytes([*low, *middle, *high, 0]);
        let (first, second) = ((pair & 0xfff) % 3329, (pair >> 12) % 3329);
        [*low, *middle, *high, _] = (first | second << 12).to_le_bytes();
    }
    key
}

fn aws_lc(key: &Key, randomness: &[u8; 32]) -> Result {
    let (mut ciphertext, mut secret) = ([0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]);
    let (mut ciphertext_len, mut secret_len, mut seed_len) = (ciphertext.len(), secret.len(), 32);
    // SAFETY: inputs and outputs have the given lengths, and allocated objects are freed.
    let ok = unsafe {
        let key = ffi::EVP_PKEY_kem_new_raw_public_key(ffi::NID_MLKEM768, key.as_ptr(), key.len());
        let context = ffi::EVP_PKEY_CTX_new(key, ptr::null_mut());
        let ok = ffi::EVP_PKEY_encapsulate_deterministic(
            context,
            ciphertext.as_mut_ptr(),
            &raw mut ciphertext_len,
            secret.as_mut_ptr(),
            &raw mut secret_len,
            randomness.as_ptr(),
            &raw mut seed_len,
        );
        ffi::EVP_PKEY_CTX_free(context);
        ffi::EVP_PKEY_free(key);
        ok
    };
    assert_eq!(ok, 1);
    (ciphertext, secret)
}
