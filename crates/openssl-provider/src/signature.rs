//! Signatures (`provider-signature(7)`): RSA with PKCS #1 v1.5 and PSS, and ECDSA. OpenSSL passes either a digest or
//! the message itself, in pieces.

mod algorithm_id;
mod settings;

use crate::{
    abi::{Dispatch, Param, signature as id, text},
    context::{self, at, at_mut},
    digest::{Digest, Running},
    error::{Failure, Reason, guard},
    key::Shared,
    keymgmt::KeyObject,
    params::Params,
    rsa,
};
use boring::ecdsa::EcdsaSig;
use quadrille_engine::{KeyType, Operation, SignatureScheme};
use settings::Settings;
use std::{
    ffi::{c_char, c_int, c_void},
    slice,
};
use zeroize::Zeroizing;

/// Context of a signature or a verification.
#[derive(Clone, Default)]
struct Context {
    key: Option<Shared>,
    settings: Settings,
    running: Option<Running>,
}

pub(crate) static FUNCTIONS: [Dispatch; 20] = [
    Dispatch::new(id::NEWCTX, new as *const ()),
    Dispatch::new(id::SIGN_INIT, sign_init as *const ()),
    Dispatch::new(id::SIGN, sign as *const ()),
    Dispatch::new(id::VERIFY_INIT, verify_init as *const ()),
    Dispatch::new(id::VERIFY, verify as *const ()),
    Dispatch::new(id::VERIFY_RECOVER_INIT, verify_recover_init as *const ()),
    Dispatch::new(id::VERIFY_RECOVER, verify_recover as *const ()),
    Dispatch::new(id::DIGEST_SIGN_INIT, digest_sign_init as *const ()),
    Dispatch::new(id::DIGEST_SIGN_UPDATE, update as *const ()),
    Dispatch::new(id::DIGEST_SIGN_FINAL, digest_sign_final as *const ()),
    Dispatch::new(id::DIGEST_VERIFY_INIT, digest_verify_init as *const ()),
    Dispatch::new(id::DIGEST_VERIFY_UPDATE, update as *const ()),
    Dispatch::new(id::DIGEST_VERIFY_FINAL, digest_verify_final as *const ()),
    Dispatch::new(id::FREECTX, context::free::<Context> as *const ()),
    Dispatch::new(id::DUPCTX, context::dup::<Context> as *const ()),
    Dispatch::new(id::GET_CTX_PARAMS, get_params as *const ()),
    Dispatch::new(id::GETTABLE_CTX_PARAMS, settings::gettable as *const ()),
    Dispatch::new(id::SET_CTX_PARAMS, set_params as *const ()),
    Dispatch::new(id::SETTABLE_CTX_PARAMS, settings::settable as *const ()),
    Dispatch::END,
];

unsafe extern "C" fn new(_provider: *mut c_void, _properties: *const c_char) -> *mut Context {
    context::new(Context::default)
}

unsafe extern "C" fn sign_init(context: *mut Context, key: *const c_void, params: *const Param) -> c_int {
    // SAFETY: OpenSSL passes our context and key, and a list.
    guard(|| unsafe { at_mut(context)?.begin(key, Params::new(params), true) })
}

unsafe extern "C" fn verify_init(context: *mut Context, key: *const c_void, params: *const Param) -> c_int {
    // SAFETY: as above.
    guard(|| unsafe { at_mut(context)?.begin(key, Params::new(params), false) })
}

unsafe extern "C" fn verify_recover_init(
    context: *mut Context,
    key: *const c_void,
    params: *const Param,
) -> c_int {
    guard(|| {
        // SAFETY: as above.
        let context = unsafe { at_mut(context) }?;
        // SAFETY: as above.
        unsafe { context.begin(key, Params::new(params), false) }?;
        match context.key()?.key_type() {
            KeyType::Rsa { .. } => Ok(()),
            _ => Err(Failure::new(Reason::UnsupportedKey, "no data is recovered from ECDSA signatures")),
        }
    })
}

