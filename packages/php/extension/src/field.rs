//! The class `Quadrille\Field`.

use crate::{
    exceptions::{field_error, internal, value_error},
    strings::{PhpString, Row, decrypted, filled, with_envelope},
};
use ext_php_rs::{
    binary_slice::BinarySlice,
    boxed::ZBox,
    convert::IntoZval,
    flags::ClassFlags,
    prelude::*,
    types::{ZendHashTable, Zval},
};
use quadrille_field::{Field as Column, envelope::OVERHEAD};
use std::sync::Arc;

/// One encrypted column.
#[php_class]
#[php(name = "Quadrille\\Field")]
#[php(flags = ClassFlags::Final.union(ClassFlags::NotSerializable))]
pub struct Field(pub(crate) Arc<Column>);

#[php_impl]
impl Field {
    /// Encrypts a value for a row; returns the envelope.
    pub fn encrypt(&self, plain: BinarySlice<u8>, row: &Zval) -> PhpResult<PhpString> {
        let mut row = Row::new(row)?;
        filled(plain.len() + OVERHEAD, |envelope| self.0.encrypt_into(&plain, row.bytes(), envelope))
    }

    /// Decrypts an envelope.
    pub fn decrypt(&self, envelope: &Zval, row: &Zval) -> PhpResult<PhpString> {
        let mut row = Row::new(row)?;
        with_envelope(envelope, |envelope| decrypted(&self.0, envelope, row.bytes()))
    }

    /// Decrypts several envelopes under the same keys; null stays null.
    pub fn decrypt_many(
        &self,
        envelopes: &ZendHashTable,
        rows: &ZendHashTable,
    ) -> PhpResult<ZBox<ZendHashTable>> {
        if envelopes.len() != rows.len() {
            let (envelopes, rows) = (envelopes.len(), rows.len());
            return Err(value_error(format!("there are {envelopes} envelopes and {rows} rows")));
        }
        let mut values = ZendHashTable::with_capacity(envelopes.len() as u32);
        for ((key, envelope), row) in envelopes.iter().zip(rows.values()) {
            let value = match envelope.is_null() {
                true => Zval::null(),
                false => self.decrypt(envelope, row)?.into_zval(false).map_err(internal)?,
            };
            values.insert(key, value).map_err(internal)?;
        }
        Ok(values)
    }

    /// Returns the blind index of a value, for lookups.
    #[php(defaults(bits = 64))]
    pub fn blind_index(&self, plain: BinarySlice<u8>, bits: i64) -> PhpResult<String> {
        let bits = bits.try_into().unwrap_or(u32::MAX);
        self.0.blind_index(&plain, bits).map_err(field_error)
    }

    /// Returns whether an envelope is under another key than the active one.
    pub fn needs_rotation(&self, envelope: &Zval) -> PhpResult<bool> {
        with_envelope(envelope, |envelope| self.0.needs_rotation(envelope).map_err(field_error))
    }

    /// Re-encrypts an envelope under the active key.
    pub fn rotate(&self, envelope: &Zval, row: &Zval) -> PhpResult<PhpString> {
        // The plaintext is in a PHP string, which PHP frees even if memory runs out, and is erased.
        let plain = self.decrypt(envelope, row)?;
        let mut row = Row::new(row)?;
        let rotated = filled(plain.bytes().len() + OVERHEAD, |envelope| {
            self.0.encrypt_into(plain.bytes(), row.bytes(), envelope)
        });
        plain.erase();
        rotated
    }
}
