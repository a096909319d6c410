//! Key management of X25519 (`provider-keymgmt(7)`): key pairs are made, the peer's public key is set, and keys are
//! imported and exported.

use super::key::{BYTES, X25519Key};
use crate::{
    abi::{
        Callback, Dispatch, PARAM_BYTES, PARAM_INTEGER, PARAM_TEXT, Param,
        keymgmt::{self as id, SELECT_KEYPAIR, SELECT_PRIVATE, SELECT_PUBLIC},
    },
    context::{self, at, at_mut},
    error::{Failure, Reason, guard, guard_pointer},
    params::{Answer, Builder, Params, Value, described, end},
};
use std::ffi::{CStr, c_char, c_int, c_void};

pub(crate) static FUNCTIONS: [Dispatch; 21] = [
    Dispatch::new(id::NEW, new as *const ()),
    Dispatch::new(id::GEN_INIT, generation_begins as *const ()),
    Dispatch::new(id::GEN_SET_TEMPLATE, template as *const ()),
    Dispatch::new(id::GEN_SET_PARAMS, generation_params as *const ()),
    Dispatch::new(id::GEN_SETTABLE_PARAMS, generation_settable as *const ()),
    Dispatch::new(id::GEN, generate as *const ()),
    Dispatch::new(id::GEN_CLEANUP, context::free::<Generation> as *const ()),
    Dispatch::new(id::FREE, context::free::<X25519Key> as *const ()),
    Dispatch::new(id::GET_PARAMS, get_params as *const ()),
    Dispatch::new(id::GETTABLE_PARAMS, gettable as *const ()),
    Dispatch::new(id::SET_PARAMS, set_params as *const ()),
    Dispatch::new(id::SETTABLE_PARAMS, settable as *const ()),
    Dispatch::new(id::QUERY_OPERATION_NAME, operation_name as *const ()),
    Dispatch::new(id::HAS, has as *const ()),
    Dispatch::new(id::VALIDATE, validate as *const ()),
    Dispatch::new(id::MATCH, matches as *const ()),
    Dispatch::new(id::IMPORT, import as *const ()),
    Dispatch::new(id::IMPORT_TYPES, types as *const ()),
    Dispatch::new(id::EXPORT, export as *const ()),
    Dispatch::new(id::EXPORT_TYPES, types as *const ()),
    Dispatch::END,
];

const NAME: &CStr = c"X25519";

unsafe extern "C" fn new(_provider: *mut c_void) -> *mut X25519Key {
    context::new(X25519Key::default)
}

/// Whether a key pair is wanted, or only an object that stands for the group.
struct Generation {
    key_pair: bool,
}

unsafe extern "C" fn generation_begins(
    _provider: *mut c_void,
    selection: c_int,
    params: *const Param,
) -> *mut Generation {
    guard_pointer(|| {
        // SAFETY: OpenSSL passes a list, or null.
        check_group(unsafe { Params::new(params) })?;
        Ok(Box::into_raw(Box::new(Generation { key_pair: selection & SELECT_KEYPAIR != 0 })))
    })
}

/// A template says which group, and there is only one.
unsafe extern "C" fn template(_generation: *mut Generation, _template: *const c_void) -> c_int {
    guard(|| Ok(()))
}

unsafe extern "C" fn generation_params(_generation: *mut Generation, params: *const Param) -> c_int {
    // SAFETY: OpenSSL passes a list, or null.
    guard(|| check_group(unsafe { Params::new(params) }))
}

fn check_group(params: Params<'_>) -> Result<(), Failure> {
    let is_ours = |name: &str| name.eq_ignore_ascii_case("x25519");
    match params.get(c"group").map(Value::text) {
        Some(group) if !group.is_some_and(is_ours) => {
            Err(Failure::new(Reason::UnsupportedParameter, "this group is not X25519"))
        }
        _ => Ok(()),
    }
}

unsafe extern "C" fn generate(
    generation: *mut Generation,
    _progress: *const c_void,
    _argument: *mut c_void,
) -> *mut X25519Key {
    guard_pointer(|| {
        // SAFETY: OpenSSL passes what `generation_begins` gave it.
        let generation = unsafe { at(generation) }?;
        let key = if generation.key_pair { X25519Key::generate()? } else { X25519Key::default() };
        Ok(Box::into_raw(Box::new(key)))
    })
}

