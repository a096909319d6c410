//! Key rings as text, and envelopes of encrypted fields.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quadrille_field::{Field, KeyRing};
use std::sync::LazyLock;

static FIELD: LazyLock<Field> =
    LazyLock::new(|| KeyRing::generate().expect("a ring").field("table", "column").expect("a field"));

fuzz_target!(|input: &[u8]| {
    let _ = FIELD.needs_rotation(input);
    assert!(FIELD.decrypt(input, b"row").is_err(), "the key is not in any input");
    if let Ok(ring) = std::str::from_utf8(input).map_err(drop).and_then(|text| KeyRing::parse(text).map_err(drop)) {
        let text = ring.to_text();
        let again = KeyRing::parse(&text).expect("generated text parses");
        assert_eq!(*again.to_text(), *text);
    }
    // Flips one bit of a valid envelope.
    let (Some((&at, rest)), mut envelope) = (input.split_first(), FIELD.encrypt(input, b"row").expect("an envelope"))
    else {
        return;
    };
    let at = usize::from(at) % envelope.len();
    envelope[at] ^= 1 << (rest.len() % 8);
    assert!(FIELD.decrypt(&envelope, b"row").is_err());
});
