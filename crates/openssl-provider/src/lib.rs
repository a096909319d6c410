//! OpenSSL 3 provider: the engine inside unmodified nginx, HAProxy, Apache, Node, and other programs that use
//! OpenSSL.
//!
//! ```text
//!  server ── libssl ── libcrypto ── OSSL_provider_init, tables of C functions
//!                                        │
//!      decoder, store ──> key ──> keymgmt, signature, asym_cipher
//!                          │             │ wait: pauses the ASYNC job, or blocks
//!                          v             v
//!                    compute (the engine in this process)   remote (a key server on this machine)
//! ```
//!
//! The module is not linked against OpenSSL, which passes the functions it needs when it loads the module. BoringSSL
//! is inside, and none of its symbols is exported. It is not a general provider: it implements RSA and ECDSA private
//! keys loaded into it, and key exchange for programs that prefer it by a property; the default provider implements
//! everything else.
//!
//! - `abi`, `host`, `params`, `error`: the C interface; `embedding`: functions for modules of the same server.
//! - `decoder`, `store`, `uri`, `pem_keys`: loading of keys; `keymgmt`, `signature`, `asym_cipher`, `rsa`: their
//!   use.
//! - `key_exchange`: X25519 and X25519MLKEM768 for programs that prefer it.
//! - `compute`, `remote`: the engine of this process, and a key server of this machine.
//! - `wait`, `wakeup`, `signal`: paused ASYNC jobs; `large_stack`: functions that do not fit on the stack of a job.
//! - `process`: state of each process, also after a fork.

mod abi;
mod asym_cipher;
mod batches;
mod components;
mod compute;
mod context;
mod decoder;
mod der;
mod digest;
mod embedding;
mod error;
mod host;
mod key;
mod key_exchange;
mod keymgmt;
mod large_stack;
mod params;
mod pem_keys;
mod process;
mod remote;
mod rsa;
mod signal;
mod signature;
mod store;
mod uri;
mod wait;
mod wakeup;

use abi::{Algorithm, Dispatch, PARAM_INTEGER, PARAM_TEXT, Param, ReasonText, operation, provider as id};
use error::{Failure, Reason, guard};
use host::Core;
use params::{Answer, Params, described, end};
use std::{
    ffi::{CStr, c_int, c_void},
    str::FromStr,
};

/// Property that keeps other providers' algorithms ahead of ours where a program names no provider: ours are selected
/// by their keys.
const OURS: &CStr = c"provider=quadrille";

/// Property by which a program can prefer our key exchange and leave everything else to other providers.
const KEY_EXCHANGE: &CStr = c"provider=quadrille,quadrille.key_exchange=yes";

const X25519: &CStr = c"X25519:1.3.101.110";
const HYBRID: &CStr = c"X25519MLKEM768";

static KEYMGMT: [Algorithm; 5] = [
    Algorithm::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", OURS, &keymgmt::RSA, c"RSA keys for batches"),
    Algorithm::new(c"EC:id-ecPublicKey:1.2.840.10045.2.1", OURS, &keymgmt::EC, c"EC keys of key servers"),
    Algorithm::new(X25519, KEY_EXCHANGE, &key_exchange::X25519_KEYMGMT, c"X25519 key pairs made ahead"),
    Algorithm::new(HYBRID, KEY_EXCHANGE, &key_exchange::HYBRID_KEYMGMT, c"keys of X25519MLKEM768"),
    Algorithm::END,
];

static KEYEXCH: [Algorithm; 2] =
    [Algorithm::new(X25519, KEY_EXCHANGE, &key_exchange::X25519_EXCHANGE, c"X25519 secrets"), Algorithm::END];

static KEM: [Algorithm; 2] = [
    Algorithm::new(HYBRID, KEY_EXCHANGE, &key_exchange::HYBRID_KEM, c"secrets of X25519MLKEM768"),
    Algorithm::END,
];

static SIGNATURE: [Algorithm; 3] = [
    Algorithm::new(c"RSA:rsaEncryption:1.2.840.113549.1.1.1", OURS, &signature::FUNCTIONS, c"RSA signatures"),
    Algorithm::new(c"ECDSA", OURS, &signature::FUNCTIONS, c"ECDSA signatures"),
    Algorithm::END,
];

static ASYM_CIPHER: [Algorithm; 2] = [
    Algorithm::new(
        c"RSA:rsaEncryption:1.2.840.113549.1.1.1",
        OURS,
        &asym_cipher::FUNCTIONS,
        c"RSA decryption",
    ),
    Algorithm::END,
];

static DECODER: [Algorithm; 5] = [
    Algorithm::new(
        c"RSA:rsaEncryption:1.2.840.113549.1.1.1",
        c"provider=quadrille,input=der,structure=PrivateKeyInfo",
        &decoder::RSA_FROM_DER,
        c"RSA keys in PKCS #8",
    ),
    Algorithm::new(
        c"RSA:rsaEncryption:1.2.840.113549.1.1.1",
        c"provider=quadrille,input=der,structure=type-specific",
        &decoder::RSA_FROM_DER,
        c"RSA keys in PKCS #1",
    ),
    Algorithm::new(
        c"RSA:rsaEncryption:1.2.840.113549.1.1.1",
        c"provider=quadrille,input=pem",
        &decoder::RSA_FROM_PEM,
        c"RSA keys by URI",
    ),
    Algorithm::new(
        c"EC:id-ecPublicKey:1.2.840.10045.2.1",
        c"provider=quadrille,input=pem",
        &decoder::EC_FROM_PEM,
        c"EC keys by URI",
    ),
    Algorithm::END,
];

