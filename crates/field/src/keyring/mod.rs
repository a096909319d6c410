//! Key rings: keys, their states, and the file format.

mod file;
mod text;

pub use file::KeyRingLock;

use crate::{Error, KeyRingError, envelope::ID_BYTES, random, xaes::KEY_BYTES};
use std::{fmt, str::FromStr};
use zeroize::Zeroizing;

/// Random id of a key, contained in every envelope. Shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(pub(crate) [u8; ID_BYTES]);

/// Permitted uses of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Encrypts and decrypts. There is exactly one active key.
    Active,
    /// Decrypts only: its envelopes wait for rotation, or it waits for activation.
    DecryptOnly,
    /// Unused; kept for a possible reactivation.
    Retired,
}

/// Keys from which fields' keys are derived; erased on drop.
///
/// A ring has one index key besides the encryption keys. It is not rotated with them; otherwise no value could be
/// found any more.
pub struct KeyRing {
    entries: Vec<Entry>,
    index: Material,
}

pub(crate) type Material = Zeroizing<[u8; KEY_BYTES]>;

pub(crate) struct Entry {
    pub(crate) id: KeyId,
    pub(crate) state: State,
    pub(crate) material: Material,
}

impl KeyRing {
    /// Generates a ring with one active key and an index key.
    pub fn generate() -> Result<Self, Error> {
        let first = Entry { id: KeyId(*random::array()?), state: State::Active, material: random::array()? };
        Ok(Self { entries: vec![first], index: random::array()? })
    }

    /// Ids and states of the keys, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = (KeyId, State)> {
        self.entries.iter().map(|entry| (entry.id, entry.state))
    }

    /// Adds a decrypt-only key, so that it can be distributed to every server before it is used.
    pub fn add(&mut self) -> Result<KeyId, Error> {
        loop {
            let id = KeyId(*random::array()?);
            if self.find(id).is_err() {
                self.entries.push(Entry { id, state: State::DecryptOnly, material: random::array()? });
                return Ok(id);
            }
        }
    }

    /// Makes a key active, and the previously active one decrypt-only.
    pub fn activate(&mut self, id: KeyId) -> Result<(), KeyRingError> {
        let chosen = self.find(id)?;
        for entry in &mut self.entries {
            if entry.state == State::Active {
                entry.state = State::DecryptOnly;
            }
        }
        self.entries[chosen].state = State::Active;
        Ok(())
    }

    /// Retires a key: data still encrypted under it cannot be read until it is activated again.
    pub fn retire(&mut self, id: KeyId) -> Result<(), KeyRingError> {
        let chosen = self.find(id)?;
        if self.entries[chosen].state == State::Active {
            return Err(KeyRingError::new(format!("key {id} is the active one: activate another first")));
        }
        self.entries[chosen].state = State::Retired;
        Ok(())
    }

    pub(crate) fn active(&self) -> &Entry {
        let active = self.entries.iter().find(|entry| entry.state == State::Active);
        active.expect("a ring has an active key")
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn index(&self) -> &[u8; KEY_BYTES] {
        &self.index
    }

    fn find(&self, id: KeyId) -> Result<usize, KeyRingError> {
        let position = self.entries.iter().position(|entry| entry.id == id);
        position.ok_or_else(|| KeyRingError::new(format!("there is no key {id}")))
    }
}

impl State {
    const ALL: [Self; 3] = [Self::Active, Self::DecryptOnly, Self::Retired];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::DecryptOnly => "decrypt-only",
            Self::Retired => "retired",
        })
    }
}

impl FromStr for State {
    type Err = KeyRingError;

    fn from_str(word: &str) -> Result<Self, KeyRingError> {
        let state = Self::ALL.into_iter().find(|state| state.to_string() == word);
        state.ok_or_else(|| KeyRingError::new("the state must be one of active, decrypt-only, retired"))
    }
}

impl KeyId {
    /// Bytes of the id in an envelope.
    pub fn bytes(self) -> [u8; ID_BYTES] {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyId {
    type Err = KeyRingError;

    fn from_str(text: &str) -> Result<Self, KeyRingError> {
        let is_plain = text.len() == 2 * ID_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_plain.then(|| u32::from_str_radix(text, 16).ok()).flatten();
        let number = number.ok_or_else(|| KeyRingError::new("a key id is 8 hexadecimal digits"))?;
        Ok(Self(number.to_be_bytes()))
    }
}
