//! What becomes of one value: pure, without a database.

use crate::job::Source;
use quadrille_field::{Error, Field, envelope};
use zeroize::Zeroizing;

/// What becomes of one value.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it should be.
    Done,
    /// It is to be replaced by this envelope.
    Replaced {
        /// The envelope under the active key.
        envelope: Vec<u8>,
        /// The blind index of its value, if one is asked for.
        index: Option<String>,
    },
    /// It cannot be read, and stays as it is.
    Unreadable,
}

/// Decides about one row's column: `stored` is what the column for envelopes holds, `source` what the column that is
/// read holds (the same if it is one column).
pub fn convert(
    field: &Field,
    from: &Source,
    stored: Option<&[u8]>,
    source: Option<&[u8]>,
    index_bits: Option<u32>,
    row: &str,
) -> Result<Outcome, Error> {
    let row = row.as_bytes();
    let Some(value) = stored.or(source) else { return Ok(Outcome::Done) };
    let is_separate = stored.is_none();
    let plain = match (field.needs_rotation(value), from) {
        (Ok(false), _) if !is_separate => return Ok(Outcome::Done),
        (Ok(_), _) if !is_separate => field.decrypt(value, row),
        // Raw ciphertexts begin with any byte, and what is decrypted wrongly is no text.
        (_, Source::Mcrypt(mcrypt)) if mcrypt.reads_only_text() => mcrypt.decrypt(value),
        // What looks like an envelope and is none of ours must not be encrypted again: its key is missing.
        _ if looks_like_envelope(value) => Err(Error::Unreadable),
        (_, Source::Envelopes) => Err(Error::Unreadable),
        (_, Source::Legacy(legacy)) => legacy.decrypt(value),
        (_, Source::Mcrypt(mcrypt)) => mcrypt.decrypt(value),
        (_, Source::Plain) => Ok(value.to_vec()),
    };
    let plain = match plain {
        Ok(plain) => Zeroizing::new(plain),
        Err(Error::Unreadable) => return Ok(Outcome::Unreadable),
        Err(error) => return Err(error),
    };
    let envelope = field.encrypt(&plain, row)?;
    let index = index_bits.map(|bits| field.blind_index(&plain, bits)).transpose()?;
    Ok(Outcome::Replaced { envelope, index })
}

/// The version and the length of an envelope; neither plain text nor the older form begins with that byte.
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
                convert(&new, &source, Some(value), Some(value), Some(64), "1").expect("decides")
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
            for stored in [None, Some(value)] {
                let outcome = convert(&new, &source, stored, Some(value), None, "1").expect("decides");
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
        // Of libmcrypt.
        let key: Vec<u8> = (0..16).map(|i| i * 7 + 3).collect();
        let stored = b"6351bf544ac447de31d5e6270c9f37e9";
        let decide = |key: &[u8], stored: Option<&[u8]>| {
            let mcrypt = Mcrypt::new(key, form, McryptVector::Front).expect("a key");
            let source = Source::Mcrypt(Box::new(mcrypt));
            convert(
                &new,
                &source,
                stored,
                Some(stored.unwrap_or(b"6351bf544ac447de31d5e6270c9f37e9")),
                None,
                "1",
            )
            .expect("decides")
        };
        for stored in [Some(&stored[..]), None] {
            assert_eq!(replaced(decide(&key, stored), &new), (b"+49 30 1234567".to_vec(), None));
            assert_eq!(decide(&[1; 16], stored), Outcome::Unreadable);
        }
        let current = new.encrypt(b"x", b"1").expect("encrypts");
        assert_eq!(decide(&key, Some(&current)), Outcome::Done);
        let stranger = rings().new.encrypt(b"x", b"1").expect("encrypts");
        assert_eq!(decide(&key, Some(&stranger)), Outcome::Unreadable);
    }

    #[test]
    fn what_has_an_envelope_already_does_not_look_at_its_source() {
        let Rings { new, .. } = rings();
        let current = new.encrypt(b"new", b"1").expect("encrypts");
        let outcome =
            convert(&new, &Source::Plain, Some(&current), Some(b"old"), None, "1").expect("decides");
        assert_eq!(outcome, Outcome::Done);
    }

    #[test]
    fn nothing_is_encrypted_twice() {
        let stranger = rings().new.encrypt(b"x", b"1").expect("encrypts");
        let Rings { new, .. } = rings();
        let moved = new.encrypt(b"x", b"2").expect("encrypts");
        for source in [Source::Envelopes, Source::Legacy(legacy()), Source::Plain] {
            for stored in [None, Some(&stranger[..])] {
                let outcome = convert(&new, &source, stored, Some(&stranger), None, "1").expect("decides");
                assert_eq!(outcome, Outcome::Unreadable);
            }
        }
        let older = {
            let Rings { old, new } = rings();
            let value = old.encrypt(b"x", b"2").expect("encrypts");
            convert(&new, &Source::Plain, Some(&value), Some(&value), None, "1").expect("decides")
        };
        assert_eq!(older, Outcome::Unreadable, "another row's envelope");
        let separate = convert(&new, &Source::Plain, None, Some(&moved), None, "1").expect("decides");
        assert_eq!(separate, Outcome::Unreadable);
    }

    #[test]
    fn nulls_are_done_and_what_cannot_be_read_stays() {
        let Rings { new, .. } = rings();
        let decide = |source: &Source, value| convert(&new, source, None, value, None, "1").expect("decides");
        assert_eq!(decide(&Source::Plain, None), Outcome::Done);
        assert_eq!(decide(&Source::Envelopes, Some(b"text")), Outcome::Unreadable);
        assert_eq!(decide(&Source::Legacy(legacy()), Some(b"text")), Outcome::Unreadable);
        assert_eq!(decide(&Source::Legacy(legacy()), Some(b"")), Outcome::Unreadable);
        assert!(matches!(decide(&Source::Plain, Some(b"")), Outcome::Replaced { .. }));
    }
}