static STORE: [Algorithm; 2] =
    [Algorithm::new(c"quadrille", OURS, &store::FUNCTIONS, c"keys by URI"), Algorithm::END];

static FUNCTIONS: [Dispatch; 11] = [
    Dispatch::new(id::TEARDOWN, teardown as *const ()),
    Dispatch::new(id::GETTABLE_PARAMS, gettable_params as *const ()),
    Dispatch::new(id::GET_PARAMS, get_params as *const ()),
    Dispatch::new(id::QUERY_OPERATION, query_operation as *const ()),
    Dispatch::new(id::GET_REASON_STRINGS, reason_strings as *const ()),
    Dispatch::new(id::GET_CAPABILITIES, key_exchange::capabilities as *const ()),
    Dispatch::new(embedding::number::SET_THREADS, embedding::set_threads as *const ()),
    Dispatch::new(embedding::number::TOTALS, embedding::totals as *const ()),
    Dispatch::new(embedding::number::TAKE_LAST_BATCH, embedding::take_last_batch as *const ()),
    Dispatch::new(embedding::number::COMPUTE_TURN, embedding::compute_turn as *const ()),
    Dispatch::END,
];

/// Entry point for OpenSSL (`provider-base(7)`).
///
/// # Safety
/// Called by OpenSSL, with its handle and table, and pointers to writable output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OSSL_provider_init(
    handle: *const c_void,
    input: *const c_void,
    output: *mut *const c_void,
    context: *mut *mut c_void,
) -> c_int {
    guard(|| {
        process::watch_forks();
        // SAFETY: the caller's promise.
        let core = host::enter(unsafe { Core::new(handle, input.cast()) });
        if let Err(failure) = configure(core) {
            host::leave(core);
            core.raise(failure.reason as u32, &failure.detail);
            return Err(Failure::quiet());
        }
        // SAFETY: the caller's promise.
        unsafe {
            output.write(FUNCTIONS.as_ptr().cast());
            context.write(std::ptr::from_ref(core).cast_mut().cast());
        }
        Ok(())
    })
}

/// Applies the settings of the provider's section in openssl.cnf. The latest load takes effect, because a process has
/// one engine.
fn configure(core: &Core) -> Result<(), Failure> {
    if let Some(count) = number(core, c"compute-threads")? {
        compute::set_threads(count);
    }
    pem_keys::list(&core.setting(c"pem-keys").unwrap_or_default())?;
    if let Some(count) = number(core, c"most-lost-jobs")? {
        wait::set_max_lost_jobs(count);
    }
    Ok(())
}

fn number<T: FromStr>(core: &Core, name: &'static CStr) -> Result<Option<T>, Failure> {
    let Some(text) = core.setting(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let name = name.to_string_lossy();
        Failure::new(Reason::BadConfiguration, format!("{name} = {text}: it is not a valid count"))
    })
}

unsafe extern "C" fn teardown(context: *mut c_void) {
    guard(|| {
        // SAFETY: it is an instance given out by `OSSL_provider_init`, which is never freed.
        let core = unsafe { context.cast::<Core>().as_ref() }.ok_or(Reason::Internal)?;
        if host::leave(core) {
            // SAFETY: OpenSSL unloads a provider when it is no longer in use, and this was the last load.
            unsafe { compute::stop() };
        }
        Ok(())
    });
}

unsafe extern "C" fn query_operation(
    _context: *mut c_void,
    wanted: c_int,
    no_cache: *mut c_int,
) -> *const Algorithm {
    // SAFETY: it is null or a writable output.
    if let Some(no_cache) = unsafe { no_cache.as_mut() } {
        *no_cache = 0;
    }
    match wanted {
        operation::KEYMGMT => KEYMGMT.as_ptr(),
        operation::KEYEXCH => KEYEXCH.as_ptr(),
        operation::KEM => KEM.as_ptr(),
        operation::SIGNATURE => SIGNATURE.as_ptr(),
        operation::ASYM_CIPHER => ASYM_CIPHER.as_ptr(),
        operation::DECODER => DECODER.as_ptr(),
        operation::STORE => STORE.as_ptr(),
        _ => std::ptr::null(),
    }
}

static PARAMS: [Param; 5] = [
    described(c"name", PARAM_TEXT),
    described(c"version", PARAM_TEXT),
    described(c"buildinfo", PARAM_TEXT),
    described(c"status", PARAM_INTEGER),
    end(),
];

unsafe extern "C" fn gettable_params(_context: *mut c_void) -> *const Param {
    PARAMS.as_ptr()
}

unsafe extern "C" fn get_params(_context: *mut c_void, params: *mut Param) -> c_int {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    guard(|| {
        // SAFETY: OpenSSL passes a list.
        let params = unsafe { Params::new(params) };
        let fits = params.answer(c"name", Answer::Text(c"Quadrille: private-key operations in batches"))
            && params.answer(c"version", Answer::Text(VERSION))
            && params.answer(c"buildinfo", Answer::Text(VERSION))
            && params.answer(c"status", Answer::Number(1));
        fits.then_some(()).ok_or_else(|| Reason::BufferTooSmall.into())
    })
}

unsafe extern "C" fn reason_strings(_context: *mut c_void) -> *const ReasonText {
    error::REASONS.as_ptr()
}
