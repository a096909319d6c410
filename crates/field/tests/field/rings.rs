//! Key states and rotation.

use quadrille_field::{Error, KeyRing, State};

#[test]
fn rotation_in_the_order_that_several_servers_need() {
    let mut ring = KeyRing::generate().expect("a key ring");
    let old = ring.field("users", "email").expect("a field").encrypt(b"x", b"1").expect("encrypts");
    let first = ring.keys().next().expect("a key").0;

    let second = ring.add().expect("a key");
    assert_eq!(ring.keys().collect::<Vec<_>>(), [(first, State::Active), (second, State::DecryptOnly)]);
    let before = ring.field("users", "email").expect("a field");
    assert!(!before.needs_rotation(&old).expect("an envelope"), "the new key is not active yet");

    ring.activate(second).expect("activates");
    assert_eq!(ring.keys().collect::<Vec<_>>(), [(first, State::DecryptOnly), (second, State::Active)]);
    let after = ring.field("users", "email").expect("a field");
    assert!(after.needs_rotation(&old).expect("an envelope"));
    let new = after.rotate(&old, b"1").expect("rotates");
    assert!(!after.needs_rotation(&new).expect("an envelope"));
    assert_eq!(after.decrypt(&new, b"1").expect("decrypts"), b"x");
    assert_eq!(before.decrypt(&new, b"1").expect("a server with the key decrypts"), b"x");

    ring.retire(first).expect("retires");
    let last = ring.field("users", "email").expect("a field");
    assert!(matches!(last.decrypt(&old, b"1"), Err(Error::Unreadable)), "a retired key opened an envelope");
    assert!(matches!(last.needs_rotation(&old), Err(Error::Unreadable)));
    assert_eq!(last.decrypt(&new, b"1").expect("decrypts"), b"x");

    let indexes = [&before, &after, &last].map(|field| field.blind_index(b"x", 64).expect("an index"));
    assert!(indexes.iter().all(|index| *index == indexes[0]), "rotation changed the blind index");
}

#[test]
fn the_active_key_cannot_be_retired_and_unknown_ones_not_activated() {
    let mut ring = KeyRing::generate().expect("a key ring");
    let (active, _) = ring.keys().next().expect("a key");
    let error = ring.retire(active).expect_err("retired");
    assert!(error.to_string().contains("activate another"), "{error}");
    let unknown = "00000000".parse().expect("an id");
    assert!(ring.activate(unknown).expect_err("activated").to_string().contains("00000000"));
    assert!(ring.retire(unknown).is_err());
}
