//! Documents that a fleet's gateways read from Redis and from files: the ring of ticket keys, sealed documents, ticket keys.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the gateway uses the rest")]

// The parts of BoringSSL in use are replaced below: it is not linked, and its cipher would reject garbage.
extern crate self as boring;

use keys::{Ring, Schedule, TicketKey, decode, encode};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

#[path = "../../crates/resumption/src/keys/mod.rs"]
mod keys;
#[path = "../../crates/resumption/src/secret.rs"]
mod secret;

fuzz_target!(|input: &[u8]| {
    let secret = secret::FleetSecret::new(&[7; 32]).expect("a secret");
    let _ = secret.open(b"session", input);
    let sealed = secret.seal(b"session", input).expect("sealed");
    assert_eq!(secret.open(b"session", &sealed).as_deref().map(|opened| &opened[..]), Some(input));
    if let Ok(key) = TicketKey::from_file_bytes(input) {
        assert_eq!(*key.to_file_bytes(), input);
    }
    let Some((&times, document)) = input.split_first() else { return };
    let now = Duration::from_secs(1_800_000_000 + u64::from(times) * 3600);
    let schedule = Schedule { rotation: Duration::from_secs(60 << (times % 16)) };
    if let Some(ring) = decode(document) {
        agree(&ring, now, schedule);
    }
});

/// Checks that two gateways with different rings agree on the same ring, for any published one.
fn agree(published: &Ring, now: Duration, schedule: Schedule) {
    let again = decode(&encode(published)).expect("an encoded document decodes");
    assert!(again.same(published));
    let own = Ring::provisional().begun(now);
    let [one, other] = [own.merged(published), published.merged(&own)];
    assert!(one.same(&other), "the order matters");
    let agreed = Ring::agreed(Some(&own), Some(published), now, schedule);
    let twice = Ring::agreed(Some(&agreed), Some(&agreed), now, schedule);
    assert!(twice.same(&agreed), "agreeing again changes the ring");
    let encrypting = agreed.encrypting(now);
    assert!(agreed.find(encrypting.key.name(), now, schedule).is_some(), "a key that encrypts does not decrypt");
    let _ = (agreed.rotated(now, schedule), agreed.next(now));
}

mod rand {
    /// Deterministic, so that libFuzzer's findings are reproducible.
    pub fn rand_bytes(bytes: &mut [u8]) -> Result<(), super::error::ErrorStack> {
        bytes.fill(3);
        Ok(())
    }
}

mod error {
    #[derive(Debug)]
    pub struct ErrorStack;

    impl ErrorStack {
        pub fn get() -> Self {
            Self
        }
    }
}

mod hash {
    pub struct MessageDigest;

    impl MessageDigest {
        pub fn sha256() -> Self {
            Self
        }
    }
}

mod hkdf {
    use super::{error::ErrorStack, hash::MessageDigest};

    pub struct HkdfSuite;

    impl HkdfSuite {
        pub fn new(_: MessageDigest) -> Self {
            Self
        }

        pub fn extract(&self, _: &[u8], secret: &[u8]) -> Result<[u8; 32], ErrorStack> {
            secret.try_into().map_err(|_| ErrorStack)
        }

        pub fn expand(&self, root: &[u8], _: &[u8], key: &mut [u8]) -> Result<(), ErrorStack> {
            key.copy_from_slice(root);
            Ok(())
        }
    }
}

/// A cipher that does not change the text and accepts every tag.
mod symm {
    use super::error::ErrorStack;

    pub struct Cipher;

    impl Cipher {
        pub fn aes_256_gcm() -> Self {
            Self
        }
    }

    pub fn encrypt_aead(
        _: Cipher,
        _: &[u8],
        _: Option<&[u8]>,
        _: &[u8],
        content: &[u8],
        _: &mut [u8],
    ) -> Result<Vec<u8>, ErrorStack> {
        Ok(content.to_vec())
    }

    pub fn decrypt_aead(
        _: Cipher,
        _: &[u8],
        _: Option<&[u8]>,
        _: &[u8],
        content: &[u8],
        _: &[u8],
    ) -> Result<Vec<u8>, ErrorStack> {
        Ok(content.to_vec())
    }
}
