//! Vectors of NIST's ACVP on every tier of this CPU: keys from seeds, signatures, and verifications.

use super::batch::Pool;
use super::kernels::Kernels;
use super::tests::on_each_tier;
use super::vectors::{sign_one, verify_one};
use super::{MlDsa, MlDsaMessage};
use boring_sys as ffi;

const VECTORS: &str = include_str!("acvp.txt");

#[test]
fn published_keys_signatures_and_verifications() {
    on_each_tier!(run);
}

fn run<K: Kernels>(pool: &Pool<K>) {
    let mut counts = [0; 3];
    let mut public = Vec::new();
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split(' ').collect();
        let set = match fields[1] {
            "44" => MlDsa::MlDsa44,
            "65" => MlDsa::MlDsa65,
            "87" => MlDsa::MlDsa87,
            other => panic!("an unknown parameter set: {other}"),
        };
        let id = format!("{} {}, case {}", fields[0], fields[1], fields[2]);
        match fields[..] {
            ["keygen", _, _, seed, expected, ref expanded @ ..] => {
                let seed = bytes(seed).try_into().expect("a seed of 32 bytes");
                let key = pool.key(set, &seed);
                assert_eq!(sha256(key.public_key().encoded()), expected, "{id}");
                for expanded in expanded {
                    let other = pool.expanded_key(set, &bytes(expanded)).expect(&id);
                    assert_eq!(other.public_key().encoded(), key.public_key().encoded(), "{id}");
                    let message = MlDsaMessage::Formatted(b"the same signatures");
                    let [one, two] = [&key, &other].map(|key| sign_one(pool, key, message, &[7; 32]));
                    assert!(one.is_some() && one == two, "{id}");
                }
                counts[0] += 1;
            }
            ["sign", _, _, key, message, random, expected] => {
                let key = pool.expanded_key(set, &bytes(key)).expect(&id);
                let random = bytes(random).try_into().expect("a random number of 32 bytes");
                let message = bytes(message);
                let signature = sign_one(pool, &key, MlDsaMessage::Formatted(&message), &random);
                assert_eq!(sha256(&signature.expect(&id)), expected, "{id}");
                counts[1] += 1;
            }
            ["public", _, key] => public = bytes(key),
            ["verify", _, _, message, signature, expected] => {
                let (message, signature) = (bytes(message), bytes(signature));
                let found = verify_one(pool, set, &public, MlDsaMessage::Formatted(&message), &signature);
                assert_eq!(found, expected == "valid", "{id}");
                counts[2] += 1;
            }
            _ => panic!("an unknown line: {id}"),
        }
    }
    assert_eq!(counts, [75, 12, 21]);
}

/// Decodes base64.
fn bytes(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    let mut bytes = vec![0; text.len()];
    let mut length = 0;
    // SAFETY: both buffers have the lengths that are passed.
    let ok = unsafe {
        let (out, room) = (bytes.as_mut_ptr(), bytes.len());
        ffi::EVP_DecodeBase64(out, &raw mut length, room, text.as_ptr(), text.len())
    };
    assert_eq!(ok, 1, "not base64");
    bytes.truncate(length);
    bytes
}

/// Returns the hash in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let mut hash = [0; 32];
    // SAFETY: the buffers have the lengths that the function expects.
    unsafe { ffi::SHA256(bytes.as_ptr(), bytes.len(), hash.as_mut_ptr()) };
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
