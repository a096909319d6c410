//! Key management of a group (`provider-keymgmt(7)`): generates key pairs, sets the peer's public key, imports and
//! exports keys.

use super::group_key::GroupKey;
use crate::{
    abi::{
        Callback, Dispatch, PARAM_BYTES, PARAM_INTEGER, PARAM_TEXT, Param,
        keymgmt::{self as id, SELECT_KEYPAIR, SELECT_PRIVATE, SELECT_PUBLIC},
    },
    context::{self, at, at_mut},
    error::{Failure, Reason, guard, guard_pointer},
    params::{Answer, Builder, Params, Value, described, end},
};
use std::ffi::{c_char, c_int, c_void};

/// Dispatch table of key management.
pub(super) type Table = [Dispatch; 21];

/// Returns the functions for one key type.
pub(super) const fn table<K: GroupKey>() -> Table {
    [
        Dispatch::new(id::NEW, new::<K> as *const ()),
        Dispatch::new(id::GEN_INIT, generation_begins::<K> as *const ()),
        Dispatch::new(id::GEN_SET_TEMPLATE, template as *const ()),
        Dispatch::new(id::GEN_SET_PARAMS, generation_params::<K> as *const ()),
        Dispatch::new(id::GEN_SETTABLE_PARAMS, generation_settable as *const ()),
        Dispatch::new(id::GEN, generate::<K> as *const ()),
        Dispatch::new(id::GEN_CLEANUP, context::free::<Generation> as *const ()),
        Dispatch::new(id::FREE, context::free::<K> as *const ()),
        Dispatch::new(id::GET_PARAMS, get_params::<K> as *const ()),
        Dispatch::new(id::GETTABLE_PARAMS, gettable as *const ()),
        Dispatch::new(id::SET_PARAMS, set_params::<K> as *const ()),
        Dispatch::new(id::SETTABLE_PARAMS, settable as *const ()),
        Dispatch::new(id::QUERY_OPERATION_NAME, operation_name::<K> as *const ()),
        Dispatch::new(id::HAS, has::<K> as *const ()),
        Dispatch::new(id::VALIDATE, validate::<K> as *const ()),
        Dispatch::new(id::MATCH, matches::<K> as *const ()),
        Dispatch::new(id::IMPORT, import::<K> as *const ()),
        Dispatch::new(id::IMPORT_TYPES, types as *const ()),
        Dispatch::new(id::EXPORT, export::<K> as *const ()),
        Dispatch::new(id::EXPORT_TYPES, types as *const ()),
        Dispatch::END,
    ]
}

unsafe extern "C" fn new<K: GroupKey>(_provider: *mut c_void) -> *mut K {
    context::new(K::default)
}

/// Whether to generate a key pair, or only an object that represents the group.
struct Generation {
    key_pair: bool,
}

unsafe extern "C" fn generation_begins<K: GroupKey>(
    _provider: *mut c_void,
    selection: c_int,
    params: *const Param,
) -> *mut Generation {
    guard_pointer(|| {
        // SAFETY: OpenSSL passes a list, or null.
        check_group::<K>(unsafe { Params::new(params) })?;
        Ok(Box::into_raw(Box::new(Generation { key_pair: selection & SELECT_KEYPAIR != 0 })))
    })
}

/// Ignores the template: it only names the group, and there is only one.
unsafe extern "C" fn template(_generation: *mut Generation, _template: *const c_void) -> c_int {
    guard(|| Ok(()))
}

unsafe extern "C" fn generation_params<K: GroupKey>(
    _generation: *mut Generation,
    params: *const Param,
) -> c_int {
    // SAFETY: OpenSSL passes a list, or null.
    guard(|| check_group::<K>(unsafe { Params::new(params) }))
}

fn check_group<K: GroupKey>(params: Params<'_>) -> Result<(), Failure> {
    let Some(group) = params.get(c"group") else { return Ok(()) };
    let group = group.text().ok_or(Reason::UnsupportedParameter)?;
    // OpenSSL 3.5 has hybrid groups whose algorithms need no group name.
    if group.is_empty() || group.as_bytes().eq_ignore_ascii_case(K::NAME.to_bytes()) {
        return Ok(());
    }
    let text = format!("group {group}, expected {}", K::NAME.to_string_lossy());
    Err(Failure::new(Reason::UnsupportedParameter, text))
}

