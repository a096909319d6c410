//! Credentials of BoringSSL, for chains with a trust anchor identifier.
//!
//! BoringSSL announces a matching trust anchor only for credentials, and the certificate of a context is not one. The
//! `boring` crate makes no credentials with certificates, so the callbacks of the private key are here. They start the
//! same operation as [`EngineKey`] does for other certificates; its future is kept with the connection.

use super::key_method::EngineKey;
use crate::tls::{
    certificate::{files::Certificate, trust_anchor::ChainAnchor},
    contained,
    handshake_state::HandshakeState,
};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{
        AsyncPrivateKeyMethodError, BoxPrivateKeyMethodFuture, Ssl, SslContext, SslContextBuilder, SslRef,
    },
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_config::model::TrustAnchorId;
use quadrille_engine::SignatureScheme;
use std::{
    ffi::c_int,
    ptr::NonNull,
    slice,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

static KEY: LazyLock<Option<Index<SslContext, Arc<EngineKey>>>> =
    LazyLock::new(|| SslContext::new_ex_index().ok());

/// An operation that has been started, while it is computed.
type Operation = Mutex<Option<BoxPrivateKeyMethodFuture>>;

static OPERATION: LazyLock<Option<Index<Ssl, Operation>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

static METHOD: ffi::SSL_PRIVATE_KEY_METHOD =
    ffi::SSL_PRIVATE_KEY_METHOD { sign: Some(sign), decrypt: Some(decrypt), complete: Some(complete) };

/// Makes the context's connections use the certificate with this key, if the client requests its trust anchor.
pub(crate) fn install(
    builder: &mut SslContextBuilder,
    certificate: &Certificate,
    anchor: &ChainAnchor,
    key: EngineKey,
) -> Result<(), ErrorStack> {
    let index = (*KEY).ok_or_else(ErrorStack::get)?;
    builder.set_ex_data(index, Arc::new(key));
    // Without a key, it is not served: it shows what the connections' own certificate is.
    builder.set_certificate(&certificate.chain[0])?;
    let credential = Credential::new(certificate, anchor, certificate.ocsp.as_deref())?;
    // SAFETY: both are live; the context gets a reference of its own.
    check(unsafe { ffi::SSL_CTX_add1_credential(builder.as_ptr(), credential.0.as_ptr()) })
}

/// Makes a connection of such a context staple this OCSP response.
pub(super) fn staple(
    ssl: &mut SslRef,
    certificate: &Certificate,
    anchor: &ChainAnchor,
    response: &[u8],
) -> Result<(), ErrorStack> {
    let credential = Credential::new(certificate, anchor, Some(response))?;
    // SAFETY: the connection is live.
    unsafe { ffi::SSL_certs_clear(ssl.as_ptr()) };
    // SAFETY: both are live; the connection gets a reference of its own.
    check(unsafe { ffi::SSL_add1_credential(ssl.as_ptr(), credential.0.as_ptr()) })
}

/// Makes the connection announce these trust anchors, each with a length of one byte.
pub(super) fn announce(ssl: &mut SslRef, anchors: &[u8]) -> Result<(), ErrorStack> {
    // SAFETY: the connection is live, and the list has the length that is passed; BoringSSL copies it.
    check(unsafe { ffi::SSL_set1_available_trust_anchors(ssl.as_ptr(), anchors.as_ptr(), anchors.len()) })
}

struct Credential(NonNull<ffi::SSL_CREDENTIAL>);

impl Credential {
    fn new(
        certificate: &Certificate,
        anchor: &ChainAnchor,
        response: Option<&[u8]>,
    ) -> Result<Self, ErrorStack> {
        // SAFETY: the function has no requirements.
        let raw = unsafe { ffi::SSL_CREDENTIAL_new_x509() };
        let credential = Self(NonNull::new(raw).ok_or_else(ErrorStack::get)?);
        let links = certificate.chain.iter().map(|link| Buffer::new(&link.to_der()?));
        let links: Vec<Buffer> = links.collect::<Result<_, _>>()?;
        let chain: Vec<_> = links.iter().map(|link| link.0.as_ptr()).collect();
        // SAFETY: the credential and the buffers are live, and the array has the length that is passed.
        check(unsafe { ffi::SSL_CREDENTIAL_set1_cert_chain(raw, chain.as_ptr(), chain.len()) })?;
        // SAFETY: the credential is live, and the method is static.
        check(unsafe { ffi::SSL_CREDENTIAL_set_private_key_method(raw, &raw const METHOD) })?;
        if let Some(id) = anchor.id().map(TrustAnchorId::as_bytes) {
            // SAFETY: the credential is live, and the identifier has the length that is passed.
            check(unsafe { ffi::SSL_CREDENTIAL_set1_trust_anchor_id(raw, id.as_ptr(), id.len()) })?;
        }
        for group in anchor.groups() {
            // SAFETY: the credential is live, and the pattern has the length that is passed.
            check(unsafe { ffi::SSL_CREDENTIAL_add1_trust_anchor_group(raw, group.as_ptr(), group.len()) })?;
        }
        if let Some(response) = response {
            let response = Buffer::new(response)?;
            // SAFETY: the credential and the buffer are live.
            check(unsafe { ffi::SSL_CREDENTIAL_set1_ocsp_response(raw, response.0.as_ptr()) })?;
        }
        // SAFETY: the credential is live.
        unsafe { ffi::SSL_CREDENTIAL_set_must_match_issuer(raw, 1) };
        Ok(credential)
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        // SAFETY: this reference is owned, and not used again.
        unsafe { ffi::SSL_CREDENTIAL_free(self.0.as_ptr()) };
    }
}

/// Bytes that BoringSSL shares by reference count.
struct Buffer(NonNull<ffi::CRYPTO_BUFFER>);

impl Buffer {
    fn new(bytes: &[u8]) -> Result<Self, ErrorStack> {
        // SAFETY: the bytes have the length that is passed, and are copied.
        let raw = unsafe { ffi::CRYPTO_BUFFER_new(bytes.as_ptr(), bytes.len(), std::ptr::null_mut()) };
        NonNull::new(raw).map(Self).ok_or_else(ErrorStack::get)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: this reference is owned, and not used again.
        unsafe { ffi::CRYPTO_BUFFER_free(self.0.as_ptr()) };
    }
}

/// Result of polling an operation: the length of the signature.
type Progress = Poll<Result<usize, AsyncPrivateKeyMethodError>>;

const FAILED: Progress = Poll::Ready(Err(AsyncPrivateKeyMethodError));

unsafe extern "C" fn sign(
    ssl: *mut ffi::SSL,
    out: *mut u8,
    out_length: *mut usize,
    room: usize,
    algorithm: u16,
    input: *const u8,
    length: usize,
) -> ffi::ssl_private_key_result_t {
    let progress = contained(FAILED, || {
        // SAFETY: BoringSSL passes the connection and an input of this length, which live during the call.
        let (ssl, input) = unsafe { (SslRef::from_ptr_mut(ssl), slice::from_raw_parts(input, length)) };
        // SAFETY: BoringSSL passes a buffer with this room, which nothing else refers to during the call.
        let output = unsafe { slice::from_raw_parts_mut(out, room) };
        begin(ssl, algorithm, input).map_or(FAILED, |operation| poll(ssl, operation, output))
    });
    // SAFETY: BoringSSL passes a valid pointer for the length.
    finished(progress, unsafe { &mut *out_length })
}

/// Fails: only TLS 1.2 decrypts, and the credentials are for TLS 1.3.
unsafe extern "C" fn decrypt(
    _: *mut ffi::SSL,
    _: *mut u8,
    _: *mut usize,
    _: usize,
    _: *const u8,
    _: usize,
) -> ffi::ssl_private_key_result_t {
    ffi::ssl_private_key_result_t::ssl_private_key_failure
}

unsafe extern "C" fn complete(
    ssl: *mut ffi::SSL,
    out: *mut u8,
    out_length: *mut usize,
    room: usize,
) -> ffi::ssl_private_key_result_t {
    let progress = contained(FAILED, || {
        // SAFETY: BoringSSL passes the connection, which lives during the call.
        let ssl = unsafe { SslRef::from_ptr_mut(ssl) };
        // SAFETY: BoringSSL passes a buffer with this room, which nothing else refers to during the call.
        let output = unsafe { slice::from_raw_parts_mut(out, room) };
        take(ssl).map_or(FAILED, |operation| poll(ssl, operation, output))
    });
    // SAFETY: BoringSSL passes a valid pointer for the length.
    finished(progress, unsafe { &mut *out_length })
}

fn begin(ssl: &SslRef, algorithm: u16, input: &[u8]) -> Option<BoxPrivateKeyMethodFuture> {
    let key = ssl.ssl_context().ex_data((*KEY)?)?;
    let scheme = SignatureScheme::from_code_point(algorithm)?;
    key.sign_with(ssl, scheme, input).ok()
}

/// Polls an operation, and keeps it with the connection while it is computed. The task that drives the handshake is
/// woken when it should be polled again.
fn poll(ssl: &mut SslRef, mut operation: BoxPrivateKeyMethodFuture, output: &mut [u8]) -> Progress {
    let Some(handshake) = HandshakeState::of(ssl) else { return FAILED };
    let waker = Waker::from(handshake);
    match operation.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(finish) => Poll::Ready(finish.and_then(|finish| finish(ssl, output))),
        Poll::Pending => match *OPERATION {
            Some(index) => {
                ssl.replace_ex_data(index, Mutex::new(Some(operation)));
                Poll::Pending
            }
            None => FAILED,
        },
    }
}

fn take(ssl: &mut SslRef) -> Option<BoxPrivateKeyMethodFuture> {
    let kept = ssl.ex_data_mut((*OPERATION)?)?;
    kept.get_mut().unwrap_or_else(PoisonError::into_inner).take()
}

fn finished(progress: Progress, length: &mut usize) -> ffi::ssl_private_key_result_t {
    match progress {
        Poll::Ready(Ok(written)) => {
            *length = written;
            ffi::ssl_private_key_result_t::ssl_private_key_success
        }
        Poll::Ready(Err(_)) => ffi::ssl_private_key_result_t::ssl_private_key_failure,
        Poll::Pending => ffi::ssl_private_key_result_t::ssl_private_key_retry,
    }
}

fn check(ok: c_int) -> Result<(), ErrorStack> {
    if ok == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}
