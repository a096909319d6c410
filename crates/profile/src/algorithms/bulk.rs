//! Record protection and hashing.

use super::case::{Case, Purpose};
use boring::{
    aead::{AeadCtx, Algorithm},
    error::ErrorStack,
    hash::{MessageDigest, hash, hmac_sha1},
    symm::{Cipher, encrypt},
};

/// Sizes of one operation in bytes: small records up to the largest (RFC 8446 section 5.1).
const SIZES: [usize; 5] = [16, 256, 1024, 4096, 16_384];

pub(super) fn cases() -> Result<Vec<Case>, ErrorStack> {
    let mut cases = Vec::new();
    for bytes in SIZES {
        let aeads: [(&str, Algorithm, usize); 3] = [
            ("AES-128-GCM", Algorithm::aes_128_gcm(), 16),
            ("AES-256-GCM", Algorithm::aes_256_gcm(), 32),
            ("ChaCha20-Poly1305", Algorithm::chacha20_poly1305(), 32),
        ];
        for (name, algorithm, key_len) in aeads {
            cases.push(Case { bytes: Some(bytes), ..aead(name, &algorithm, key_len, bytes)? });
        }
        let cbc = [
            ("AES-128-CBC + SHA-1", Cipher::aes_128_cbc(), 16),
            ("AES-256-CBC + SHA-1", Cipher::aes_256_cbc(), 32),
        ];
        for (name, cipher, key_len) in cbc {
            cases.push(Case { bytes: Some(bytes), ..mac_then_encrypt(name, cipher, key_len, bytes) });
        }
        // Not usable for records without a MAC: included for comparison with `openssl speed`.
        for (name, cipher, key_len) in
            [("AES-128-CBC", Cipher::aes_128_cbc(), 16), ("AES-256-CBC", Cipher::aes_256_cbc(), 32)]
        {
            cases.push(Case { bytes: Some(bytes), ..cipher_alone(name, cipher, key_len, bytes) });
        }
        let digests = [
            ("SHA-1", MessageDigest::sha1()),
            ("SHA-256", MessageDigest::sha256()),
            ("SHA-384", MessageDigest::sha384()),
        ];
        for (name, digest) in digests {
            let message = vec![0x5a; bytes];
            let run = move || drop(std::hint::black_box(hash(digest, &message)));
            cases.push(Case { bytes: Some(bytes), ..Case::new(Purpose::Hash, name, run) });
        }
    }
    Ok(cases)
}

/// Seals one record in place, with the five bytes of its header as associated data (RFC 8446 section 5.2). The nonce
/// is constant: the records are never sent.
fn aead(name: &str, algorithm: &Algorithm, key_len: usize, bytes: usize) -> Result<Case, ErrorStack> {
    let mut context = AeadCtx::new_default_tag(algorithm, &vec![7; key_len])?;
    let nonce = vec![0; algorithm.nonce_len()];
    let mut record = vec![0x5a; bytes];
    let mut tag = vec![0; algorithm.max_overhead()];
    Ok(Case::new(Purpose::Record, name, move || {
        let _ = context.seal_in_place_mut(&nonce, &mut record, &mut tag, &[23, 3, 3, 0, 0]);
    }))
}

/// Seals one record by MAC-then-encrypt (RFC 5246 section 6.2.3.2).
fn mac_then_encrypt(name: &str, cipher: Cipher, key_len: usize, bytes: usize) -> Case {
    let (key, iv, record) = (vec![7; key_len], [0; 16], vec![0x5a; bytes]);
    let seal = move || -> Result<Vec<u8>, ErrorStack> {
        let mac = hmac_sha1(&[7; 20], &record)?;
        encrypt(cipher, &key, Some(&iv), &[&record[..], &mac].concat())
    };
    Case::new(Purpose::Record, name, move || drop(std::hint::black_box(seal())))
}

fn cipher_alone(name: &str, cipher: Cipher, key_len: usize, bytes: usize) -> Case {
    let (key, iv, text) = (vec![7; key_len], [0; 16], vec![0x5a; bytes]);
    Case::new(Purpose::Record, name, move || {
        drop(std::hint::black_box(encrypt(cipher, &key, Some(&iv), &text)));
    })
}
