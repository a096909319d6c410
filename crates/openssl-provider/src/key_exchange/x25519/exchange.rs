//! Key exchange (`provider-keyexch(7)`).

use super::key::X25519Key;
use crate::{
    abi::{Dispatch, Param, keyexch as id},
    context::{self, at, at_mut},
    error::{Reason, guard},
    key_exchange::turn::{self, BYTES},
};
use std::ffi::{c_int, c_void};

/// Context of a derivation.
#[derive(Clone, Default)]
struct Context {
    own: Option<X25519Key>,
    peer: Option<[u8; BYTES]>,
}

pub(crate) static FUNCTIONS: [Dispatch; 7] = [
    Dispatch::new(id::NEWCTX, new as *const ()),
    Dispatch::new(id::INIT, init as *const ()),
    Dispatch::new(id::SET_PEER, set_peer as *const ()),
    Dispatch::new(id::DERIVE, derive as *const ()),
    Dispatch::new(id::FREECTX, context::free::<Context> as *const ()),
    Dispatch::new(id::DUPCTX, context::dup::<Context> as *const ()),
    Dispatch::END,
];

unsafe extern "C" fn new(_provider: *mut c_void) -> *mut Context {
    context::new(Context::default)
}

unsafe extern "C" fn init(context: *mut Context, key: *const X25519Key, _params: *const Param) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context and key.
        let (context, key) = unsafe { (at_mut(context)?, at(key)?) };
        key.private_key().ok_or(Reason::NoPrivateKey)?;
        *context = Context { own: Some(key.clone()), peer: None };
        Ok(())
    })
}

unsafe extern "C" fn set_peer(context: *mut Context, key: *const X25519Key) -> c_int {
    guard(|| {
        // SAFETY: as above.
        let (context, key) = unsafe { (at_mut(context)?, at(key)?) };
        context.peer = Some(*key.public_key().ok_or(Reason::MissingKey)?);
        Ok(())
    })
}

unsafe extern "C" fn derive(
    context: *mut Context,
    output: *mut u8,
    length: *mut usize,
    room: usize,
) -> c_int {
    guard(|| {
        // SAFETY: OpenSSL passes our context, and a place for the length.
        let (context, length) = unsafe { (at(context)?, at_mut(length)?) };
        let (own, peer) = (context.own.as_ref(), context.peer.as_ref());
        let (own, peer) = own.zip(peer).ok_or(Reason::NotInitialised)?;
        *length = BYTES;
        if output.is_null() {
            return Ok(());
        }
        if room < BYTES {
            return Err(Reason::BufferTooSmall.into());
        }
        let secret = turn::secret(own.private_key().ok_or(Reason::NoPrivateKey)?, peer)?;
        // SAFETY: the output has room for them.
        unsafe { output.copy_from_nonoverlapping(secret.as_ptr(), BYTES) };
        Ok(())
    })
}
