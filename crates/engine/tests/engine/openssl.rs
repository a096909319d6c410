//! Agreement with the openssl command: it verifies our signatures, and creates the same deterministic ones.

use crate::support::{all_keys, ec_p384, ed25519, rsa2048, schemes_of, settings, start};
use boring::rsa::Padding;
use quadrille_engine::{Key, KeyType, Operation, Scalar, SignatureScheme as S, Unobserved};
use std::{path::PathBuf, process::Command};
use tempfile::TempDir;

const MESSAGE: &[u8] = b"message";

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new(key: &Key) -> Self {
        let bench = Self { directory: tempfile::tempdir().unwrap() };
        bench.write("key.pem", &key.pkey().private_key_to_pem_pkcs8().unwrap());
        bench.write("public.pem", &key.pkey().public_key_to_pem().unwrap());
        bench.write("message", MESSAGE);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Runs openssl in the directory; returns its standard output.
    fn openssl(&self, arguments: &str) -> Vec<u8> {
        let output =
            Command::new("openssl").args(arguments.split(' ')).current_dir(&self.directory).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {error}");
        output.stdout
    }
}

fn run(key: &Key, operation: Operation) -> Vec<u8> {
    let engine = start(settings(1, 8), Scalar, Unobserved);
    engine.submit(key, operation).unwrap().wait().unwrap().bytes.to_vec()
}

fn sign(key: &Key, scheme: S) -> Vec<u8> {
    run(key, Operation::sign(scheme, MESSAGE).unwrap())
}

fn digest(scheme: S) -> &'static str {
    match scheme {
        S::RsaPkcs1Md5Sha1 => "md5-sha1",
        S::RsaPkcs1Sha1 | S::EcdsaSha1 => "sha1",
        S::RsaPkcs1Sha384 | S::RsaPssSha384 | S::EcdsaSha384 => "sha384",
        S::RsaPkcs1Sha512 | S::RsaPssSha512 | S::EcdsaSha512 => "sha512",
        _ => "sha256",
    }
}

#[test]
fn pkcs1_signatures_are_the_same_to_the_last_bit() {
    let rsa = |key: &Key| matches!(key.key_type(), KeyType::Rsa { .. });
    for key in all_keys().into_iter().filter(rsa) {
        let bench = Bench::new(&key);
        for &scheme in schemes_of(&key).iter().take(5) {
            let theirs = bench.openssl(&format!("dgst -{} -sign key.pem -binary message", digest(scheme)));
            assert_eq!(sign(&key, scheme), theirs, "{key:?} {scheme:?}");
        }
    }
}

#[test]
fn it_verifies_pss_and_ecdsa() {
    const PSS: &str = " -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest";
    let pss = [S::RsaPssSha256, S::RsaPssSha384, S::RsaPssSha512].map(|scheme| (rsa2048(), scheme, PSS));
    let ecdsa = schemes_of(&ec_p384()).iter().map(|&scheme| (ec_p384(), scheme, ""));
    for (key, scheme, options) in pss.into_iter().chain(ecdsa) {
        let bench = Bench::new(&key);
        bench.write("signature", &sign(&key, scheme));
        bench.openssl(&format!(
            "dgst -{}{options} -verify public.pem -signature signature message",
            digest(scheme)
        ));
    }
}

#[test]
fn ed25519_signatures_are_the_same_to_the_last_bit() {
    let key = ed25519();
    let theirs = Bench::new(&key).openssl("pkeyutl -sign -rawin -inkey key.pem -in message");
    assert_eq!(sign(&key, S::Ed25519), theirs);
}

#[test]
fn decryption_gives_what_it_gives() {
    let key = rsa2048();
    let rsa = key.pkey().rsa().unwrap();
    let mut ciphertext = vec![0; rsa.size() as usize];
    rsa.public_encrypt(b"premaster secret", &mut ciphertext, Padding::PKCS1).unwrap();
    let bench = Bench::new(&key);
    bench.write("ciphertext", &ciphertext);
    let theirs =
        bench.openssl("pkeyutl -decrypt -inkey key.pem -in ciphertext -pkeyopt rsa_padding_mode:none");
    assert_eq!(run(&key, Operation::decrypt(&ciphertext)), theirs);
}
