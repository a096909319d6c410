//! Decoders (`provider-decoder(7)`). RSA private keys in ordinary PEM files reach these before the default provider:
//! that is how an unmodified server's keys get into this provider. EC keys in such files stay with the default
//! provider, which is as fast with them. Other decoders handle everything else.
//!
//! A file with a `QUADRILLE KEY` block in place of a private key names the key by its URI, for servers that accept
//! only files, within the limits of [`pem_keys`](crate::pem_keys).

use crate::{
    abi::{Callback, Dispatch, OBJECT_PKEY, decoder as id, keymgmt::SELECT_PRIVATE},
    components::Family,
    error::{Failure, Reason, guard},
    host::{self, Core},
    key::ProviderKey,
    keymgmt::{KeyObject, with_reference},
    params::Builder,
    process::with_enough_stack,
    uri,
};
use base64ct::{Base64, Encoding};
use boring::pkey::PKey;
use quadrille_engine::KeyType;
use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

/// Maximum input length; longer input is not an RSA key.
const LONGEST: usize = 64 * 1024;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const LABEL: &str = "QUADRILLE KEY-----";
/// UTF-8 byte order mark, which some editors write at the start of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

macro_rules! functions {
    ($decode:ident) => {
        [
            Dispatch::new(id::NEWCTX, new as *const ()),
            Dispatch::new(id::FREECTX, free as *const ()),
            Dispatch::new(id::DOES_SELECTION, does_selection as *const ()),
            Dispatch::new(id::DECODE, $decode as *const ()),
            Dispatch::new(id::EXPORT_OBJECT, export_object as *const ()),
            Dispatch::END,
        ]
    };
}

pub(crate) static RSA_FROM_DER: [Dispatch; 6] = functions!(rsa_from_der);
pub(crate) static RSA_FROM_PEM: [Dispatch; 6] = functions!(rsa_from_pem);
pub(crate) static EC_FROM_PEM: [Dispatch; 6] = functions!(ec_from_pem);

/// Returns the provider context: decoders keep no state.
unsafe extern "C" fn new(provider: *mut c_void) -> *mut c_void {
    provider
}

unsafe extern "C" fn free(_context: *mut c_void) {}

unsafe extern "C" fn does_selection(_provider: *mut c_void, selection: c_int) -> c_int {
    c_int::from(selection == 0 || selection & SELECT_PRIVATE != 0)
}

/// Fails, to keep the key in this provider: OpenSSL then uses this provider's key management. OpenSSL before 3.0.3
/// would export it to the default provider; there, the default provider decodes the key itself instead.
pub(crate) unsafe extern "C" fn export_object(
    _context: *mut c_void,
    _reference: *const c_void,
    _size: usize,
    _callback: Callback,
    _argument: *mut c_void,
) -> c_int {
    0
}

type Password = *const c_void;

unsafe extern "C" fn rsa_from_der(
    _context: *mut c_void,
    bio: *mut c_void,
    _selection: c_int,
    callback: Callback,
    argument: *mut c_void,
    _password: Password,
    _password_argument: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes a BIO.
        let der = unsafe { core()?.read(bio, LONGEST) }.ok_or(Reason::Internal)?;
        // Anything but an RSA key of a supported size is left to the default provider.
        let read = || PKey::private_key_from_der(&der).ok().and_then(|pkey| ProviderKey::local(pkey).ok());
        let key = with_enough_stack(read).map_err(|_| Reason::Internal)?;
        match key.filter(|key| matches!(key.key_type(), KeyType::Rsa { .. })) {
            // SAFETY: the callback is OpenSSL's, with its argument.
            Some(key) => unsafe { hand_over(Family::Rsa, key, callback, argument) },
            None => Ok(()),
        }
    })
}

unsafe extern "C" fn rsa_from_pem(
    _context: *mut c_void,
    bio: *mut c_void,
    _selection: c_int,
    callback: Callback,
    argument: *mut c_void,
    _password: Password,
    _password_argument: *mut c_void,
) -> c_int {
    // SAFETY: OpenSSL passes a BIO, and its callback with its argument.
    guard(|| unsafe { from_pem(Family::Rsa, bio, callback, argument) })
}

unsafe extern "C" fn ec_from_pem(
    _context: *mut c_void,
    bio: *mut c_void,
    _selection: c_int,
    callback: Callback,
    argument: *mut c_void,
    _password: Password,
    _password_argument: *mut c_void,
) -> c_int {
    // SAFETY: as above.
    guard(|| unsafe { from_pem(Family::Ec, bio, callback, argument) })
}

/// # Safety
/// `bio`, `callback` and `argument` come from OpenSSL.
unsafe fn from_pem(
    wanted: Family,
    bio: *mut c_void,
    callback: Callback,
    argument: *mut c_void,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let Some(uri) = (unsafe { read_block(core()?, bio) })? else { return Ok(()) };
    let (family, key) = with_enough_stack(|| uri::resolve_listed(&uri)).map_err(|_| Reason::Internal)??;
    if family != wanted {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { hand_over(family, key, callback, argument) }
}

/// Reads one PEM block of any kind, as the other decoders do: the next block follows. Returns the URI of our own
/// block.
///
/// # Safety
/// `bio` comes from OpenSSL.
unsafe fn read_block(core: &Core, bio: *mut c_void) -> Result<Option<String>, Failure> {
    let mut ours = None;
    // SAFETY: the caller's promise.
    while let Some(line) = unsafe { core.line(bio) } {
        let line = line.trim_start_matches(BYTE_ORDER_MARK).trim_end();
        match (&mut ours, line.strip_prefix(BEGIN)) {
            (None, Some(LABEL)) => ours = Some(String::new()),
            (None, Some(_)) => ours = None,
            (None, None) if line.starts_with(END) => return Ok(None),
            (Some(text), None) if line.strip_prefix(END) == Some(LABEL) => return decode(text).map(Some),
            (Some(_), None) if line.starts_with(END) => return Err(malformed()),
            (Some(text), None) => text.push_str(line),
            (None, None) => {}
            (Some(_), Some(_)) => return Err(malformed()),
        }
    }
    if ours.is_some() { Err(malformed()) } else { Ok(None) }
}

fn decode(text: &str) -> Result<String, Failure> {
    let bytes = Base64::decode_vec(text).map_err(|_| malformed())?;
    Ok(String::from_utf8(bytes).map_err(|_| malformed())?.trim().to_owned())
}

fn malformed() -> Failure {
    Failure::new(Reason::BadUri, "the QUADRILLE KEY block is damaged; recreate it: quadrille provider key")
}

/// Passes a reference to the key to OpenSSL.
///
/// # Safety
/// `callback` and `argument` come from OpenSSL.
pub(crate) unsafe fn hand_over(
    family: Family,
    key: ProviderKey,
    callback: Callback,
    argument: *mut c_void,
) -> Result<(), Failure> {
    let taken = with_reference(KeyObject::boxed(family, Arc::new(key)), |reference| {
        let list = Builder::default().integer(c"type", OBJECT_PKEY).text(c"data-type", family.name());
        let list = reference.add_to(list, c"reference");
        // SAFETY: the reference is valid until this returns; the callback is OpenSSL's.
        list.with(|params| unsafe { callback(params, argument) })
    });
    if taken == 1 { Ok(()) } else { Err(Failure::quiet()) }
}

fn core() -> Result<&'static Core, Failure> {
    host::current().ok_or_else(|| Reason::Internal.into())
}
