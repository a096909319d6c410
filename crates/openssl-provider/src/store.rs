//! The store loader (`provider-storemgmt(7)`): keys by URI, wherever a program accepts `quadrille:...` for a key. See
//! [`uri`](crate::uri).

use crate::{
    abi::{Callback, Dispatch, PARAM_INTEGER, PARAM_TEXT, Param, store as id, text},
    components::Family,
    decoder::{export_object, hand_over},
    error::{Failure, Reason, guard, guard_pointer},
    key::ProviderKey,
    params::{described, end},
    uri,
};
use std::ffi::{c_char, c_int, c_void};

/// An open URI: one key, until it has been loaded.
struct Context(Option<(Family, ProviderKey)>);

pub(crate) static FUNCTIONS: [Dispatch; 8] = [
    Dispatch::new(id::OPEN, open as *const ()),
    Dispatch::new(id::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::new(id::SET_CTX_PARAMS, set_params as *const ()),
    Dispatch::new(id::LOAD, load as *const ()),
    Dispatch::new(id::EOF, eof as *const ()),
    Dispatch::new(id::CLOSE, close as *const ()),
    Dispatch::new(id::EXPORT_OBJECT, export_object as *const ()),
    Dispatch::END,
];

unsafe extern "C" fn open(_provider: *mut c_void, uri: *const c_char) -> *mut Context {
    guard_pointer(|| {
        // SAFETY: OpenSSL passes a text.
        let uri = unsafe { text(uri) }.ok_or_else(|| Failure::new(Reason::BadUri, "it is not UTF-8"))?;
        Ok(Box::into_raw(Box::new(Context(Some(uri::resolve(uri)?)))))
    })
}

unsafe extern "C" fn load(
    context: *mut Context,
    callback: Callback,
    argument: *mut c_void,
    _password: *const c_void,
    _password_argument: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and its callback with its argument.
        let context = unsafe { context.as_mut() }.ok_or(Reason::Internal)?;
        let (family, key) = context.0.take().ok_or_else(Failure::quiet)?;
        // SAFETY: as above.
        unsafe { hand_over(family, key, callback, argument) }
    })
}

unsafe extern "C" fn eof(context: *mut Context) -> c_int {
    // SAFETY: OpenSSL passes our context.
    c_int::from(unsafe { context.as_ref() }.is_none_or(|context| context.0.is_none()))
}

unsafe extern "C" fn close(context: *mut Context) -> c_int {
    guard(|| {
        if !context.is_null() {
            // SAFETY: OpenSSL closes each context from `open` once.
            drop(unsafe { Box::from_raw(context) });
        }
        Ok(())
    })
}

static SETTABLE: [Param; 4] = [
    described(c"expect", PARAM_INTEGER),
    described(c"properties", PARAM_TEXT),
    described(c"input-type", PARAM_TEXT),
    end(),
];

unsafe extern "C" fn settable(_provider: *mut c_void) -> *const Param {
    SETTABLE.as_ptr()
}

/// Accepts every expectation: a URI of this provider always yields one key.
unsafe extern "C" fn set_params(_context: *mut c_void, _params: *const Param) -> c_int {
    1
}
