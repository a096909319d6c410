//! Key ring files on the disk.

use quadrille_field::KeyRing;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

#[test]
fn a_new_file_is_closed_and_never_replaces_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fields.keys");
    let ring = KeyRing::generate().expect("a key ring");
    ring.create(&path).expect("creates");
    assert_eq!(fs::metadata(&path).expect("metadata").mode() & 0o777, 0o600);
    assert_eq!(*KeyRing::load(&path).expect("loads").to_text(), *ring.to_text());

    let error = KeyRing::generate().expect("a key ring").create(&path).expect_err("replaced a key ring");
    assert!(error.to_string().contains("fields.keys") && error.to_string().contains("exists"), "{error}");
    assert_eq!(*KeyRing::load(&path).expect("loads").to_text(), *ring.to_text());
    assert_eq!(fs::read_dir(&folder).expect("folder").count(), 1, "a temporary file was left behind");
}

#[test]
fn a_file_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fields.keys");
    KeyRing::generate().expect("a key ring").create(&path).expect("creates");
    for mode in [0o640, 0o604, 0o620, 0o601, 0o644] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("chmod");
        let error = KeyRing::load(&path).err().expect("loaded");
        assert!(error.to_string().contains(&format!("{mode:04o}")), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error} names no remedy");
    }
    for mode in [0o600, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("chmod");
        KeyRing::load(&path).expect("loads");
    }
}

#[test]
fn replacing_goes_through_links_and_keeps_the_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, link) = (folder.path().join("fields.keys"), folder.path().join("link"));
    let mut ring = KeyRing::generate().expect("a key ring");
    ring.create(&path).expect("creates");
    symlink(&path, &link).expect("a link");
    ring.add().expect("a key");
    ring.replace(&link).expect("replaces");
    assert!(fs::symlink_metadata(&link).expect("metadata").is_symlink());
    assert_eq!(fs::metadata(&path).expect("metadata").mode() & 0o777, 0o600);
    assert_eq!(KeyRing::load(&path).expect("loads").keys().count(), 2);
}

#[test]
fn invalid_key_rings_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let error = KeyRing::load(&missing).err().expect("loaded");
    assert!(error.to_string().contains("missing: cannot read the key ring: No such file"), "{error}");
    assert!(KeyRing::load(folder.path()).err().expect("loaded").to_string().contains("not a plain file"));
    let binary = folder.path().join("binary");
    fs::write(&binary, [0xff; 100]).expect("writes");
    fs::set_permissions(&binary, Permissions::from_mode(0o600)).expect("chmod");
    assert!(KeyRing::load(&binary).err().expect("loaded").to_string().contains("not text"));
}