unsafe extern "C" fn generate<K: GroupKey>(
    generation: *mut Generation,
    _progress: *const c_void,
    _argument: *mut c_void,
) -> *mut K {
    guard_pointer(|| {
        // SAFETY: OpenSSL passes the value returned by `generation_begins`.
        let generation = unsafe { at(generation) }?;
        let key = if generation.key_pair { K::generate()? } else { K::default() };
        Ok(Box::into_raw(Box::new(key)))
    })
}

unsafe extern "C" fn get_params<K: GroupKey>(key: *const K, params: *mut Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our key, and a list.
        let (key, params) = unsafe { (at(key)?, Params::new(params)) };
        let public = key.public().into_iter().flat_map(|public| {
            [c"encoded-pub-key", c"pub"].map(|name| params.answer(name, Answer::Bytes(public)))
        });
        let private = key.private().map(|private| params.answer(c"priv", Answer::Bytes(private)));
        let sizes = [(c"bits", K::BITS), (c"security-bits", K::SECURITY_BITS), (c"max-size", K::MAX_SIZE)]
            .map(|(name, number)| params.answer(name, Answer::Number(number)));
        let fits = public.chain(private).chain(sizes).all(|fits| fits);
        fits.then_some(()).ok_or_else(|| Reason::BufferTooSmall.into())
    })
}

/// Sets the peer's public key, in its TLS encoding.
unsafe extern "C" fn set_params<K: GroupKey>(key: *mut K, params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: as above; a key has no other users while it is changed.
        let (key, params) = unsafe { (at_mut(key)?, Params::new(params)) };
        let Some(public) = params.get(c"encoded-pub-key") else { return Ok(()) };
        key.set_public(public.bytes().ok_or(Reason::WrongInput)?)
    })
}

unsafe extern "C" fn has<K: GroupKey>(key: *const K, selection: c_int) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our key, or null.
        let key = unsafe { at(key) }.map_err(|_| Failure::quiet())?;
        let public = selection & SELECT_PUBLIC == 0 || key.public().is_some();
        let private = selection & SELECT_PRIVATE == 0 || key.has_private();
        if public && private { Ok(()) } else { Err(Failure::quiet()) }
    })
}

/// Every string of 32 bytes is an X25519 key (RFC 7748 section 5); points of small order are detected by their
/// secret. Invalid ML-KEM keys are rejected when they are set.
unsafe extern "C" fn validate<K: GroupKey>(key: *const K, selection: c_int, _how: c_int) -> c_int {
    // SAFETY: see `has`.
    unsafe { has::<K>(key, selection) }
}

unsafe extern "C" fn matches<K: GroupKey>(one: *const K, other: *const K, selection: c_int) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our keys.
        let (one, other) = unsafe { (at(one)?, at(other)?) };
        let same = selection & SELECT_KEYPAIR == 0 || one.public() == other.public();
        if same { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn import<K: GroupKey>(key: *mut K, selection: c_int, params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: see `set_params`.
        let (key, params) = unsafe { (at_mut(key)?, Params::new(params)) };
        let part = |name| params.get(name).and_then(Value::bytes);
        let private = part(c"priv").filter(|_| selection & SELECT_PRIVATE != 0);
        let public = part(c"pub");
        if selection & SELECT_KEYPAIR == 0 || (private.is_none() && public.is_none()) {
            return Err(Reason::MissingKey.into());
        }
        *key = K::from_parts(private, public)?;
        Ok(())
    })
}

unsafe extern "C" fn export<K: GroupKey>(
    key: *const K,
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
        // SAFETY: the callback is OpenSSL's, and is called with its argument.
        let taken = parts.with(|params| unsafe { callback(params, argument) });
        if taken == 1 { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn operation_name<K: GroupKey>(_operation: c_int) -> *const c_char {
    K::NAME.as_ptr()
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
