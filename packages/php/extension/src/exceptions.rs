//! Exceptions: `Quadrille\FieldException` and its children, and PHP's own `ValueError` and `TypeError` for invalid
//! arguments.
//!
//! The classes are registered manually: objects of a `#[php_class]` are created by ext-php-rs, not by PHP's own
//! exceptions, and would have no file, line or backtrace.

use ext_php_rs::{
    builders::ClassBuilder,
    prelude::*,
    zend::{ClassEntry, ce},
};
use quadrille_field::{Error, KeyRingError};
use std::sync::OnceLock;

/// Registers the classes at module startup: returns 0, or -1 if PHP fails.
pub(crate) unsafe extern "C" fn register(_type: i32, _module: i32) -> i32 {
    let class = |name| ClassBuilder::new(name);
    let registered = class("Quadrille\\FieldException")
        .extends((runtime_exception, "\\RuntimeException"))
        .registration(|class, _| keep(&FIELD, class))
        .register()
        .and_then(|()| {
            class("Quadrille\\KeyRingException")
                .extends((|| kept(&FIELD), "\\Quadrille\\FieldException"))
                .registration(|class, _| keep(&KEY_RING, class))
                .register()
        })
        .and_then(|()| {
            class("Quadrille\\DecryptionException")
                .extends((|| kept(&FIELD), "\\Quadrille\\FieldException"))
                .registration(|class, _| keep(&DECRYPTION, class))
                .register()
        });
    if registered.is_ok() { 0 } else { -1 }
}

/// Creates the exception for an error of a field.
pub(crate) fn field_error(error: Error) -> PhpException {
    let message = error.to_string();
    match error {
        Error::Unreadable => PhpException::new(message, 0, kept(&DECRYPTION)),
        Error::Random(_) => PhpException::new(message, 0, kept(&FIELD)),
        Error::Name | Error::Row | Error::Bits | Error::LegacyKey | Error::Mcrypt => value_error(message),
    }
}

/// Creates the exception for an error of a key ring.
pub(crate) fn key_ring_error(error: KeyRingError) -> PhpException {
    PhpException::new(error.to_string(), 0, kept(&KEY_RING))
}

pub(crate) fn value_error(message: String) -> PhpException {
    PhpException::new(message, 0, ce::value_error())
}

pub(crate) fn type_error(message: String) -> PhpException {
    PhpException::new(message, 0, ce::type_error())
}

/// Creates the exception for an unexpected error of ext-php-rs.
pub(crate) fn internal(error: ext_php_rs::error::Error) -> PhpException {
    PhpException::new(error.to_string(), 0, kept(&FIELD))
}

/// Address of a class, which PHP keeps for the life of the process.
type Class = OnceLock<usize>;

static FIELD: Class = OnceLock::new();
static KEY_RING: Class = OnceLock::new();
static DECRYPTION: Class = OnceLock::new();

fn keep(class: &Class, entry: &'static mut ClassEntry) {
    // If the module was started before, PHP keeps the first registration.
    let _ = class.set(std::ptr::from_mut(entry).expose_provenance());
}

fn kept(class: &Class) -> &'static ClassEntry {
    match class.get() {
        // SAFETY: the address is that of a class that PHP registered, and keeps.
        Some(&address) => unsafe { &*std::ptr::with_exposed_provenance(address) },
        None => runtime_exception(),
    }
}

/// Returns PHP's `RuntimeException`, which ext-php-rs does not export.
fn runtime_exception() -> &'static ClassEntry {
    unsafe extern "C" {
        #[link_name = "spl_ce_RuntimeException"]
        static CLASS: *const ClassEntry;
    }
    // SAFETY: PHP sets this when it starts its own classes, before those of extensions, and keeps it.
    unsafe { &*CLASS }
}