unsafe extern "C" fn digest_sign_init(
    context: *mut Context,
    digest: *const c_char,
    key: *const c_void,
    params: *const Param,
) -> c_int {
    // SAFETY: as above, and a text.
    guard(|| unsafe { at_mut(context)?.begin_message(text(digest), key, Params::new(params), true) })
}

unsafe extern "C" fn digest_verify_init(
    context: *mut Context,
    digest: *const c_char,
    key: *const c_void,
    params: *const Param,
) -> c_int {
    // SAFETY: as above.
    guard(|| unsafe { at_mut(context)?.begin_message(text(digest), key, Params::new(params), false) })
}

unsafe extern "C" fn update(context: *mut Context, data: *const u8, length: usize) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and `length` bytes.
        let (context, data) = unsafe { (at_mut(context)?, bytes(data, length)) };
        context.running.as_mut().ok_or(Reason::NotInitialised)?.update(data)
    })
}

unsafe extern "C" fn sign(
    context: *mut Context,
    signature: *mut u8,
    length: *mut usize,
    room: usize,
    data: *const u8,
    data_length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and the bytes.
        let (context, data) = unsafe { (at(context)?, bytes(data, data_length)) };
        let make = || context.sign(data);
        // SAFETY: the output has `room` bytes, or is null.
        unsafe { deliver(signature, length, room, context.longest()?, make) }
    })
}

unsafe extern "C" fn digest_sign_final(
    context: *mut Context,
    signature: *mut u8,
    length: *mut usize,
    room: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context.
        let context = unsafe { at_mut(context) }?;
        let longest = context.longest()?;
        let make = || {
            let digest = context.running.take().ok_or(Reason::NotInitialised)?.finish()?;
            context.sign(&digest)
        };
        // SAFETY: the output has `room` bytes, or is null.
        unsafe { deliver(signature, length, room, longest, make) }
    })
}

unsafe extern "C" fn verify(
    context: *mut Context,
    signature: *const u8,
    length: usize,
    data: *const u8,
    data_length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and the bytes.
        let (context, signature, data) =
            unsafe { (at(context)?, bytes(signature, length), bytes(data, data_length)) };
        if context.verify(data, signature)? { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn verify_recover(
    context: *mut Context,
    output: *mut u8,
    length: *mut usize,
    room: usize,
    signature: *const u8,
    signature_length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and the bytes.
        let (context, signature) = unsafe { (at(context)?, bytes(signature, signature_length)) };
        let make = || context.recover(signature).map(Zeroizing::new);
        // SAFETY: the output has `room` bytes, or is null.
        unsafe { deliver(output, length, room, context.longest()?, make) }
    })
}

unsafe extern "C" fn digest_verify_final(
    context: *mut Context,
    signature: *const u8,
    length: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and the bytes.
        let (context, signature) = unsafe { (at_mut(context)?, bytes(signature, length)) };
        let digest = context.running.take().ok_or(Reason::NotInitialised)?.finish()?;
        if context.verify(&digest, signature)? { Ok(()) } else { Err(Failure::quiet()) }
    })
}

unsafe extern "C" fn get_params(context: *mut Context, params: *mut Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and a list.
        let (context, params) = unsafe { (at(context)?, Params::new(params)) };
        context.settings.answer(context.key.as_deref(), params)
    })
}

unsafe extern "C" fn set_params(context: *mut Context, params: *const Param) -> c_int {
    // SAFETY: OpenSSL passes our context, and a list.
    guard(|| unsafe { at_mut(context)?.settings.set(Params::new(params)) })
}

impl Context {
    /// # Safety
    /// `key` is null, to keep the current key, or an object of key management.
    unsafe fn begin(&mut self, key: *const c_void, params: Params<'_>, signs: bool) -> Result<(), Failure> {
        if !key.is_null() {
            // SAFETY: the caller's promise.
            self.key = Some(unsafe { KeyObject::key(key) }?);
        }
        if signs && !self.key()?.has_private() {
            return Err(Failure::new(Reason::NoPrivateKey, "this is a public key"));
        }
        self.running = None;
        self.settings.set(params)
    }

