//! Conversion of one value: pure, without a database.

use crate::job::Source;
use quadrille_field::{Error, Field, envelope};
use zeroize::Zeroizing;

/// The result of converting one value.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The value is up to date.
    Done,
    /// The value must be replaced by this envelope.
    Replaced {
        /// The envelope under the active key.
        envelope: Vec<u8>,
        /// The blind index of its value, if one is requested.
        index: Option<String>,
    },
    /// The value cannot be read, and is left unchanged.
    Unreadable,
}

/// The stored values of one row.
#[derive(Clone, Copy, Debug)]
pub enum Held<'a> {
    /// A value in one column, which is read and written.
    InPlace(Option<&'a [u8]>),
    /// Values in two columns.
    Apart {
        /// The value of the envelope column. It is empty if the column is `NOT NULL` and the row has no envelope yet.
        envelope: Option<&'a [u8]>,
        /// The value of the source column.
        source: Option<&'a [u8]>,
    },
}

/// Converts the value of one column of a row.
pub fn convert(
    field: &Field,
    from: &Source,
    held: Held<'_>,
    index_bits: Option<u32>,
    row: &str,
) -> Result<Outcome, Error> {
    let row = row.as_bytes();
    let rotated = |envelope: &[u8]| match field.needs_rotation(envelope) {
        Ok(true) => Some(field.decrypt(envelope, row)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    };
    let plain = match held {
        Held::InPlace(None) => None,
        Held::InPlace(Some(value)) if field.needs_rotation(value).is_ok() => rotated(value),
        Held::InPlace(Some(value)) => Some(older(from, value)),
        Held::Apart { envelope: Some(envelope), .. } if !envelope.is_empty() => rotated(envelope),
        Held::Apart { source, .. } => source.map(|source| older(from, source)),
    };
    let plain = match plain {
        None => return Ok(Outcome::Done),
        Some(Ok(plain)) => Zeroizing::new(plain),
        Some(Err(Error::Unreadable)) => return Ok(Outcome::Unreadable),
        Some(Err(error)) => return Err(error),
    };
    let envelope = field.encrypt(&plain, row)?;
    let index = index_bits.map(|bits| field.blind_index(&plain, bits)).transpose()?;
    Ok(Outcome::Replaced { envelope, index })
}

/// Returns the plain text of a value that is not an envelope of these keys.
fn older(from: &Source, value: &[u8]) -> Result<Vec<u8>, Error> {
    match from {
        // Raw ciphertexts begin with any byte, and a wrong decryption is not text.
        Source::Mcrypt(mcrypt) if mcrypt.reads_only_text() => mcrypt.decrypt(value),
        // A value that looks like an envelope of another key must not be encrypted again: its key is missing.
        _ if looks_like_envelope(value) => Err(Error::Unreadable),
        Source::Envelopes => Err(Error::Unreadable),
        Source::Legacy(legacy) => legacy.decrypt(value),
        Source::Mcrypt(mcrypt) => mcrypt.decrypt(value),
        Source::Plain => Ok(value.to_vec()),
    }
}

/// Checks the version and the length of an envelope; neither plain text nor the older form begins with that byte.
fn looks_like_envelope(value: &[u8]) -> bool {
    value.len() >= envelope::OVERHEAD && value[0] == envelope::VERSION
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_field::{
        KeyRing, Legacy, Mcrypt, McryptEncoding, McryptForm, McryptMode, McryptPadding, McryptVector,
    };

    struct Rings {
        old: Field,
        new: Field,
    }

    fn rings() -> Rings {
        let mut ring = KeyRing::generate().expect("keys");
        let old = ring.field("t", "c").expect("a field");
        let id = ring.add().expect("a key");
        ring.activate(id).expect("activates");
        Rings { old, new: ring.field("t", "c").expect("a field") }
    }

    fn legacy() -> Box<Legacy> {
        Box::new(Legacy::new(&[1; 32], &[2; 32]).expect("keys"))
    }

    /// Returns the values of a row without an envelope.
    fn apart(source: &[u8]) -> Held<'_> {
        Held::Apart { envelope: None, source: Some(source) }
    }

    #[track_caller]
    fn replaced(outcome: Outcome, field: &Field) -> (Vec<u8>, Option<String>) {
        match outcome {
            Outcome::Replaced { envelope, index } => {
                (field.decrypt(&envelope, b"1").expect("decrypts"), index)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn envelopes_of_the_active_key_stay_and_others_rotate() {
        let Rings { old, new } = rings();
        let current = new.encrypt(b"x", b"1").expect("encrypts");
        let older = old.encrypt(b"x", b"1").expect("encrypts");
        for source in [Source::Envelopes, Source::Legacy(legacy()), Source::Plain] {
            let decide = |value: &[u8]| {
                convert(&new, &source, Held::InPlace(Some(value)), Some(64), "1").expect("decides")
            };
            assert_eq!(decide(&current), Outcome::Done);
            let (plain, index) = replaced(decide(&older), &new);
            assert_eq!(plain, b"x");
            assert_eq!(index, Some(new.blind_index(b"x", 64).expect("an index")));
        }
    }

    #[test]
    fn older_forms_are_converted_in_place_and_from_another_column() {
        let Rings { new, .. } = rings();
        let older = legacy().encrypt(b"x").expect("encrypts");
        for (source, value) in [(Source::Legacy(legacy()), older.as_bytes()), (Source::Plain, b"x")] {
            let empty = Held::Apart { envelope: Some(b""), source: Some(value) };
            for held in [Held::InPlace(Some(value)), apart(value), empty] {
                let outcome = convert(&new, &source, held, None, "1").expect("decides");
                assert_eq!(replaced(outcome, &new), (b"x".to_vec(), None));
            }
        }
    }

    #[test]
    fn what_mcrypt_has_encrypted_is_converted_and_a_wrong_key_changes_nothing() {
        let Rings { new, .. } = rings();
        let form = McryptForm {
            block: 16,
            mode: McryptMode::Ecb,
            padding: McryptPadding::Zero,
            encoding: McryptEncoding::Hex,
            is_binary: false,
        };
        // Test vector from libmcrypt.
        let key: Vec<u8> = (0..16).map(|i| i * 7 + 3).collect();
        let stored = b"6351bf544ac447de31d5e6270c9f37e9";
        let decide = |key: &[u8], held: Held<'_>| {
            let mcrypt = Mcrypt::new(key, form, McryptVector::Front).expect("a key");
            convert(&new, &Source::Mcrypt(Box::new(mcrypt)), held, None, "1").expect("decides")
        };
        for held in [Held::InPlace(Some(stored)), apart(stored)] {
            assert_eq!(replaced(decide(&key, held), &new), (b"+49 30 1234567".to_vec(), None));
            assert_eq!(decide(&[1; 16], held), Outcome::Unreadable);
        }
        let current = new.encrypt(b"x", b"1").expect("encrypts");
        assert_eq!(decide(&key, Held::InPlace(Some(&current))), Outcome::Done);
        let stranger = rings().new.encrypt(b"x", b"1").expect("encrypts");
        assert_eq!(decide(&key, Held::InPlace(Some(&stranger))), Outcome::Unreadable);
    }

    #[test]
    fn what_has_an_envelope_already_does_not_look_at_its_source() {
        let Rings { new, .. } = rings();
        let current = new.encrypt(b"new", b"1").expect("encrypts");
        let decide = |envelope: &[u8]| {
            let held = Held::Apart { envelope: Some(envelope), source: Some(b"old") };
            convert(&new, &Source::Plain, held, None, "1").expect("decides")
        };
        assert_eq!(decide(&current), Outcome::Done);
        assert_eq!(decide(b"no envelope"), Outcome::Unreadable, "the source is not read in its place");
    }

    #[test]
    fn nothing_is_encrypted_twice() {
        let stranger = rings().new.encrypt(b"x", b"1").expect("encrypts");
        let Rings { new, .. } = rings();
        let moved = new.encrypt(b"x", b"2").expect("encrypts");
        for source in [Source::Envelopes, Source::Legacy(legacy()), Source::Plain] {
            for held in [Held::InPlace(Some(&stranger)), apart(&stranger)] {
                let outcome = convert(&new, &source, held, None, "1").expect("decides");
                assert_eq!(outcome, Outcome::Unreadable);
            }
        }
        let older = {
            let Rings { old, new } = rings();
            let value = old.encrypt(b"x", b"2").expect("encrypts");
            convert(&new, &Source::Plain, Held::InPlace(Some(&value)), None, "1").expect("decides")
        };
        assert_eq!(older, Outcome::Unreadable, "another row's envelope");
        let separate = convert(&new, &Source::Plain, apart(&moved), None, "1").expect("decides");
        assert_eq!(separate, Outcome::Unreadable);
    }

    #[test]
    fn nulls_are_done_and_what_cannot_be_read_stays() {
        let Rings { new, .. } = rings();
        let decide = |source: &Source, value| {
            convert(&new, source, Held::Apart { envelope: None, source: value }, None, "1").expect("decides")
        };
        assert_eq!(decide(&Source::Plain, None), Outcome::Done);
        assert_eq!(decide(&Source::Envelopes, Some(b"text")), Outcome::Unreadable);
        assert_eq!(decide(&Source::Legacy(legacy()), Some(b"text")), Outcome::Unreadable);
        assert_eq!(decide(&Source::Legacy(legacy()), Some(b"")), Outcome::Unreadable);
        assert!(matches!(decide(&Source::Plain, Some(b"")), Outcome::Replaced { .. }));
    }
}
