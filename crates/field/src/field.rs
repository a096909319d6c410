//! Encryption of one column.

use crate::{
    Error, KeyId,
    envelope::{COMMITMENT_BYTES, OVERHEAD, Parts, VERSION, parse, parse_mut},
    index::IndexKey,
    keyring::{KeyRing, State},
    nonce,
    xaes::{KEY_BYTES, Xaes256Gcm},
};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Encrypts, decrypts and indexes one column. Created by [`KeyRing::field`]; its keys are erased on drop.
///
/// The keys are derived for the table and column, and an envelope is bound to its row: it does not open in another
/// row, column or table. A row needs a permanent identifier, usually its primary key in decimal or text form, which
/// must be known before the row is written.
pub struct Field {
    active: FieldKey,
    /// Other keys that may still decrypt.
    older: Vec<FieldKey>,
    index: IndexKey,
    /// Table and column, encoded for the associated data.
    context: Vec<u8>,
}

struct FieldKey {
    id: KeyId,
    cipher: Xaes256Gcm,
    commitment: [u8; COMMITMENT_BYTES],
}

/// HKDF salt: separates these keys from other uses of the same key material.
const SALT: &[u8] = b"quadrille field v1";
/// Maximum length of a name: the associated data encodes its length in one byte.
const LONGEST_NAME: usize = 255;

impl KeyRing {
    /// Returns the field for one column.
    pub fn field(&self, table: &str, column: &str) -> Result<Field, Error> {
        Field::new(self, table, column)
    }
}

impl Field {
    fn new(ring: &KeyRing, table: &str, column: &str) -> Result<Self, Error> {
        let mut context = Vec::new();
        for name in [table, column] {
            context.extend(prefixed(name.as_bytes()).ok_or(Error::Name)?);
        }
        let key = |id, material: &_| FieldKey::new(id, material, &context);
        let active = ring.active();
        let older = ring.entries().filter(|entry| entry.state == State::DecryptOnly);
        Ok(Self {
            active: key(active.id, &active.material),
            older: older.map(|entry| key(entry.id, &entry.material)).collect(),
            index: IndexKey::new(&derived::<KEY_BYTES>(ring.index(), b"index", &context)),
            context,
        })
    }

    /// Encrypts `plain` for a row, returning the envelope.
    pub fn encrypt(&self, plain: &[u8], row: &[u8]) -> Result<Vec<u8>, Error> {
        let mut envelope = vec![0; plain.len() + OVERHEAD];
        self.encrypt_into(plain, row, &mut envelope)?;
        Ok(envelope)
    }

    /// Like [`encrypt`](Self::encrypt), into a buffer of the caller.
    ///
    /// # Panics
    /// Unless the buffer is [`OVERHEAD`] bytes longer than `plain`.
    pub fn encrypt_into(&self, plain: &[u8], row: &[u8], envelope: &mut [u8]) -> Result<(), Error> {
        assert_eq!(envelope.len(), plain.len() + OVERHEAD, "the buffer fits the envelope");
        let key = &self.active;
        let nonce = nonce::next()?;
        let parts = parse_mut(envelope);
        *parts.version = VERSION;
        *parts.id = key.id.0;
        *parts.commitment = key.commitment;
        *parts.nonce = nonce;
        self.with_associated_data(row, |data| {
            parts.ciphertext.copy_from_slice(plain);
            *parts.tag = key.cipher.seal(&nonce, data, parts.ciphertext);
        })
    }

    /// Decrypts an envelope; returns [`Error::Unreadable`] for any defect.
    pub fn decrypt(&self, envelope: &[u8], row: &[u8]) -> Result<Vec<u8>, Error> {
        let mut plain = vec![0; envelope.len().checked_sub(OVERHEAD).ok_or(Error::Unreadable)?];
        self.decrypt_into(envelope, row, &mut plain)?;
        Ok(plain)
    }

    /// Like [`decrypt`](Self::decrypt), into a buffer of the caller. After an error the buffer contains no plaintext.
    ///
    /// # Panics
    /// Unless the buffer is [`OVERHEAD`] bytes shorter than the envelope.
    pub fn decrypt_into(&self, envelope: &[u8], row: &[u8], plain: &mut [u8]) -> Result<(), Error> {
        assert_eq!(envelope.len(), plain.len() + OVERHEAD, "the buffer fits the plaintext");
        let (key, parts) = self.find(envelope)?;
        plain.copy_from_slice(parts.ciphertext);
        let opens =
            self.with_associated_data(row, |data| key.cipher.open(parts.nonce, data, plain, parts.tag))?;
        if opens { Ok(()) } else { Err(Error::Unreadable) }
    }

