//! RSA encryption and decryption (`provider-asym_cipher(7)`), used for TLS 1.2 with RSA key exchange.

use crate::{
    abi::{Dispatch, PARAM_BYTES, PARAM_TEXT, PARAM_UNSIGNED, Param, asym_cipher as id},
    context::{self, at, at_mut},
    digest::Digest,
    error::{Failure, Reason, guard},
    key::Shared,
    keymgmt::{self, KeyObject},
    params::{Answer, Params, Value, described, end},
    rsa::{
        decryption::{self, PREMASTER},
        encryption::{self, Padding},
    },
    signature::{bytes, deliver},
};
use quadrille_engine::{KeyType, Operation};
use std::ffi::{CStr, c_int, c_void};
use zeroize::Zeroizing;

/// Context of an encryption or decryption.
#[derive(Clone)]
struct Context {
    key: Option<Shared>,
    mode: Mode,
    digest: Digest,
    mgf1: Option<Digest>,
    label: Vec<u8>,
    /// TLS versions that a premaster secret may start with: the one that the client offered, and the negotiated one,
    /// which some clients send instead.
    versions: [u16; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pkcs1,
    None,
    Oaep,
    Tls,
}

/// Padding modes, with their numbers in rsa.h and their names.
const MODES: [(Mode, i64, &CStr); 4] =
    [(Mode::Pkcs1, 1, c"pkcs1"), (Mode::None, 3, c"none"), (Mode::Oaep, 4, c"oaep"), (Mode::Tls, 7, c"tls")];

pub(crate) static FUNCTIONS: [Dispatch; 12] = [
    Dispatch::new(id::NEWCTX, new as *const ()),
    Dispatch::new(id::ENCRYPT_INIT, encrypt_init as *const ()),
    Dispatch::new(id::ENCRYPT, encrypt as *const ()),
    Dispatch::new(id::DECRYPT_INIT, decrypt_init as *const ()),
    Dispatch::new(id::DECRYPT, decrypt as *const ()),
    Dispatch::new(id::FREECTX, context::free::<Context> as *const ()),
    Dispatch::new(id::DUPCTX, context::dup::<Context> as *const ()),
    Dispatch::new(id::GET_CTX_PARAMS, get_params as *const ()),
    Dispatch::new(id::GETTABLE_CTX_PARAMS, gettable as *const ()),
    Dispatch::new(id::SET_CTX_PARAMS, set_params as *const ()),
    Dispatch::new(id::SETTABLE_CTX_PARAMS, settable as *const ()),
    Dispatch::END,
];

unsafe extern "C" fn new(_provider: *mut c_void) -> *mut Context {
    context::new(|| Context {
        key: None,
        mode: Mode::Pkcs1,
        digest: Digest::Sha1,
        mgf1: None,
        label: Vec::new(),
        versions: [0; 2],
    })
}

unsafe extern "C" fn encrypt_init(context: *mut Context, key: *const c_void, params: *const Param) -> c_int {
    // SAFETY: OpenSSL passes our context and key, and a list.
    guard(|| unsafe { at_mut(context)?.begin(key, Params::new(params)) })
}

unsafe extern "C" fn decrypt_init(context: *mut Context, key: *const c_void, params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: as above.
        let context = unsafe { at_mut(context) }?;
        // SAFETY: as above.
        unsafe { context.begin(key, Params::new(params)) }?;
        if context.key()?.has_private() {
            Ok(())
        } else {
            Err(Failure::new(Reason::NoPrivateKey, "this is a public key"))
        }
    })
}

unsafe extern "C" fn encrypt(
    context: *mut Context,
    output: *mut u8,
    length: *mut usize,
    room: usize,
    input: *const u8,
    input_length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and the bytes.
        let (context, input) = unsafe { (at(context)?, bytes(input, input_length)) };
        let make =
            || encryption::encrypt(context.key()?.public(), &context.padding(), input).map(Zeroizing::new);
        // SAFETY: the output has `room` bytes, or is null.
        unsafe { deliver(output, length, room, context.modulus()?, make) }
    })
}

unsafe extern "C" fn decrypt(
    context: *mut Context,
    output: *mut u8,
    length: *mut usize,
    room: usize,
    input: *const u8,
    input_length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and the bytes.
        let (context, input) = unsafe { (at(context)?, bytes(input, input_length)) };
        let longest = if context.mode == Mode::Tls { PREMASTER } else { context.modulus()? };
        // SAFETY: the output has `room` bytes, or is null.
        unsafe { deliver(output, length, room, longest, || context.decrypt(input)) }
    })
}

