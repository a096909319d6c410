//! The class `Quadrille\KeyRing`.

#![allow(non_snake_case, reason = "PHP code may name the arguments, which are in camel case there")]

use crate::{
    cache::{self, Cached},
    exceptions::{field_error, internal, key_ring_error, value_error},
    field::Field,
    legacy::Legacy,
    strings::{PhpString, filled},
};
use ext_php_rs::{
    binary_slice::BinarySlice, boxed::ZBox, flags::ClassFlags, prelude::*, types::ZendHashTable,
    zend::BailoutGuard,
};
use quadrille_field::{KeyRing as Ring, KeyRingError, Legacy as Older, random_key};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

/// A key ring.
#[php_class]
#[php(name = "Quadrille\\KeyRing")]
#[php(flags = ClassFlags::Final.union(ClassFlags::NotSerializable))]
pub struct KeyRing(Arc<Cached>);

/// Maximum length of a random key.
const LONGEST_KEY: i64 = 4096;

#[php_impl]
impl KeyRing {
    /// Loads the key ring of a file; the process keeps it until the file changes.
    pub fn load(path: BinarySlice<u8>) -> PhpResult<Self> {
        let path = Path::new(OsStr::from_bytes(&path));
        if !cache::may_open(path) {
            return Err(key_ring_error(KeyRingError {
                path: Some(path.to_owned()),
                line: None,
                what: "open_basedir does not allow access to the key ring".to_owned(),
                source: None,
            }));
        }
        cache::load(path).map(Self).map_err(key_ring_error)
    }

    /// Parses a key ring from text, for instance from a secret store.
    pub fn parse(text: &str) -> PhpResult<Self> {
        let ring = Ring::parse(text).map_err(key_ring_error)?;
        Ok(Self(Arc::new(Cached::new(ring))))
    }

    /// Generates a random key.
    #[php(defaults(bytes = 32))]
    pub fn random_key(bytes: i64) -> PhpResult<PhpString> {
        if !(1..=LONGEST_KEY).contains(&bytes) {
            return Err(value_error(format!("a key has 1 to {LONGEST_KEY} bytes, not {bytes}")));
        }
        let key = BailoutGuard::new(random_key(bytes as usize).map_err(field_error)?);
        filled(key.len(), |string| {
            string.copy_from_slice(&key);
            Ok(())
        })
    }

    /// Returns one column.
    pub fn field(&self, table: &str, column: &str) -> PhpResult<Field> {
        self.0.field(table, column).map(Field).map_err(field_error)
    }

    /// Returns the keys' ids and states, in the order of the file.
    pub fn keys(&self) -> PhpResult<ZBox<ZendHashTable>> {
        let mut keys = ZendHashTable::new();
        for (id, state) in self.0.ring().keys() {
            let mut key = ZendHashTable::new();
            key.insert("id", id.to_string()).map_err(internal)?;
            key.insert("state", state.to_string()).map_err(internal)?;
            keys.push(key).map_err(internal)?;
        }
        Ok(keys)
    }

    /// Returns a reader and writer of the older form.
    pub fn legacy(&self, dataKey: BinarySlice<u8>, vectorKey: BinarySlice<u8>) -> PhpResult<Legacy> {
        Older::new(&dataKey, &vectorKey).map(Legacy).map_err(field_error)
    }
}
