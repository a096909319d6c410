//! Key management (`provider-keymgmt(7)`): RSA and EC keys, imported, loaded by reference, compared, and exported if
//! public. Private keys are never exported, which makes OpenSSL compute with them here.

use crate::{
    abi::{
        Callback, Dispatch, PARAM_BYTES, PARAM_INTEGER, PARAM_TEXT, PARAM_UNSIGNED, Param,
        keymgmt::{self as id, SELECT_DOMAIN, SELECT_KEYPAIR, SELECT_PRIVATE, SELECT_PUBLIC},
    },
    components::{self, Family},
    error::{Failure, Reason, guard, guard_pointer},
    key::{ProviderKey, Shared},
    params::{Answer, Builder, Params, described, end},
};
use quadrille_engine::KeyType;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::{Arc, OnceLock},
};

/// Key object held by OpenSSL; empty until a key is imported.
pub(crate) struct KeyObject {
    family: Family,
    key: OnceLock<Shared>,
}

impl KeyObject {
    pub(crate) fn boxed(family: Family, key: Shared) -> *mut Self {
        Box::into_raw(Box::new(Self { family, key: OnceLock::from(key) }))
    }

    /// # Safety
    /// `object` is null, or comes from this file and has not been freed.
    pub(crate) unsafe fn key(object: *const c_void) -> Result<Shared, Failure> {
        // SAFETY: the caller's promise.
        let object = unsafe { object.cast::<Self>().as_ref() };
        object.and_then(|object| object.key.get()).map(Arc::clone).ok_or_else(|| Reason::MissingKey.into())
    }

    /// # Safety
    /// `object` is as for [`key`](Self::key), and is not used afterwards.
    pub(crate) unsafe fn free(object: *mut Self) {
        if !object.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(object) });
        }
    }
}

macro_rules! functions {
    ($new:ident, $load:ident, $query:ident, $gettable:ident, $types:ident) => {
        [
            Dispatch::new(id::NEW, $new as *const ()),
            Dispatch::new(id::LOAD, $load as *const ()),
            Dispatch::new(id::FREE, free as *const ()),
            Dispatch::new(id::GET_PARAMS, get_params as *const ()),
            Dispatch::new(id::GETTABLE_PARAMS, $gettable as *const ()),
            Dispatch::new(id::QUERY_OPERATION_NAME, $query as *const ()),
            Dispatch::new(id::HAS, has_selection as *const ()),
            Dispatch::new(id::VALIDATE, validate as *const ()),
            Dispatch::new(id::MATCH, matches as *const ()),
            Dispatch::new(id::IMPORT, import as *const ()),
            Dispatch::new(id::IMPORT_TYPES, $types as *const ()),
            Dispatch::new(id::EXPORT, export as *const ()),
            Dispatch::new(id::EXPORT_TYPES, $types as *const ()),
            Dispatch::new(id::DUP, dup as *const ()),
            Dispatch::END,
        ]
    };
}

pub(crate) static RSA: [Dispatch; 15] = functions!(new_rsa, load, rsa_operation, rsa_gettable, rsa_types);
pub(crate) static EC: [Dispatch; 15] = functions!(new_ec, load, ec_operation, ec_gettable, ec_types);

unsafe extern "C" fn new_rsa(_provider: *mut c_void) -> *mut KeyObject {
    new(Family::Rsa)
}

unsafe extern "C" fn new_ec(_provider: *mut c_void) -> *mut KeyObject {
    new(Family::Ec)
}

fn new(family: Family) -> *mut KeyObject {
    guard_pointer(|| Ok(Box::into_raw(Box::new(KeyObject { family, key: OnceLock::new() }))))
}

/// Takes the object that a reference represents: decoder and store pass the address of a pointer to it.
unsafe extern "C" fn load(reference: *const c_void, size: usize) -> *mut KeyObject {
    guard_pointer(|| {
        if reference.is_null() || size != size_of::<*mut KeyObject>() {
            return Err(Reason::Internal.into());
        }
        let place = reference.cast::<*mut KeyObject>().cast_mut();
        // SAFETY: references of this size are ours: see `with_reference`.
        Ok(unsafe { std::mem::replace(&mut *place, std::ptr::null_mut()) })
    })
}

unsafe extern "C" fn free(object: *mut KeyObject) {
    guard(|| {
        // SAFETY: OpenSSL frees each object once.
        unsafe { KeyObject::free(object) };
        Ok(())
    });
}

