//! Envelopes: valid ones open, all others are rejected.

use quadrille_field::{Error, Field, KeyRing, envelope};

fn ring() -> KeyRing {
    KeyRing::generate().expect("a key ring")
}

fn email(ring: &KeyRing) -> Field {
    ring.field("users", "email").expect("a field")
}

#[track_caller]
fn unreadable(result: Result<Vec<u8>, Error>) {
    let error = result.expect_err("it opened");
    assert_eq!(error.to_string(), "the field cannot be decrypted");
    assert!(matches!(error, Error::Unreadable));
}

#[test]
fn what_is_encrypted_is_decrypted() {
    let field = email(&ring());
    for length in [0, 1, 15, 16, 17, 64, 95, 96, 97, 1000, 2048, 2049, 100_000] {
        let plain: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let sealed = field.encrypt(&plain, b"1").expect("encrypts");
        assert_eq!(sealed.len(), length + envelope::OVERHEAD);
        assert_eq!(sealed[0], envelope::VERSION);
        assert_eq!(sealed[1..5], field.active_id().bytes());
        assert_eq!(field.decrypt(&sealed, b"1").expect("decrypts"), plain);
        assert!(!field.needs_rotation(&sealed).expect("an envelope"));
    }
}

#[test]
fn sixteen_mebibytes() {
    let field = email(&ring());
    let plain = vec![0xa5; 16 << 20];
    let mut sealed = field.encrypt(&plain, b"1").expect("encrypts");
    assert_eq!(field.decrypt(&sealed, b"1").expect("decrypts"), plain);
    sealed[8 << 20] ^= 1;
    unreadable(field.decrypt(&sealed, b"1"));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let field = email(&ring());
    let sealed = field.encrypt(b"alice@example.com", b"1").expect("encrypts");
    for byte in 0..sealed.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed[byte] ^= 1 << bit;
            unreadable(field.decrypt(&changed, b"1"));
        }
    }
}

#[test]
fn truncated_extended_and_empty_envelopes_are_refused() {
    let field = email(&ring());
    let sealed = field.encrypt(b"alice@example.com", b"1").expect("encrypts");
    for length in 0..sealed.len() {
        unreadable(field.decrypt(&sealed[..length], b"1"));
        unreadable(field.decrypt(&sealed[length..][1.min(sealed.len() - length)..], b"1"));
    }
    unreadable(field.decrypt(&[&sealed[..], &[0]].concat(), b"1"));
}

#[test]
fn an_envelope_belongs_to_its_row_column_table_and_ring() {
    let ring = ring();
    let sealed = email(&ring).encrypt(b"x", b"1").expect("encrypts");
    unreadable(email(&ring).decrypt(&sealed, b"2"));
    unreadable(email(&ring).decrypt(&sealed, b"11"));
    for (table, column) in
        [("users", "phone"), ("admins", "email"), ("user", "semail"), ("users\u{5}", "email")]
    {
        unreadable(ring.field(table, column).expect("a field").decrypt(&sealed, b"1"));
    }
    unreadable(email(&self::ring()).decrypt(&sealed, b"1"));
}

/// A key with the right id only, like an attack with an envelope for two keys.
#[test]
fn the_commitment_is_checked() {
    let ring = ring();
    let text = ring.to_text();
    let stranger = self::ring().to_text();
    let (id, theirs) = (key_id(&text), key_id(&stranger));
    let disguised = KeyRing::parse(&stranger.replace(&theirs, &id)).expect("a key ring");
    let sealed = email(&ring).encrypt(b"x", b"1").expect("encrypts");
    unreadable(email(&disguised).decrypt(&sealed, b"1"));
    let commitment = |ring: &KeyRing| email(ring).encrypt(b"x", b"1").expect("encrypts")[5..37].to_vec();
    assert_ne!(commitment(&ring), commitment(&disguised));
    assert_eq!(commitment(&ring), commitment(&ring), "the commitment is the same for all envelopes");
}

fn key_id(text: &str) -> String {
    let line = text.lines().find(|line| line.starts_with("key ")).expect("a key");
    line.split(' ').nth(1).expect("an id").to_owned()
}

#[test]
fn names_and_rows_have_one_to_255_bytes() {
    let ring = ring();
    let long = "x".repeat(256);
    for (table, column) in [("", "email"), ("users", ""), (&*long, "email"), ("users", &*long)] {
        assert!(matches!(ring.field(table, column), Err(Error::Name)));
    }
    let widest = ring.field(&long[1..], &long[1..]).expect("255 bytes are allowed");
    let sealed = widest.encrypt(b"x", &long.as_bytes()[1..]).expect("255 bytes are allowed");
    assert_eq!(widest.decrypt(&sealed, &long.as_bytes()[1..]).expect("decrypts"), b"x");
    for row in [&b""[..], long.as_bytes()] {
        assert!(matches!(widest.encrypt(b"x", row), Err(Error::Row)));
        assert!(matches!(widest.decrypt(&sealed, row), Err(Error::Row)));
    }
}

#[test]
fn two_envelopes_of_one_text_share_nothing_but_the_header() {
    let field = email(&ring());
    let [a, b] = [(), ()].map(|()| field.encrypt(&[0; 64], b"1").expect("encrypts"));
    assert_eq!(a[..37], b[..37]);
    let equal = a[37..].iter().zip(&b[37..]).filter(|(a, b)| a == b).count();
    assert!(equal < 20, "{equal} of {} random bytes are equal", a.len() - 37);
}

#[test]
fn blind_indexes_find_equal_values_of_one_column() {
    let ring = ring();
    let field = email(&ring);
    let index = |value: &str, bits| field.blind_index(value.as_bytes(), bits).expect("an index");
    assert_eq!(index("a@example.com", 64), index("a@example.com", 64));
    assert_eq!(index("a@example.com", 64).len(), 16);
    assert!(index("a@example.com", 256).starts_with(&index("a@example.com", 64)));
    assert_ne!(index("a@example.com", 64), index("b@example.com", 64));
    let phone = ring.field("users", "phone").expect("a field");
    assert_ne!(index("x", 64), phone.blind_index(b"x", 64).expect("an index"));
    for bits in [0, 7, 9, 257, 264] {
        assert!(matches!(field.blind_index(b"x", bits), Err(Error::Bits)), "{bits} bits");
    }
}
