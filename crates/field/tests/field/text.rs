//! Text format of key ring files.

use quadrille_field::KeyRing;

#[test]
fn what_is_written_is_read() {
    let mut ring = KeyRing::generate().expect("a key ring");
    let sealed = ring.field("t", "c").expect("a field").encrypt(b"x", b"1").expect("encrypts");
    let second = ring.add().expect("a key");
    ring.activate(second).expect("activates");
    let text = ring.to_text();
    let read = KeyRing::parse(&text).expect("a key ring");
    assert_eq!(*read.to_text(), *text);
    assert!(read.keys().eq(ring.keys()));
    assert_eq!(read.field("t", "c").expect("a field").decrypt(&sealed, b"1").expect("decrypts"), b"x");
}

#[test]
fn mistakes_are_named_with_their_line_and_without_keys() {
    let key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let good = format!("quadrille field keys 1\nkey 3f9a01c2 active {key}\nindex {key}\n");
    KeyRing::parse(&good).expect("a key ring");
    KeyRing::parse(&format!("# note\n\n{good}\n# end")).expect("comments and blank lines are ignored");
    for (text, line, complaint) in [
        (String::new(), 1, "begins with the line"),
        ("[keys]\n".to_owned(), 1, "begins with the line"),
        (good.replace("keys 1", "keys 2"), 1, "begins with the line"),
        (good.replace("3f9a01c2", "3f9a"), 2, "8 hexadecimal digits"),
        (good.replace("3f9a01c2", "+f9a01c2"), 2, "8 hexadecimal digits"),
        (good.replace("active", "enabled"), 2, "active, decrypt-only, retired"),
        (good.replace("active BwcH", "active Bwc"), 2, "32 bytes in base64"),
        (good.replace("BwcHBwc=", "BwcH"), 2, "32 bytes in base64"),
        (good.replace("index ", "index B"), 3, "32 bytes in base64"),
        (format!("{good}index {key}\n"), 4, "more than one index"),
        (format!("{good}key 3f9a01c2 retired {key}\n"), 4, "duplicate"),
        (format!("{good}key 3f9a01c3 active {key}\n"), 4, "more than one active"),
        (format!("{good}secret {key}\n"), 4, "expected 'key"),
    ] {
        let error = KeyRing::parse(&text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.line, Some(line), "{error}");
        assert!(error.to_string().contains(complaint), "{error} does not say {complaint}");
        assert!(!error.to_string().contains("wcHBwc"), "{error} holds a part of a key");
    }
    for (text, complaint) in [
        (good.replace(" active ", " decrypt-only "), "no active key"),
        (good.replace("index ", "# index "), "no index key"),
    ] {
        let error = KeyRing::parse(&text).err().expect("accepted");
        assert!(error.to_string().contains(complaint), "{error}");
    }
}
