//! The binary interface between OpenSSL 3 and a provider, as documented in core.h, core_dispatch.h and core_names.h
//! (provider-base(7) and the pages it names). Nothing of OpenSSL is linked.

use std::ffi::{CStr, c_char, c_int, c_void};

/// One entry of a dispatch table; a table ends with [`Dispatch::END`].
#[repr(C)]
pub(crate) struct Dispatch {
    id: c_int,
    function: *const (),
}

// SAFETY: it holds a number and the address of a function, and never changes.
unsafe impl Sync for Dispatch {}

impl Dispatch {
    pub(crate) const END: Self = Self { id: 0, function: std::ptr::null() };

    /// `function` must be an `extern "C"` function of the type that OpenSSL documents for this number.
    pub(crate) const fn new(id: c_int, function: *const ()) -> Self {
        Self { id, function }
    }

    pub(crate) fn id(&self) -> c_int {
        self.id
    }

    pub(crate) fn function(&self) -> *const () {
        self.function
    }
}

/// One algorithm of an operation; a list ends with [`Algorithm::END`].
#[repr(C)]
pub(crate) struct Algorithm {
    names: *const c_char,
    properties: *const c_char,
    functions: *const Dispatch,
    description: *const c_char,
}

// SAFETY: it consists of addresses of statics.
unsafe impl Sync for Algorithm {}

impl Algorithm {
    pub(crate) const END: Self = Self {
        names: std::ptr::null(),
        properties: std::ptr::null(),
        functions: std::ptr::null(),
        description: std::ptr::null(),
    };

    pub(crate) const fn new(
        names: &'static std::ffi::CStr,
        properties: &'static std::ffi::CStr,
        functions: &'static [Dispatch],
        description: &'static std::ffi::CStr,
    ) -> Self {
        Self {
            names: names.as_ptr(),
            properties: properties.as_ptr(),
            functions: functions.as_ptr(),
            description: description.as_ptr(),
        }
    }
}

/// `OSSL_PARAM`: a named value. See [`params`](crate::params).
#[repr(C)]
pub(crate) struct Param {
    pub(crate) key: *const c_char,
    pub(crate) data_type: u32,
    pub(crate) data: *mut c_void,
    pub(crate) size: usize,
    pub(crate) returned: usize,
}

// SAFETY: statics only describe parameters, and hold no data.
unsafe impl Sync for Param {}

pub(crate) const PARAM_INTEGER: u32 = 1;
pub(crate) const PARAM_UNSIGNED: u32 = 2;
pub(crate) const PARAM_TEXT: u32 = 4;
pub(crate) const PARAM_BYTES: u32 = 5;
pub(crate) const PARAM_TEXT_PTR: u32 = 6;
pub(crate) const PARAM_BYTES_PTR: u32 = 7;

/// An error reason and its text; a list ends with zeros.
#[repr(C)]
pub(crate) struct ReasonText {
    pub(crate) reason: usize,
    pub(crate) text: *const c_char,
}

// SAFETY: a number and a static text.
unsafe impl Sync for ReasonText {}

/// `OSSL_CALLBACK`.
pub(crate) type Callback = unsafe extern "C" fn(params: *const Param, argument: *mut c_void) -> c_int;

/// Operations that a provider may implement algorithms for.
pub(crate) mod operation {
    pub(crate) const KEYMGMT: i32 = 10;
    pub(crate) const KEYEXCH: i32 = 11;
    pub(crate) const SIGNATURE: i32 = 12;
    pub(crate) const ASYM_CIPHER: i32 = 13;
    pub(crate) const KEM: i32 = 14;
    pub(crate) const DECODER: i32 = 21;
    pub(crate) const STORE: i32 = 22;
}

/// Functions that OpenSSL passes to providers.
pub(crate) mod core {
    pub(crate) const GET_PARAMS: i32 = 2;
    pub(crate) const NEW_ERROR: i32 = 5;
    pub(crate) const SET_ERROR_DEBUG: i32 = 6;
    pub(crate) const VSET_ERROR: i32 = 7;
    pub(crate) const BIO_READ_EX: i32 = 42;
    pub(crate) const BIO_GETS: i32 = 49;
}

/// Functions of a provider as a whole.
pub(crate) mod provider {
    pub(crate) const TEARDOWN: i32 = 1024;
    pub(crate) const GETTABLE_PARAMS: i32 = 1025;
    pub(crate) const GET_PARAMS: i32 = 1026;
    pub(crate) const QUERY_OPERATION: i32 = 1027;
    pub(crate) const GET_REASON_STRINGS: i32 = 1029;
    pub(crate) const GET_CAPABILITIES: i32 = 1030;
}

