//! What is thrown: `Quadrille\FieldException` and its children, and PHP's own `ValueError` for wrong arguments.

use ext_php_rs::{
    prelude::*,
    zend::{ClassEntry, ce},
};
use quadrille_field::{Error, KeyRingError};

/// Whatever goes wrong with encrypted fields.
#[php_class]
#[php(name = "Quadrille\\FieldException")]
#[php(extends(ce = runtime_exception, stub = "\\RuntimeException"))]
#[derive(Default)]
pub struct FieldException;

/// A key ring cannot be read.
#[php_class]
#[php(name = "Quadrille\\KeyRingException")]
#[php(extends(FieldException))]
#[derive(Default)]
pub struct KeyRingException;

/// A field cannot be decrypted; it never says why.
#[php_class]
#[php(name = "Quadrille\\DecryptionException")]
#[php(extends(FieldException))]
#[derive(Default)]
pub struct DecryptionException;

/// The exception for an error of a field.
pub(crate) fn field_error(error: Error) -> PhpException {
    let message = error.to_string();
    match error {
        Error::Unreadable => PhpException::from_class::<DecryptionException>(message),
        Error::Random(_) => PhpException::from_class::<FieldException>(message),
        Error::Name | Error::Row | Error::Bits | Error::LegacyKey => value_error(message),
    }
}

/// The exception for an error of a key ring.
pub(crate) fn key_ring_error(error: KeyRingError) -> PhpException {
    PhpException::from_class::<KeyRingException>(error.to_string())
}

pub(crate) fn value_error(message: String) -> PhpException {
    PhpException::new(message, 0, ce::value_error())
}

/// What ext-php-rs cannot do, and should be able to.
pub(crate) fn internal(error: ext_php_rs::error::Error) -> PhpException {
    PhpException::from_class::<FieldException>(error.to_string())
}

pub(crate) fn type_error(message: String) -> PhpException {
    PhpException::new(message, 0, ce::type_error())
}

/// PHP's `RuntimeException`, which ext-php-rs does not name.
fn runtime_exception() -> &'static ClassEntry {
    unsafe extern "C" {
        #[link_name = "spl_ce_RuntimeException"]
        static CLASS: *const ClassEntry;
    }
    // SAFETY: PHP sets this when it starts its own classes, before those of extensions, and keeps it.
    unsafe { &*CLASS }
}