    /// Returns whether an envelope of this field uses a key other than the active one. Checks the header only.
    pub fn needs_rotation(&self, envelope: &[u8]) -> Result<bool, Error> {
        let (key, _) = self.find(envelope)?;
        Ok(key.id != self.active.id)
    }

    /// Re-encrypts an envelope under the active key.
    pub fn rotate(&self, envelope: &[u8], row: &[u8]) -> Result<Vec<u8>, Error> {
        let plain = Zeroizing::new(self.decrypt(envelope, row)?);
        self.encrypt(&plain, row)
    }

    /// Computes the search key of a value: the first `bits` (8 to 256, a multiple of 8) of a keyed hash, in
    /// hexadecimal.
    ///
    /// It does not change when keys are rotated. Equal values have equal indexes: normalise (case, spaces) first.
    pub fn blind_index(&self, plain: &[u8], bits: u32) -> Result<String, Error> {
        self.index.index(plain, bits)
    }

    /// Id of the active key: bytes 1 to 4 of every envelope that needs no rotation.
    pub fn active_id(&self) -> KeyId {
        self.active.id
    }

    /// Returns the envelope's parts and key, if this field has the key and the commitment matches.
    fn find<'a>(&self, envelope: &'a [u8]) -> Result<(&FieldKey, Parts<'a>), Error> {
        let parts = parse(envelope).ok_or(Error::Unreadable)?;
        let mut keys = std::iter::once(&self.active).chain(&self.older);
        let key = keys.find(|key| key.id.0 == *parts.id).ok_or(Error::Unreadable)?;
        // Neither is secret: both are in the database.
        if key.commitment == *parts.commitment { Ok((key, parts)) } else { Err(Error::Unreadable) }
    }

    /// Calls `f` with table, column and row, each with its length as a prefix.
    fn with_associated_data<T>(&self, row: &[u8], f: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        if row.is_empty() || row.len() > LONGEST_NAME {
            return Err(Error::Row);
        }
        let length = self.context.len() + 1 + row.len();
        let mut on_stack = [0; 96];
        let mut on_heap = Vec::new();
        let data = match on_stack.get_mut(..length) {
            Some(data) => data,
            None => {
                on_heap.resize(length, 0);
                &mut on_heap
            }
        };
        let (context, named) = data.split_at_mut(self.context.len());
        context.copy_from_slice(&self.context);
        named[0] = row.len() as u8;
        named[1..].copy_from_slice(row);
        Ok(f(data))
    }
}

impl FieldKey {
    fn new(id: KeyId, material: &[u8; KEY_BYTES], context: &[u8]) -> Self {
        // One expansion yields both, so that the commitment, its second block, also depends on the key.
        let both = derived::<{ KEY_BYTES + COMMITMENT_BYTES }>(material, b"encrypt", context);
        let (key, commitment) = both.split_first_chunk().expect("64 > 32");
        let commitment = commitment.try_into().expect("64 - 32 = 32");
        Self { id, cipher: Xaes256Gcm::new(key), commitment }
    }
}

/// Derives a key by HKDF-SHA256 (RFC 5869) for a purpose and a table and column.
fn derived<const N: usize>(material: &[u8; KEY_BYTES], purpose: &[u8], context: &[u8]) -> Zeroizing<[u8; N]> {
    let mut output = Zeroizing::new([0; N]);
    let purpose = prefixed(purpose).expect("purposes are short");
    Hkdf::<Sha256>::new(Some(SALT), material)
        .expand_multi_info(&[&purpose, context], &mut *output)
        .expect("HKDF gives up to 8160 bytes");
    output
}

/// Returns `name` with its length as a one-byte prefix; `None` if it is empty or too long.
fn prefixed(name: &[u8]) -> Option<Vec<u8>> {
    (1..=LONGEST_NAME).contains(&name.len()).then(|| [&[name.len() as u8], name].concat())
}