pub(crate) mod keymgmt {
    pub(crate) const NEW: i32 = 1;
    pub(crate) const GEN_INIT: i32 = 2;
    pub(crate) const GEN_SET_TEMPLATE: i32 = 3;
    pub(crate) const GEN_SET_PARAMS: i32 = 4;
    pub(crate) const GEN_SETTABLE_PARAMS: i32 = 5;
    pub(crate) const GEN: i32 = 6;
    pub(crate) const GEN_CLEANUP: i32 = 7;
    pub(crate) const LOAD: i32 = 8;
    pub(crate) const FREE: i32 = 10;
    pub(crate) const GET_PARAMS: i32 = 11;
    pub(crate) const GETTABLE_PARAMS: i32 = 12;
    pub(crate) const SET_PARAMS: i32 = 13;
    pub(crate) const SETTABLE_PARAMS: i32 = 14;
    pub(crate) const QUERY_OPERATION_NAME: i32 = 20;
    pub(crate) const HAS: i32 = 21;
    pub(crate) const VALIDATE: i32 = 22;
    pub(crate) const MATCH: i32 = 23;
    pub(crate) const IMPORT: i32 = 40;
    pub(crate) const IMPORT_TYPES: i32 = 41;
    pub(crate) const EXPORT: i32 = 42;
    pub(crate) const EXPORT_TYPES: i32 = 43;
    pub(crate) const DUP: i32 = 44;

    /// Selection bits of a key's parts.
    pub(crate) const SELECT_PRIVATE: i32 = 0x01;
    pub(crate) const SELECT_PUBLIC: i32 = 0x02;
    pub(crate) const SELECT_KEYPAIR: i32 = SELECT_PRIVATE | SELECT_PUBLIC;
    pub(crate) const SELECT_DOMAIN: i32 = 0x04;
}

pub(crate) mod keyexch {
    pub(crate) const NEWCTX: i32 = 1;
    pub(crate) const INIT: i32 = 2;
    pub(crate) const DERIVE: i32 = 3;
    pub(crate) const SET_PEER: i32 = 4;
    pub(crate) const FREECTX: i32 = 5;
    pub(crate) const DUPCTX: i32 = 6;
}

pub(crate) mod kem {
    pub(crate) const NEWCTX: i32 = 1;
    pub(crate) const ENCAPSULATE_INIT: i32 = 2;
    pub(crate) const ENCAPSULATE: i32 = 3;
    pub(crate) const DECAPSULATE_INIT: i32 = 4;
    pub(crate) const DECAPSULATE: i32 = 5;
    pub(crate) const FREECTX: i32 = 6;
    pub(crate) const DUPCTX: i32 = 7;
}

pub(crate) mod signature {
    pub(crate) const NEWCTX: i32 = 1;
    pub(crate) const SIGN_INIT: i32 = 2;
    pub(crate) const SIGN: i32 = 3;
    pub(crate) const VERIFY_INIT: i32 = 4;
    pub(crate) const VERIFY: i32 = 5;
    pub(crate) const VERIFY_RECOVER_INIT: i32 = 6;
    pub(crate) const VERIFY_RECOVER: i32 = 7;
    pub(crate) const DIGEST_SIGN_INIT: i32 = 8;
    pub(crate) const DIGEST_SIGN_UPDATE: i32 = 9;
    pub(crate) const DIGEST_SIGN_FINAL: i32 = 10;
    pub(crate) const DIGEST_VERIFY_INIT: i32 = 12;
    pub(crate) const DIGEST_VERIFY_UPDATE: i32 = 13;
    pub(crate) const DIGEST_VERIFY_FINAL: i32 = 14;
    pub(crate) const FREECTX: i32 = 16;
    pub(crate) const DUPCTX: i32 = 17;
    pub(crate) const GET_CTX_PARAMS: i32 = 18;
    pub(crate) const GETTABLE_CTX_PARAMS: i32 = 19;
    pub(crate) const SET_CTX_PARAMS: i32 = 20;
    pub(crate) const SETTABLE_CTX_PARAMS: i32 = 21;
}

pub(crate) mod asym_cipher {
    pub(crate) const NEWCTX: i32 = 1;
    pub(crate) const ENCRYPT_INIT: i32 = 2;
    pub(crate) const ENCRYPT: i32 = 3;
    pub(crate) const DECRYPT_INIT: i32 = 4;
    pub(crate) const DECRYPT: i32 = 5;
    pub(crate) const FREECTX: i32 = 6;
    pub(crate) const DUPCTX: i32 = 7;
    pub(crate) const GET_CTX_PARAMS: i32 = 8;
    pub(crate) const GETTABLE_CTX_PARAMS: i32 = 9;
    pub(crate) const SET_CTX_PARAMS: i32 = 10;
    pub(crate) const SETTABLE_CTX_PARAMS: i32 = 11;
}

pub(crate) mod decoder {
    pub(crate) const NEWCTX: i32 = 1;
    pub(crate) const FREECTX: i32 = 2;
    pub(crate) const DOES_SELECTION: i32 = 10;
    pub(crate) const DECODE: i32 = 11;
    pub(crate) const EXPORT_OBJECT: i32 = 20;
}

pub(crate) mod store {
    pub(crate) const OPEN: i32 = 1;
    pub(crate) const SETTABLE_CTX_PARAMS: i32 = 3;
    pub(crate) const SET_CTX_PARAMS: i32 = 4;
    pub(crate) const LOAD: i32 = 5;
    pub(crate) const EOF: i32 = 6;
    pub(crate) const CLOSE: i32 = 7;
    pub(crate) const EXPORT_OBJECT: i32 = 8;
}

/// `OSSL_OBJECT_PKEY`: the kind of object that is a key.
pub(crate) const OBJECT_PKEY: c_int = 2;

/// Converts a C string passed by OpenSSL.
///
/// # Safety
/// `text` is null or a C string that lives for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}
