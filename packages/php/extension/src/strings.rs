//! Bytes from and to PHP, without a copy in Rust's memory.

use crate::exceptions::{field_error, type_error};
use ext_php_rs::{
    alloc::emalloc,
    boxed::ZBox,
    convert::IntoZval,
    exception::PhpResult,
    ffi::{GC_FLAGS_SHIFT, IS_STRING, zend_string},
    flags::DataType,
    types::{ZendCallable, ZendStr, Zval},
};
use quadrille_field::{Error, Field, envelope::OVERHEAD};
use std::{alloc::Layout, mem::offset_of, slice};
use zeroize::Zeroize;

/// Flag of strings: they hold no other values, so PHP's cycle collector skips them (`GC_NOT_COLLECTABLE`).
const NOT_COLLECTABLE: u32 = 1 << 4;

/// A string passed to PHP, which frees it.
pub struct PhpString(ZBox<ZendStr>);

impl IntoZval for PhpString {
    const TYPE: DataType = DataType::String;
    const NULLABLE: bool = false;

    fn set_zval(self, zval: &mut Zval, _persistent: bool) -> ext_php_rs::error::Result<()> {
        zval.set_zend_string(self.0);
        Ok(())
    }
}

impl PhpString {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Overwrites the string, which is not shared yet, and frees it.
    pub(crate) fn erase(mut self) {
        let length = self.0.len();
        // SAFETY: the string has that many bytes.
        unsafe { slice::from_raw_parts_mut(self.0.val.as_mut_ptr().cast::<u8>(), length) }.zeroize();
    }
}

/// Creates a PHP string of `length` bytes that `fill` writes; freed if it fails.
pub(crate) fn filled(
    length: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> PhpResult<PhpString> {
    let mut string = zeroed(length);
    // SAFETY: the string has space for `length` bytes, all initialised, and is not shared yet.
    fill(unsafe { slice::from_raw_parts_mut(string.val.as_mut_ptr().cast(), length) })
        .map_err(field_error)?;
    Ok(PhpString(string))
}

/// Decrypts an envelope into a new PHP string.
pub(crate) fn decrypted(field: &Field, envelope: &[u8], row: &[u8]) -> PhpResult<PhpString> {
    let length = envelope.len().checked_sub(OVERHEAD).ok_or(Error::Unreadable).map_err(field_error)?;
    filled(length, |plain| field.decrypt_into(envelope, row, plain))
}

/// Allocates like PHP's own `zend_string_alloc`, an inline function missing from the bindings. It does not return if
/// PHP's memory limit is reached.
fn zeroed(length: usize) -> ZBox<ZendStr> {
    let size = offset_of!(zend_string, val) + length + 1;
    let layout = Layout::from_size_align(size.next_multiple_of(8), 8).expect("a string fits into memory");
    let string: *mut zend_string = emalloc(layout).cast();
    // SAFETY: emalloc returns memory of the layout, or does not return. The fields are those that PHP initialises, and
    // the bytes end with a zero.
    unsafe {
        (*string).gc.refcount = 1;
        (*string).gc.u.type_info = IS_STRING | NOT_COLLECTABLE << GC_FLAGS_SHIFT;
        (*string).h = 0;
        (*string).len = length;
        (&raw mut (*string).val).cast::<u8>().write_bytes(0, length + 1);
        ZBox::from_raw(string)
    }
}

/// Returns the bytes of a string argument.
pub(crate) fn bytes<'a>(value: &'a Zval, what: &str) -> PhpResult<&'a [u8]> {
    match value.zend_str() {
        Some(string) => Ok(string.as_bytes()),
        None => Err(type_error(format!("{what} must be of type string, {} given", type_name(value)))),
    }
}

/// Calls `f` with the bytes of an envelope: a string, or a stream, which PDO returns for PostgreSQL's bytea.
pub(crate) fn with_envelope<T>(value: &Zval, f: impl FnOnce(&[u8]) -> PhpResult<T>) -> PhpResult<T> {
    if let Some(string) = value.zend_str() {
        return f(string.as_bytes());
    }
    if !value.is_resource() {
        let given = type_name(value);
        return Err(type_error(format!("the envelope must be of type string or a stream, {given} given")));
    }
    let read = ZendCallable::try_from_name("stream_get_contents")
        .and_then(|function| function.try_call(vec![value]))
        .map_err(|error| type_error(format!("the envelope's stream cannot be read: {error}")))?;
    f(bytes(&read, "the envelope's stream")?)
}

/// Identifier of a row: an integer in decimal, or a string.
pub(crate) enum Row<'a> {
    Number(itoa::Buffer, i64),
    Text(&'a [u8]),
}

impl<'a> Row<'a> {
    pub(crate) fn new(value: &'a Zval) -> PhpResult<Self> {
        if let Some(number) = value.long() {
            Ok(Self::Number(itoa::Buffer::new(), number))
        } else if let Some(string) = value.zend_str() {
            Ok(Self::Text(string.as_bytes()))
        } else {
            Err(type_error(format!("the row must be of type int or string, {} given", type_name(value))))
        }
    }

    pub(crate) fn bytes(&mut self) -> &[u8] {
        match self {
            Self::Number(buffer, number) => buffer.format(*number).as_bytes(),
            Self::Text(text) => text,
        }
    }
}

/// Returns the type name as in PHP's `get_debug_type`, for types that are not objects.
fn type_name(value: &Zval) -> &'static str {
    match value.dereference().get_type() {
        DataType::Null => "null",
        DataType::Bool | DataType::True | DataType::False => "bool",
        DataType::Long => "int",
        DataType::Double => "float",
        DataType::String => "string",
        DataType::Array => "array",
        DataType::Resource => "resource",
        _ => "object",
    }
}