unsafe extern "C" fn get_params(context: *mut Context, params: *mut Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and a list.
        let (context, params) = unsafe { (at(context)?, Params::new(params)) };
        let mode = MODES.iter().find(|(mode, ..)| *mode == context.mode).map_or(1, |(_, number, _)| *number);
        let fits = params.answer(c"pad-mode", Answer::Number(usize::try_from(mode).unwrap_or(1)))
            && params.answer(c"digest", Answer::Text(context.digest.name()))
            && params.answer(c"mgf1-digest", Answer::Text(context.mgf1.unwrap_or(context.digest).name()))
            && params.answer(c"oaep-label", Answer::Bytes(&context.label));
        fits.then_some(()).ok_or_else(|| Reason::BufferTooSmall.into())
    })
}

unsafe extern "C" fn set_params(context: *mut Context, params: *const Param) -> c_int {
    // SAFETY: OpenSSL passes our context, and a list.
    guard(|| unsafe { at_mut(context)?.set(Params::new(params)) })
}

impl Context {
    /// # Safety
    /// `key` is null, to keep the current key, or an object of key management.
    unsafe fn begin(&mut self, key: *const c_void, params: Params<'_>) -> Result<(), Failure> {
        if !key.is_null() {
            // SAFETY: the caller's promise.
            self.key = Some(unsafe { KeyObject::key(key) }?);
        }
        if !matches!(self.key()?.key_type(), KeyType::Rsa { .. }) {
            return Err(Failure::new(Reason::UnsupportedKey, "only RSA keys can encrypt"));
        }
        self.set(params)
    }

    fn set(&mut self, params: Params<'_>) -> Result<(), Failure> {
        let version = |value: Value<'_>| {
            let version = value.number().and_then(|number| u16::try_from(number).ok());
            version.ok_or_else(|| Failure::new(Reason::UnsupportedParameter, "this TLS version"))
        };
        for value in params.iter() {
            if value.is_named(c"pad-mode") {
                self.mode = mode(value)?;
            } else if value.is_named(c"digest") {
                self.digest = Digest::of_value(value)?;
            } else if value.is_named(c"mgf1-digest") {
                self.mgf1 = Some(Digest::of_value(value)?);
            } else if value.is_named(c"oaep-label") {
                self.label = value.bytes().ok_or(Reason::UnsupportedParameter)?.to_vec();
            } else if value.is_named(c"tls-client-version") {
                self.versions[0] = version(value)?;
            } else if value.is_named(c"tls-negotiated-version") {
                self.versions[1] = version(value)?;
            }
        }
        Ok(())
    }

    fn padding(&self) -> Padding {
        match self.mode {
            Mode::Pkcs1 => Padding::Pkcs1,
            Mode::None => Padding::None,
            Mode::Tls => Padding::Tls,
            Mode::Oaep => Padding::Oaep { digest: self.digest, mgf1: self.mgf1, label: self.label.clone() },
        }
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let key = self.key()?;
        if self.mode == Mode::Pkcs1 {
            key.prepare_rejection()?;
        }
        let padded = key.compute(Operation::decrypt(ciphertext))?;
        match self.mode {
            Mode::None => Ok(padded),
            Mode::Tls => {
                let versions = if self.versions[1] == 0 { &self.versions[..1] } else { &self.versions[..] };
                decryption::tls(&padded, versions)
            }
            Mode::Oaep => {
                decryption::oaep(&padded, self.digest, self.mgf1.unwrap_or(self.digest), &self.label)
            }
            Mode::Pkcs1 => decryption::pkcs1(&padded, ciphertext, key.rejection_secret()?),
        }
    }

    fn modulus(&self) -> Result<usize, Failure> {
        Ok(keymgmt::longest(self.key()?.key_type()))
    }

    fn key(&self) -> Result<&Shared, Failure> {
        self.key.as_ref().ok_or_else(|| Reason::NotInitialised.into())
    }
}

fn mode(value: Value<'_>) -> Result<Mode, Failure> {
    value.among(&MODES).ok_or_else(|| {
        Failure::new(
            Reason::UnsupportedParameter,
            "this padding of RSA encryption; supported: pkcs1, oaep and none",
        )
    })
}

static SETTABLE: [Param; 7] = [
    described(c"pad-mode", PARAM_TEXT),
    described(c"digest", PARAM_TEXT),
    described(c"mgf1-digest", PARAM_TEXT),
    described(c"oaep-label", PARAM_BYTES),
    described(c"tls-client-version", PARAM_UNSIGNED),
    described(c"tls-negotiated-version", PARAM_UNSIGNED),
    end(),
];

static GETTABLE: [Param; 5] = [
    described(c"pad-mode", PARAM_UNSIGNED),
    described(c"digest", PARAM_TEXT),
    described(c"mgf1-digest", PARAM_TEXT),
    described(c"oaep-label", PARAM_BYTES),
    end(),
];

unsafe extern "C" fn settable(_context: *mut c_void, _provider: *mut c_void) -> *const Param {
    SETTABLE.as_ptr()
}

unsafe extern "C" fn gettable(_context: *mut c_void, _provider: *mut c_void) -> *const Param {
    GETTABLE.as_ptr()
}
