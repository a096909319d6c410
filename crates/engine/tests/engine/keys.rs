//! Private keys in all common formats.

use quadrille_engine::{Key, KeyError, KeyType};
use std::process::Command;

/// Returns the output of openssl.
fn openssl(arguments: &str) -> Vec<u8> {
    piped(arguments, b"")
}

/// Returns the output of openssl for `input`.
fn piped(arguments: &str, input: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("input"), input).unwrap();
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(&directory).output().unwrap();
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn ec(curve: &str) -> Vec<u8> {
    openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve}"))
}

fn rsa(bits: u32) -> Vec<u8> {
    openssl(&format!("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:{bits}"))
}

#[track_caller]
fn reads(pem: &[u8], key_type: KeyType) -> Key {
    let key = Key::from_pem(pem).expect("a key");
    assert_eq!(key.key_type(), key_type);
    key
}

#[track_caller]
fn refuses(pem: &[u8], error: KeyError) {
    assert_eq!(Key::from_pem(pem).err(), Some(error), "{}", String::from_utf8_lossy(pem));
}

#[test]
fn pkcs8_pkcs1_and_sec1_hold_the_same_keys() {
    for (pkcs8, key_type) in [
        (rsa(2048), KeyType::Rsa { bits: 2048 }),
        (ec("P-256"), KeyType::EcdsaP256),
        (ec("P-384"), KeyType::EcdsaP384),
        (ec("P-521"), KeyType::EcdsaP521),
    ] {
        let traditional = piped("pkey -in input -traditional", &pkcs8);
        assert_ne!(pkcs8, traditional);
        let (new, old) = (reads(&pkcs8, key_type), reads(&traditional, key_type));
        assert!(new.pkey().public_eq(old.pkey()));
    }
    reads(&openssl("genpkey -algorithm ED25519"), KeyType::Ed25519);
}

/// RFC 8410 section 10.3 has the same Ed25519 key in both versions.
#[test]
fn pkcs8_of_version_2_is_read() {
    let pem = |lines: &str| format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n");
    let first = pem("MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC");
    let second = pem(
        "MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\noB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\nZ9w7lshQhqowtrbLDFw4rXAxZuE=",
    );
    let (first, second) =
        (reads(first.as_bytes(), KeyType::Ed25519), reads(second.as_bytes(), KeyType::Ed25519));
    assert!(first.pkey().public_eq(second.pkey()));
}

#[test]
fn what_stands_around_the_key_is_skipped() {
    let key = ec("P-384");
    let certificate = piped("req -x509 -key input -subj /CN=test -days 2", &key);
    reads(&[&certificate[..], &certificate, &key].concat(), KeyType::EcdsaP384);
    reads(&[&key[..], &certificate].concat(), KeyType::EcdsaP384);
    reads(&[b"some \xff words\r\n", &key[..], b"and more"].concat(), KeyType::EcdsaP384);
    reads(&openssl("ecparam -name prime256v1 -genkey"), KeyType::EcdsaP256);
    let windows = String::from_utf8(key.clone()).unwrap().replace('\n', "\r\n");
    reads(windows.as_bytes(), KeyType::EcdsaP384);
    refuses(&certificate, KeyError::Missing);
}

#[test]
fn byte_order_marks_are_skipped_and_damage_is_found_anywhere() {
    let key = ec("P-384");
    let certificate = piped("req -x509 -key input -subj /CN=test -days 2", &key);
    let mark = "\u{feff}".as_bytes();
    reads(&[mark, &key].concat(), KeyType::EcdsaP384);
    reads(&[mark, &certificate, mark, mark, &key].concat(), KeyType::EcdsaP384);
    for damaged in [
        [&key[..], &certificate[..certificate.len() - 30]].concat(),
        [&certificate[..certificate.len() - 1], &key].concat(),
        [b"text before ", &key[..]].concat(),
    ] {
        refuses(&damaged, KeyError::Malformed);
    }
}

#[test]
fn the_first_key_counts() {
    let (first, second) = (ec("P-384"), ec("P-256"));
    reads(&[&first[..], &second].concat(), KeyType::EcdsaP384);
    let encrypted = piped("pkey -in input -aes256 -passout pass:secret", &second);
    reads(&[&first[..], &encrypted].concat(), KeyType::EcdsaP384);
    refuses(&[&encrypted[..], &first].concat(), KeyError::Encrypted);
}

#[test]
fn encrypted_keys_are_named_as_such() {
    for key in [ec("P-256"), rsa(2048)] {
        refuses(&piped("pkey -in input -aes256 -passout pass:secret", &key), KeyError::Encrypted);
        refuses(
            &piped("pkey -in input -traditional -aes256 -passout pass:secret", &key),
            KeyError::Encrypted,
        );
    }
}

#[test]
fn other_algorithms_and_curves_are_named_as_such() {
    for (curve, name) in [
        ("secp256k1", "secp256k1"),
        ("brainpoolP256r1", "brainpoolP256r1"),
        ("brainpoolP512t1", "brainpoolP512t1"),
        ("P-224", "P-224"),
    ] {
        refuses(&ec(curve), KeyError::UnsupportedCurve(name));
        refuses(&piped("pkey -in input -traditional", &ec(curve)), KeyError::UnsupportedCurve(name));
    }
    for curve in ["secp256k1", "brainpoolP256r1"] {
        let explicit = piped("ec -in input -param_enc explicit", &ec(curve));
        refuses(&explicit, KeyError::ExplicitParameters);
        refuses(&piped("pkcs8 -topk8 -nocrypt -in input", &explicit), KeyError::ExplicitParameters);
    }
    refuses(&openssl("genpkey -algorithm X25519"), KeyError::Unsupported);
    refuses(&openssl("genpkey -algorithm ED448"), KeyError::Unsupported);
    let dsa = {
        let parameters = openssl("genpkey -genparam -algorithm DSA -pkeyopt dsa_paramgen_bits:1024");
        piped("genpkey -paramfile input", &parameters)
    };
    refuses(&dsa, KeyError::Unsupported);
    refuses(&piped("pkey -in input -traditional", &dsa), KeyError::Unsupported);
}

#[test]
fn weak_rsa_is_refused_below_1024_bits() {
    refuses(&rsa(768), KeyError::RsaSize(768));
    reads(&rsa(1024), KeyType::Rsa { bits: 1024 });
}

#[test]
fn garbage_is_refused() {
    let key = String::from_utf8(ec("P-256")).unwrap();
    for missing in ["", "garbage", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN PUBLIC KEY-----\n"] {
        refuses(missing.as_bytes(), KeyError::Missing);
    }
    let lines: Vec<_> = key.lines().collect();
    refuses(lines[..2].join("\n").as_bytes(), KeyError::Malformed);
    refuses(key.replace("MI", "AA").as_bytes(), KeyError::Malformed);
    refuses(b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", KeyError::Malformed);
    refuses(b"-----BEGIN PRIVATE KEY-----\n\xff\xfe\n-----END PRIVATE KEY-----\n", KeyError::Malformed);
    refuses(
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        KeyError::Malformed,
    );
}
