//! Legacy AES-256-CBC format.

use base64ct::{Base64, Encoding};
use quadrille_field::{Error, Legacy};

fn legacy() -> Legacy {
    Legacy::new(&[1; 32], &[2; 32]).expect("keys")
}

/// Made by PHP: `openssl_encrypt('Grüße', 'aes-256-cbc', $data, 0, $iv) . '#' . base64_encode(openssl_encrypt($iv,
/// 'aes-256-ecb', $vector, OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING))` with keys of 1s and 2s and a vector of 3s; the
/// second without OPENSSL_ZERO_PADDING.
const FROM_PHP: [&str; 2] = [
    "sbVy4/hc5GKika0cilQ2ng==#Nn67kBPreD4OghoCVOQrWQ==",
    "sbVy4/hc5GKika0cilQ2ng==#Nn67kBPreD4OghoCVOQrWTGAYgh8XdIt8ADoXdPpz6o=",
];

#[test]
fn fields_that_php_wrote_are_read() {
    for field in FROM_PHP {
        assert_eq!(legacy().decrypt(field.as_bytes()).expect("decrypts"), "Grüße".as_bytes(), "{field}");
    }
}

#[test]
fn what_is_written_is_read() {
    for length in 0..70 {
        let plain: Vec<u8> = (0..length).collect();
        let field = legacy().encrypt(&plain).expect("encrypts");
        assert_eq!(legacy().decrypt(field.as_bytes()).expect("decrypts"), plain);
        assert_ne!(legacy().encrypt(&plain).expect("encrypts"), field, "the vector is random");
    }
}

#[test]
fn all_defects_give_the_same_error() {
    let block = Base64::encode_string(&[9; 16]);
    let long = Base64::encode_string(&[9; 48]);
    let good = legacy().encrypt(b"x").expect("encrypts");
    let (ciphertext, vector) = good.split_once('#').expect("two parts");
    for field in [
        String::new(),
        "#".to_owned(),
        format!("#{vector}"),
        format!("{ciphertext}#"),
        ciphertext.to_owned(),
        format!("{good}#{vector}"),
        format!("{ciphertext}#{long}"),
        format!("{ciphertext}#AAAA"),
        format!("AAAA#{vector}"),
        format!("!{good}"),
        format!("{good}\n"),
        format!("{block}#{vector}"),
    ] {
        let error = legacy().decrypt(field.as_bytes()).expect_err("it opened");
        assert_eq!(error.to_string(), "the field cannot be decrypted", "{field}");
    }
    assert!(legacy().decrypt(&[0xff, b'#', 0xff]).is_err());
}

#[test]
fn keys_have_32_bytes() {
    for (data, vector) in [(31, 32), (32, 33), (0, 0)] {
        let made = Legacy::new(&vec![0; data], &vec![0; vector]);
        assert!(matches!(made, Err(Error::LegacyKey)));
    }
}