/// Pointer to a place that holds an object until [`load`] takes it. OpenSSL passes it as bytes; it stays a mutable
/// pointer all the way, because `load` writes through it.
pub(crate) struct Reference(*mut *mut KeyObject);

impl Reference {
    /// Adds it to a list of parameters, which must not outlive it.
    pub(crate) fn add_to(&self, list: Builder, name: &'static CStr) -> Builder {
        list.lent(name, self.0.cast(), size_of::<*mut KeyObject>())
    }
}

/// Hands the object over if OpenSSL loads it while `call` runs; otherwise frees it.
pub(crate) fn with_reference(object: *mut KeyObject, call: impl FnOnce(Reference) -> c_int) -> c_int {
    let mut place = object;
    let reference = &raw mut place;
    let called = call(Reference(reference));
    // SAFETY: `place` is alive, and is read through the pointer that `load` may have written through.
    let left = unsafe { reference.read() };
    // SAFETY: it is null, or was not taken.
    unsafe { KeyObject::free(left) };
    called
}

unsafe extern "C" fn has_selection(object: *const c_void, selection: c_int) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our object.
        let key = unsafe { KeyObject::key(object) };
        let has = key.is_ok_and(|key| selection & SELECT_PRIVATE == 0 || key.has_private());
        if has { Ok(()) } else { Err(Failure::quiet()) }
    })
}

/// Imported and loaded keys have already been checked.
unsafe extern "C" fn validate(object: *const c_void, selection: c_int, _how: c_int) -> c_int {
    // SAFETY: see `has`.
    unsafe { has_selection(object, selection) }
}

unsafe extern "C" fn matches(one: *const c_void, other: *const c_void, selection: c_int) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our objects.
        let (one, other) = unsafe { (KeyObject::key(one)?, KeyObject::key(other)?) };
        let same = if selection & SELECT_KEYPAIR != 0 {
            one.public().pkey().public_eq(other.public().pkey())
        } else {
            selection & SELECT_DOMAIN == 0 || one.key_type() == other.key_type()
        };
        // A difference is not a failure, and adds nothing to the error queue.
        if same { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn import(object: *mut c_void, selection: c_int, params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our object, and a list.
        let (object, params) = unsafe { (object.cast::<KeyObject>().as_ref(), Params::new(params)) };
        let object = object.ok_or(Reason::Internal)?;
        if selection & SELECT_KEYPAIR == 0 {
            return Err(Failure::new(Reason::UnsupportedKey, "parameters without a key"));
        }
        let key = components::import(object.family, selection & SELECT_PRIVATE != 0, params)?;
        object
            .key
            .set(Arc::new(key))
            .map_err(|_| Failure::new(Reason::Internal, "a second key for one object"))
    })
}

unsafe extern "C" fn export(
    object: *const c_void,
    selection: c_int,
    callback: Callback,
    argument: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our object.
        let key = unsafe { KeyObject::key(object) }?;
        if selection & SELECT_PRIVATE != 0 && key.has_private() {
            return Err(Reason::PrivateKeyStays.into());
        }
        let public = components::export(&key, selection & SELECT_PUBLIC != 0)?;
        // SAFETY: the callback is OpenSSL's, and is called with its argument.
        let taken = public.with(|params| unsafe { callback(params, argument) });
        if taken == 1 { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn dup(object: *const c_void, selection: c_int) -> *mut KeyObject {
    guard_pointer(|| {
        // SAFETY: OpenSSL passes our object.
        let (key, object) = unsafe { (KeyObject::key(object)?, &*object.cast::<KeyObject>()) };
        if selection & SELECT_PRIVATE != 0 || !key.has_private() {
            return Ok(KeyObject::boxed(object.family, key));
        }
        let public = ProviderKey::public_only(key.public().pkey().to_owned())?;
        Ok(KeyObject::boxed(object.family, Arc::new(public)))
    })
}

unsafe extern "C" fn get_params(object: *const c_void, params: *mut Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our object, and a list.
        let (key, params) = unsafe { (KeyObject::key(object)?, Params::new(params)) };
        let numbers = components::public_numbers(&key)?;
        let own: Vec<bool> =
            numbers.iter().map(|(name, number)| params.answer(name, number.answer())).collect();
        let size = sizes(key.key_type());
        let sizes = [
            params.answer(c"bits", Answer::Number(size.bits)),
            params.answer(c"security-bits", Answer::Number(size.security)),
            params.answer(c"max-size", Answer::Number(size.longest)),
            params.answer(c"default-digest", Answer::Text(c"SHA256")),
        ];
        let fits = own.iter().chain(&sizes).all(|fits| *fits);
        fits.then_some(()).ok_or_else(|| Reason::BufferTooSmall.into())
    })
}

