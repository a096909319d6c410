//! Fields encrypted by libmcrypt (`mcrypt/make.c` generated `mcrypt/fixtures.txt`) decrypt to their plaintexts.

use base64ct::{Base64, Encoding};
use quadrille_field::{Error, Mcrypt, McryptEncoding, McryptForm, McryptMode, McryptPadding, McryptVector};

struct Fixture {
    form: McryptForm,
    key: Vec<u8>,
    vector: Vec<u8>,
    plain: Vec<u8>,
    ciphertext: Vec<u8>,
}

fn fixtures() -> Vec<Fixture> {
    include_str!("mcrypt/fixtures.txt").lines().map(fixture).collect()
}

fn fixture(line: &str) -> Fixture {
    let [cipher, mode, key, vector, plain, ciphertext] =
        line.split(' ').collect::<Vec<_>>().try_into().expect("six words");
    let block =
        cipher.strip_prefix("rijndael-").and_then(|bits| bits.parse::<usize>().ok()).expect("bits") / 8;
    let mode = match mode {
        "ecb" => McryptMode::Ecb,
        "cbc" => McryptMode::Cbc,
        "cfb" => McryptMode::Cfb,
        _ => McryptMode::Ncfb,
    };
    let (padding, encoding) = (McryptPadding::Zero, McryptEncoding::Raw);
    let form = McryptForm { block, mode, padding, encoding, is_binary: false };
    Fixture {
        form,
        key: bytes(key),
        vector: bytes(vector),
        plain: bytes(plain),
        ciphertext: bytes(ciphertext),
    }
}

fn bytes(text: &str) -> Vec<u8> {
    base16ct::mixed::decode_vec(text.trim_matches('-')).expect("hexadecimal")
}

#[track_caller]
fn reader(key: &[u8], form: McryptForm, vector: McryptVector) -> Mcrypt {
    Mcrypt::new(key, form, vector).expect("a key and a vector of proper length")
}

#[test]
fn what_libmcrypt_has_encrypted_is_read_in_every_cipher_mode_and_encoding() {
    let fixtures = fixtures();
    assert_eq!(fixtures.len(), 3 * 4 * 3 * 4);
    for Fixture { form, key, vector, plain, ciphertext } in fixtures {
        for encoding in [McryptEncoding::Raw, McryptEncoding::Hex, McryptEncoding::Base64] {
            let form = McryptForm { encoding, ..form };
            let stored = |bytes: &[u8]| match encoding {
                McryptEncoding::Raw => bytes.to_vec(),
                McryptEncoding::Hex => base16ct::lower::encode_string(bytes).into_bytes(),
                McryptEncoding::Base64 => Base64::encode_string(bytes).into_bytes(),
            };
            let fixed = reader(&key, form, McryptVector::Fixed(vector.clone()));
            assert_eq!(fixed.decrypt(&stored(&ciphertext)).expect("reads"), plain, "{form:?}");
            let front = reader(&key, form, McryptVector::Front);
            let both = [&vector[..], &ciphertext].concat();
            assert_eq!(front.decrypt(&stored(&both)).expect("reads"), plain, "{form:?}");
        }
    }
}

#[test]
fn a_wrong_key_or_form_is_unreadable_instead_of_other_text() {
    let whole = |fixture: &Fixture| fixture.plain.len() >= 32 && fixture.form.mode != McryptMode::Ncfb;
    for Fixture { form, mut key, vector, ciphertext, .. } in fixtures().into_iter().filter(whole) {
        let read =
            |key: &[u8], form| reader(key, form, McryptVector::Fixed(vector.clone())).decrypt(&ciphertext);
        assert!(read(&key, form).is_ok());
        key[0] ^= 1;
        assert!(matches!(read(&key, form), Err(Error::Unreadable)), "{form:?}");
        key[0] ^= 1;
        let pkcs7 = McryptForm { padding: McryptPadding::Pkcs7, ..form };
        let has_padding = matches!(form.mode, McryptMode::Ecb | McryptMode::Cbc);
        assert_eq!(read(&key, pkcs7).is_err(), has_padding, "{form:?}");
    }
}

#[test]
fn short_keys_are_filled_with_zeros_as_php_did() {
    let form = fixtures()[0].form;
    let vector = || McryptVector::Fixed(Vec::new());
    let (short, filled) = (*b"secret", *b"secret\0\0\0\0\0\0\0\0\0\0");
    let field = [7; 16];
    let form = McryptForm { is_binary: true, ..form };
    let read =
        |key: &[u8]| reader(key, form, vector()).decrypt(&field).expect("binary fields hold any bytes");
    assert_eq!(read(&short), read(&filled));
    assert!(matches!(Mcrypt::new(b"", form, vector()), Err(Error::Mcrypt)));
    assert!(matches!(Mcrypt::new(&[1; 33], form, vector()), Err(Error::Mcrypt)));
    assert!(matches!(Mcrypt::new(&short, form, McryptVector::Fixed(vec![0; 8])), Err(Error::Mcrypt)));
}