unsafe extern "C" fn get_params(key: *const X25519Key, params: *mut Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our key, and a list.
        let (key, params) = unsafe { (at(key)?, Params::new(params)) };
        let public = key.public().into_iter().flat_map(|public| {
            [c"encoded-pub-key", c"pub"].map(|name| params.answer(name, Answer::Bytes(public)))
        });
        let private = key.private().map(|private| params.answer(c"priv", Answer::Bytes(private)));
        let sizes = [(c"bits", 253), (c"security-bits", 128), (c"max-size", BYTES)]
            .map(|(name, number)| params.answer(name, Answer::Number(number)));
        let fits = public.chain(private).chain(sizes).all(|fits| fits);
        fits.then_some(()).ok_or_else(|| Reason::BufferTooSmall.into())
    })
}

/// The peer's public key, as TLS has it.
unsafe extern "C" fn set_params(key: *mut X25519Key, params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: as above; nobody else uses a key while it is changed.
        let (key, params) = unsafe { (at_mut(key)?, Params::new(params)) };
        let Some(public) = params.get(c"encoded-pub-key") else { return Ok(()) };
        key.set_public(public.bytes().ok_or(Reason::WrongInput)?)
    })
}

unsafe extern "C" fn has(key: *const X25519Key, selection: c_int) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our key, or null.
        let key = unsafe { at(key) }.map_err(|_| Failure::quiet())?;
        let public = selection & SELECT_PUBLIC == 0 || key.public().is_some();
        let private = selection & SELECT_PRIVATE == 0 || key.private().is_some();
        if public && private { Ok(()) } else { Err(Failure::quiet()) }
    })
}

/// Every string of 32 bytes is a key (RFC 7748 section 5); points of small order are found by their secret.
unsafe extern "C" fn validate(key: *const X25519Key, selection: c_int, _how: c_int) -> c_int {
    // SAFETY: as for `has`.
    unsafe { has(key, selection) }
}

unsafe extern "C" fn matches(one: *const X25519Key, other: *const X25519Key, selection: c_int) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our keys.
        let (one, other) = unsafe { (at(one)?, at(other)?) };
        let same = selection & SELECT_KEYPAIR == 0 || one.public() == other.public();
        if same { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn import(key: *mut X25519Key, selection: c_int, params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: as for `set_params`.
        let (key, params) = unsafe { (at_mut(key)?, Params::new(params)) };
        let part = |name| params.get(name).and_then(Value::bytes);
        let private = part(c"priv").filter(|_| selection & SELECT_PRIVATE != 0);
        let public = part(c"pub");
        if selection & SELECT_KEYPAIR == 0 || (private.is_none() && public.is_none()) {
            return Err(Reason::MissingKey.into());
        }
        *key = X25519Key::from_parts(private, public)?;
        Ok(())
    })
}

unsafe extern "C" fn export(
    key: *const X25519Key,
    selection: c_int,
    callback: Callback,
    argument: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our key.
        let key = unsafe { at(key) }?;
        let mut parts = Builder::default();
        if let Some(public) = key.public().filter(|_| selection & SELECT_PUBLIC != 0) {
            parts = parts.bytes(c"pub", public);
        }
        if let Some(private) = key.private().filter(|_| selection & SELECT_PRIVATE != 0) {
            parts = parts.bytes(c"priv", private);
        }
        // SAFETY: it is OpenSSL's, with the argument that belongs to it.
        let taken = parts.with(|params| unsafe { callback(params, argument) });
        if taken == 1 { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn operation_name(_operation: c_int) -> *const c_char {
    NAME.as_ptr()
}

static GETTABLE: [Param; 7] = [
    described(c"bits", PARAM_INTEGER),
    described(c"security-bits", PARAM_INTEGER),
    described(c"max-size", PARAM_INTEGER),
    described(c"pub", PARAM_BYTES),
    described(c"priv", PARAM_BYTES),
    described(c"encoded-pub-key", PARAM_BYTES),
    end(),
];

unsafe extern "C" fn gettable(_provider: *mut c_void) -> *const Param {
    GETTABLE.as_ptr()
}

static SETTABLE: [Param; 2] = [described(c"encoded-pub-key", PARAM_BYTES), end()];

unsafe extern "C" fn settable(_provider: *mut c_void) -> *const Param {
    SETTABLE.as_ptr()
}

static GENERATION_SETTABLE: [Param; 2] = [described(c"group", PARAM_TEXT), end()];

unsafe extern "C" fn generation_settable(_generation: *mut c_void, _provider: *mut c_void) -> *const Param {
    GENERATION_SETTABLE.as_ptr()
}

static TYPES: [Param; 3] = [described(c"pub", PARAM_BYTES), described(c"priv", PARAM_BYTES), end()];

unsafe extern "C" fn types(_selection: c_int) -> *const Param {
    TYPES.as_ptr()
}