/// Returns the maximum length of a signature or a decrypted message, in bytes.
pub(crate) fn longest(key: KeyType) -> usize {
    sizes(key).longest
}

struct Sizes {
    bits: usize,
    security: usize,
    /// Maximum length of a signature or a decrypted message.
    longest: usize,
}

/// Security strength per NIST SP 800-57 part 1, table 2; values in between as OpenSSL computes them.
fn sizes(key: KeyType) -> Sizes {
    let (bits, security, longest) = match key {
        KeyType::Rsa { bits } => {
            let security = match bits {
                ..2048 => 80,
                2048..3072 => 112,
                3072..4096 => 128,
                4096..6144 => 152,
                6144..7680 => 176,
                7680..8192 => 192,
                _ => 200,
            };
            (bits as usize, security, (bits as usize).div_ceil(8))
        }
        KeyType::EcdsaP256 | KeyType::Ed25519 => (256, 128, 72),
        KeyType::MlDsa(set) => (8 * set.public_key_bytes(), 128, set.signature_bytes()),
        KeyType::EcdsaP384 => (384, 192, 104),
        KeyType::EcdsaP521 => (521, 256, 139),
    };
    Sizes { bits, security, longest }
}

const SIGNATURE: c_int = crate::abi::operation::SIGNATURE;

unsafe extern "C" fn rsa_operation(_operation: c_int) -> *const c_char {
    c"RSA".as_ptr()
}

unsafe extern "C" fn ec_operation(operation: c_int) -> *const c_char {
    if operation == SIGNATURE { c"ECDSA".as_ptr() } else { c"ECDH".as_ptr() }
}

static RSA_GETTABLE: [Param; 7] = [
    described(c"bits", PARAM_INTEGER),
    described(c"security-bits", PARAM_INTEGER),
    described(c"max-size", PARAM_INTEGER),
    described(c"default-digest", PARAM_TEXT),
    described(c"n", PARAM_UNSIGNED),
    described(c"e", PARAM_UNSIGNED),
    end(),
];

static EC_GETTABLE: [Param; 10] = [
    described(c"bits", PARAM_INTEGER),
    described(c"security-bits", PARAM_INTEGER),
    described(c"max-size", PARAM_INTEGER),
    described(c"default-digest", PARAM_TEXT),
    described(c"group", PARAM_TEXT),
    described(c"pub", PARAM_BYTES),
    described(c"encoded-pub-key", PARAM_BYTES),
    described(c"qx", PARAM_UNSIGNED),
    described(c"qy", PARAM_UNSIGNED),
    end(),
];

unsafe extern "C" fn rsa_gettable(_provider: *mut c_void) -> *const Param {
    RSA_GETTABLE.as_ptr()
}

unsafe extern "C" fn ec_gettable(_provider: *mut c_void) -> *const Param {
    EC_GETTABLE.as_ptr()
}

static RSA_TYPES: [Param; 9] = [
    described(c"n", PARAM_UNSIGNED),
    described(c"e", PARAM_UNSIGNED),
    described(c"d", PARAM_UNSIGNED),
    described(c"rsa-factor1", PARAM_UNSIGNED),
    described(c"rsa-factor2", PARAM_UNSIGNED),
    described(c"rsa-exponent1", PARAM_UNSIGNED),
    described(c"rsa-exponent2", PARAM_UNSIGNED),
    described(c"rsa-coefficient1", PARAM_UNSIGNED),
    end(),
];

static EC_TYPES: [Param; 4] = [
    described(c"group", PARAM_TEXT),
    described(c"pub", PARAM_BYTES),
    described(c"priv", PARAM_UNSIGNED),
    end(),
];

unsafe extern "C" fn rsa_types(_selection: c_int) -> *const Param {
    RSA_TYPES.as_ptr()
}

unsafe extern "C" fn ec_types(_selection: c_int) -> *const Param {
    EC_TYPES.as_ptr()
}
