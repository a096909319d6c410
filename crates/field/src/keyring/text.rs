//! Text format of a key ring file.
//!
//! ```text
//! quadrille field keys 1
//! key 3f9a01c2 active BASE64
//! key 77b0e4d1 decrypt-only BASE64
//! index BASE64
//! ```
//!
//! Blank lines and lines that begin with `#` are ignored. Every key has 32 bytes.

use super::{Entry, KeyRing, Material, State};
use crate::{KeyRingError, xaes::KEY_BYTES};
use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

const TITLE: &str = "quadrille field keys 1";
/// Length of a key in base64.
const ENCODED: usize = 44;

impl KeyRing {
    /// Parses the text of a key ring file.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        match lines.next() {
            Some((TITLE, _)) => {}
            other => {
                let line = other.map_or(1, |(_, number)| number);
                return Err(
                    KeyRingError::new(format!("a key ring begins with the line '{TITLE}'")).in_line(line)
                );
            }
        }
        let mut reader = Reader::default();
        for (line, number) in lines {
            reader.line(line).map_err(|error| error.in_line(number))?;
        }
        reader.into_ring()
    }

    /// Formats this ring as text for [`parse`](Self::parse). The text contains the keys.
    pub fn to_text(&self) -> Zeroizing<String> {
        // Allocates the full size: a reallocation would leave a copy of the keys behind.
        let mut text = Zeroizing::new(String::with_capacity(512 + 128 * self.entries.len()));
        text.push_str("# This file's keys decrypt the fields. Restrict access to its owner (mode 0600).\n");
        text.push_str(TITLE);
        text.push('\n');
        for Entry { id, state, material } in &self.entries {
            text.push_str(&format!("key {id} {state} "));
            push_key(&mut text, material);
        }
        text.push_str("index ");
        push_key(&mut text, &self.index);
        text
    }
}

fn push_key(text: &mut String, key: &Material) {
    let mut buffer = Zeroizing::new([0; ENCODED]);
    text.push_str(Base64::encode(&**key, &mut *buffer).expect("44 characters hold 32 bytes"));
    text.push('\n');
}

#[derive(Default)]
struct Reader {
    entries: Vec<Entry>,
    index: Option<Material>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), KeyRingError> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["key", id, state, key] => {
                self.add(Entry { id: id.parse()?, state: state.parse()?, material: material(key)? })
            }
            ["index", key] if self.index.is_none() => {
                self.index = Some(material(key)?);
                Ok(())
            }
            ["index", _] => Err(KeyRingError::new("there is more than one index key")),
            _ => Err(KeyRingError::new("expected 'key ID STATE BASE64' or 'index BASE64'")),
        }
    }

    fn add(&mut self, new: Entry) -> Result<(), KeyRingError> {
        if self.entries.iter().any(|entry| entry.id == new.id) {
            return Err(KeyRingError::new(format!("duplicate key {}", new.id)));
        }
        if new.state == State::Active && self.entries.iter().any(|entry| entry.state == State::Active) {
            return Err(KeyRingError::new("there is more than one active key"));
        }
        self.entries.push(new);
        Ok(())
    }

    fn into_ring(self) -> Result<KeyRing, KeyRingError> {
        if !self.entries.iter().any(|entry| entry.state == State::Active) {
            return Err(KeyRingError::new("there is no active key"));
        }
        let index = self.index.ok_or_else(|| KeyRingError::new("there is no index key"))?;
        Ok(KeyRing { entries: self.entries, index })
    }
}

/// Decodes a key in constant time; errors do not reveal its contents.
fn material(encoded: &str) -> Result<Material, KeyRingError> {
    let mut key = Material::new([0; KEY_BYTES]);
    let length = Base64::decode(encoded, &mut *key).map(<[u8]>::len);
    if length == Ok(KEY_BYTES) { Ok(key) } else { Err(KeyRingError::new("a key is 32 bytes in base64")) }
}
