//! Encapsulation and decapsulation (`provider-kem(7)`).

use super::key::{CIPHERTEXT, HybridKey, Private, SECRET};
use crate::{
    abi::{Dispatch, Param, kem as id},
    context::{self, at, at_mut},
    error::{Failure, Reason, guard},
    key_exchange::turn,
    large_stack,
};
use quadrille_engine::{ExchangeError, x25519};
use std::{
    ffi::{c_int, c_void},
    slice,
    sync::Arc,
};
use zeroize::Zeroizing;

/// Context of an operation: the client's public key, or its own key pair.
#[derive(Clone, Default)]
struct Context(Option<HybridKey>);

pub(crate) static FUNCTIONS: [Dispatch; 8] = [
    Dispatch::new(id::NEWCTX, new as *const ()),
    Dispatch::new(id::ENCAPSULATE_INIT, encapsulation_begins as *const ()),
    Dispatch::new(id::ENCAPSULATE, encapsulate as *const ()),
    Dispatch::new(id::DECAPSULATE_INIT, decapsulation_begins as *const ()),
    Dispatch::new(id::DECAPSULATE, decapsulate as *const ()),
    Dispatch::new(id::FREECTX, context::free::<Context> as *const ()),
    Dispatch::new(id::DUPCTX, context::dup::<Context> as *const ()),
    Dispatch::END,
];

unsafe extern "C" fn new(_provider: *mut c_void) -> *mut Context {
    context::new(Context::default)
}

unsafe extern "C" fn encapsulation_begins(
    context: *mut Context,
    key: *const HybridKey,
    _params: *const Param,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context and key.
        let (context, key) = unsafe { (at_mut(context)?, at(key)?) };
        key.share().ok_or(Reason::MissingKey)?;
        *context = Context(Some(key.clone()));
        Ok(())
    })
}

unsafe extern "C" fn decapsulation_begins(
    context: *mut Context,
    key: *const HybridKey,
    _params: *const Param,
) -> c_int {
    guard(|| {
        // SAFETY: as above.
        let (context, key) = unsafe { (at_mut(context)?, at(key)?) };
        key.private_key().ok_or(Reason::NoPrivateKey)?;
        *context = Context(Some(key.clone()));
        Ok(())
    })
}

unsafe extern "C" fn encapsulate(
    context: *const Context,
    ciphertext: *mut u8,
    ciphertext_len: *mut usize,
    secret: *mut u8,
    secret_len: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context; lengths may be missing where there is no output.
        let (context, ciphertext_len, secret_len) =
            unsafe { (at(context)?, ciphertext_len.as_mut(), secret_len.as_mut()) };
        let share = context.0.as_ref().and_then(HybridKey::share).ok_or(Reason::NotInitialised)?;
        let ciphertext = room(ciphertext, ciphertext_len, CIPHERTEXT)?;
        let secret = room(secret, secret_len, SECRET)?;
        // Only the lengths are requested.
        let (Some(ciphertext), Some(secret)) = (ciphertext, secret) else { return Ok(()) };
        let answer = turn::answer(share)?;
        let (first, second) = answer.split_at_checked(CIPHERTEXT).ok_or(Reason::Internal)?;
        if second.len() != SECRET {
            return Err(Reason::Internal.into());
        }
        // SAFETY: `room` has checked the space.
        unsafe {
            ciphertext.copy_from_nonoverlapping(first.as_ptr(), CIPHERTEXT);
            secret.copy_from_nonoverlapping(second.as_ptr(), SECRET);
        }
        Ok(())
    })
}

unsafe extern "C" fn decapsulate(
    context: *const Context,
    secret: *mut u8,
    secret_len: *mut usize,
    ciphertext: *const u8,
    ciphertext_len: usize,
) -> c_int {
    guard(|| {
        // SAFETY: as for `encapsulate`.
        let (context, secret_len) = unsafe { (at(context)?, secret_len.as_mut()) };
        let private = context.0.as_ref().and_then(HybridKey::private_key).ok_or(Reason::NotInitialised)?;
        let Some(secret) = room(secret, secret_len, SECRET)? else { return Ok(()) };
        if ciphertext.is_null() || ciphertext_len != CIPHERTEXT {
            let text = format!("{ciphertext_len} bytes of ciphertext, not {CIPHERTEXT}");
            return Err(Failure::new(Reason::WrongInput, text));
        }
        // SAFETY: OpenSSL passes `ciphertext_len` bytes, which equals `CIPHERTEXT`.
        let ciphertext = unsafe { slice::from_raw_parts(ciphertext, CIPHERTEXT) };
        let computed = shared_secret(private, ciphertext)?;
        // SAFETY: `room` has checked the space.
        unsafe { secret.copy_from_nonoverlapping(computed.as_ptr(), SECRET) };
        Ok(())
    })
}

/// Returns the client's shared secret.
fn shared_secret(private: &Arc<Private>, ciphertext: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, Failure> {
    let (ciphertext, rest) = ciphertext.split_first_chunk().ok_or(Reason::Internal)?;
    let peer: &[u8; 32] = rest.try_into().map_err(|_| Reason::Internal)?;
    let ml_kem = large_stack::run(|| private.ml_kem.decapsulate(ciphertext))??;
    let x25519 = x25519::secret(&private.x25519.private, peer).ok_or(ExchangeError::InvalidShare)?;
    let mut secret = Zeroizing::new([0; SECRET]);
    secret[..32].copy_from_slice(&*ml_kem);
    secret[32..].copy_from_slice(&*x25519);
    Ok(secret)
}

/// Returns the buffer for `needed` bytes, and stores their number. `None` if only the number is requested. `length`
/// gives the available space.
fn room(output: *mut u8, length: Option<&mut usize>, needed: usize) -> Result<Option<*mut u8>, Failure> {
    let given = length.map_or(needed, |length| std::mem::replace(length, needed));
    match output {
        output if output.is_null() => Ok(None),
        _ if given < needed => Err(Reason::BufferTooSmall.into()),
        output => Ok(Some(output)),
    }
}