    /// # Safety
    /// See [`begin`](Self::begin).
    unsafe fn begin_message(
        &mut self,
        digest: Option<&str>,
        key: *const c_void,
        params: Params<'_>,
        signs: bool,
    ) -> Result<(), Failure> {
        if let Some(name) = digest.filter(|name| !name.is_empty()) {
            self.settings.digest = Some(Digest::named(name)?);
        }
        // SAFETY: the caller's promise.
        unsafe { self.begin(key, params, signs) }?;
        self.running = Some(Running::new(self.settings.digest.unwrap_or(Digest::Sha256))?);
        self.settings.digest.get_or_insert(Digest::Sha256);
        Ok(())
    }

    fn key(&self) -> Result<&Shared, Failure> {
        self.key.as_ref().ok_or_else(|| Reason::NotInitialised.into())
    }

    fn longest(&self) -> Result<usize, Failure> {
        Ok(crate::keymgmt::longest(self.key()?.key_type()))
    }

    fn sign(&self, data: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let key = self.key()?;
        let operation = match key.key_type() {
            KeyType::Rsa { .. } => {
                rsa::signature::operation(key.public(), self.settings.padding(), self.settings.digest, data)?
            }
            other => ecdsa(other, data)?,
        };
        key.compute(operation)
    }

    fn recover(&self, signature: &[u8]) -> Result<Vec<u8>, Failure> {
        rsa::signature::recover(
            self.key()?.public(),
            self.settings.padding(),
            self.settings.digest,
            signature,
        )
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<bool, Failure> {
        let key = self.key()?;
        match key.key_type() {
            KeyType::Rsa { .. } => rsa::signature::verify(
                key.public(),
                self.settings.padding(),
                self.settings.digest,
                data,
                signature,
            ),
            _ => {
                let ec = key.public().pkey().ec_key()?;
                Ok(EcdsaSig::from_der(signature)
                    .and_then(|signature| signature.verify(data, &ec))
                    .unwrap_or(false))
            }
        }
    }
}

/// ECDSA signs a number: the leftmost bits of the digest, as many as the curve's order has (FIPS 186-5 section 6.4.1).
/// So a digest that no scheme has is padded with zeros on the left.
fn ecdsa(key: KeyType, digest: &[u8]) -> Result<Operation, Failure> {
    let order = match key {
        KeyType::EcdsaP256 => 32,
        KeyType::EcdsaP384 => 48,
        _ => 66,
    };
    // A digest of a scheme's own length stays whole.
    let is_whole = matches!(digest.len(), 20 | 32 | 48 | 64);
    let number = if is_whole { digest } else { &digest[..digest.len().min(order)] };
    let (scheme, size) = match number.len() {
        ..=20 => (SignatureScheme::EcdsaSha1, 20),
        21..=32 => (SignatureScheme::EcdsaSha256, 32),
        33..=48 => (SignatureScheme::EcdsaSha384, 48),
        49..=64 => (SignatureScheme::EcdsaSha512, 64),
        other => {
            let detail = format!("ECDSA with a digest of {other} bytes");
            return Err(Failure::new(Reason::UnsupportedDigest, detail));
        }
    };
    let mut padded = vec![0; size];
    padded[size - number.len()..].copy_from_slice(number);
    Ok(Operation::Sign { scheme, digest: padded.as_slice().into() })
}

/// Returns the maximum length of the output, or computes it and writes it.
///
/// # Safety
/// `output` is null or has `room` bytes; `length` is writable.
pub(crate) unsafe fn deliver(
    output: *mut u8,
    length: *mut usize,
    room: usize,
    longest: usize,
    make: impl FnOnce() -> Result<Zeroizing<Vec<u8>>, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let length = unsafe { length.as_mut() }.ok_or(Reason::Internal)?;
    if output.is_null() {
        *length = longest;
        return Ok(());
    }
    let made = make()?;
    if made.len() > room {
        return Err(Failure::new(Reason::BufferTooSmall, format!("{} bytes are needed", made.len())));
    }
    // SAFETY: the output has at least that many bytes, and no other users.
    unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), output, made.len()) };
    *length = made.len();
    Ok(())
}

/// # Safety
/// `data` is null or has `length` bytes that live for `'a`.
pub(crate) unsafe fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(data, length) }
}
