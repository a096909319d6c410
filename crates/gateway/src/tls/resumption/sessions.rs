//! Session resumption: BoringSSL's callbacks for ticket keys and stored sessions, and their outcome.
//!
//! The callbacks are the same on every context and stateless; their state is attached to the connection as
//! [`ResumptionState`]. BoringSSL resumes a session only under the session-id context it was created with, which
//! [`bind`] sets for each connection. A session of one name and policy is therefore never valid for another.

use super::session_clock;
use crate::{
    connection::{ResumptionKind, ResumptionOutcome},
    telemetry::metrics,
    tls::{
        contained,
        handshake_state::{HandshakeState, ResumptionState},
        without_panic,
    },
};
use boring::{
    error::ErrorStack,
    hash::MessageDigest,
    hmac::HmacCtxRef,
    ssl::{
        BoxGetSessionFinish, BoxGetSessionFuture, ClientHello, ExtensionType, SslContextBuilder, SslOptions,
        SslRef, SslSession, SslSessionCacheMode, TicketKeyCallbackResult,
    },
    symm::{Cipher, CipherCtxRef},
};
use boring_sys as ffi;
use foreign_types::{ForeignType, ForeignTypeRef};
use quadrille_resumption::{Claim, Lookup, Miss, SessionId, TicketKey};
use quadrille_unix_time::since_epoch;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};
use zeroize::Zeroizing;

/// Resumption settings of a context; keys and stores belong to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResumptionSettings {
    pub(crate) tickets: bool,
    pub(crate) store: bool,
    /// Lifetime of a session in seconds.
    pub(crate) lifetime: u32,
}

impl ResumptionState {
    /// Queries the store whether early data, if the client offers it, is the first use of its ticket.
    pub(crate) fn claim(hello: &ClientHello<'_>) -> Claim {
        if hello.get_extension(ExtensionType::EARLY_DATA).is_none() {
            return Claim::Now(true);
        }
        let claim = Self::attached(hello.ssl()).and_then(|state| {
            let _ = state.early.set(());
            state.first_use(psk_ticket(hello)?)
        });
        claim.unwrap_or(Claim::Now(false))
    }

    /// Records the ticket that the client offers.
    pub(crate) fn note(hello: &ClientHello<'_>) {
        let ticket = psk_ticket(hello).or_else(|| hello.get_extension(ExtensionType::SESSION_TICKET));
        let Some(ticket) = ticket.filter(|ticket| !ticket.is_empty()) else { return };
        if let Some(state) = Self::attached(hello.ssl()) {
            let _ = state.ticket.set(ticket.into());
        }
    }

    /// Returns whether the client offers a ticket with a known key. Its contents, policy and name are verified only
    /// if `thoroughly`, which costs as much as resuming.
    pub(crate) fn will_resume(
        hello: &ClientHello<'_>,
        thoroughly: bool,
        (policy, sni): (&[u8; 32], Option<&str>),
    ) -> bool {
        let ticket = psk_ticket(hello).or_else(|| hello.get_extension(ExtensionType::SESSION_TICKET));
        let key = ticket.and_then(|ticket| {
            let (name, _) = ticket.split_at_checked(16)?;
            Some((Self::attached(hello.ssl())?.find(name)?, ticket))
        });
        key.is_some_and(|(key, ticket)| {
            !thoroughly
                || session_in(&key, ticket).is_some_and(|session| {
                    is_alive(&session) && context_of(&session) == context_for(policy, sni)
                })
        })
    }

    /// Returns the outcome, after the handshake.
    pub(crate) fn outcome(ssl: &SslRef) -> ResumptionOutcome {
        let Some(state) = Self::attached(ssl) else { return ResumptionOutcome::New };
        match (state.stored.get(), state.ticket.get()) {
            (Some(_), _) if ssl.session_reused() => ResumptionOutcome::Hit(ResumptionKind::Id),
            (_, Some(_)) if ssl.session_reused() => ResumptionOutcome::Hit(ResumptionKind::Ticket),
            (Some(Err(reason)), _) => ResumptionOutcome::Miss(ResumptionKind::Id, reason),
            (Some(Ok(())), _) => ResumptionOutcome::Miss(ResumptionKind::Id, OTHER_PARAMETERS),
            (None, Some(ticket)) if state.backend.tickets.is_some() => {
                ResumptionOutcome::Miss(ResumptionKind::Ticket, state.refusal(ssl, ticket))
            }
            _ => ResumptionOutcome::New,
        }
    }

    /// Returns the resumption state of this connection.
    pub(crate) fn attached(ssl: &SslRef) -> Option<&Self> {
        HandshakeState::attached(ssl).map(|handshake| &handshake.resumption)
    }

    fn find(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
        self.backend.tickets.as_ref()?.find(name, since_epoch())
    }

    fn first_use(&self, ticket: &[u8]) -> Option<Claim> {
        let store = self.backend.store.as_ref()?;
        let (name, _) = ticket.split_at_checked(16)?;
        let key = self.find(name)?;
        // Forged tickets must not fill the store.
        session_in(&key, ticket)?;
        Some(store.claim(&boring::sha::sha256(ticket)))
    }

    /// Returns the reason for which this ticket was not resumed. For the metrics, after a full handshake.
    fn refusal(&self, ssl: &SslRef, ticket: &[u8]) -> &'static str {
        let Some((name, _)) = ticket.split_at_checked(16) else { return "damaged" };
        let Some(key) = self.find(name) else { return "unknown_key" };
        let Some(session) = session_in(&key, ticket) else { return "damaged" };
        unfit(ssl, &session).unwrap_or(OTHER_PARAMETERS)
    }
}

/// Reason of BoringSSL rejecting a session whose version or cipher suite differs from this handshake's.
const OTHER_PARAMETERS: &str = "other_parameters";

/// Installs the resumption callbacks on a context.
pub(crate) fn install(
    builder: &mut SslContextBuilder,
    ResumptionSettings { tickets, store, lifetime }: ResumptionSettings,
) -> Result<(), ErrorStack> {
    // Always set: BoringSSL rejects resumption under an empty context.
    builder.set_session_id_context(b"quadrille")?;
    set_timeout(builder, lifetime);
    session_clock::install(builder);
    if tickets {
        // SAFETY: the callback sets name, IV, cipher and HMAC whenever it returns Success or DecryptSuccessRenew.
        unsafe {
            builder.set_ticket_key_callback(|ssl, name, iv, cipher, hmac, encrypt| {
                contained(TicketKeyCallbackResult::Noop, || {
                    let chosen = ResumptionState::attached(ssl).map(|state| {
                        if encrypt {
                            state.seal(ssl, name, iv, cipher, hmac)
                        } else {
                            state.open(name, iv, cipher, hmac)
                        }
                    });
                    chosen.unwrap_or(TicketKeyCallbackResult::Noop)
                })
            });
        }
    } else {
        builder.set_options(SslOptions::NO_TICKET);
    }
    if store {
        builder.set_session_cache_mode(SslSessionCacheMode::SERVER | SslSessionCacheMode::NO_INTERNAL);
        builder.set_new_session_callback(|ssl, session| contained((), || keep(ssl, &session)));
        // SAFETY: returned sessions are created from bytes, without a context.
        unsafe {
            builder.set_async_get_session_callback(|ssl, id| contained(None, || look_up(ssl, id)));
        }
    } else {
        builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    }
    Ok(())
}

/// Binds the sessions of this connection to the name, in lower case, and to the policy by its digest.
pub(crate) fn bind(ssl: &mut SslRef, policy: &[u8; 32], sni: Option<&str>) -> Result<(), ErrorStack> {
    let context = context_for(policy, sni);
    // SAFETY: the connection is live; BoringSSL copies the 32 bytes, which is its maximum.
    let ok = unsafe { ffi::SSL_set_session_id_context(ssl.as_ptr(), context.as_ptr(), context.len()) };
    if ok == 1 { Ok(()) } else { Err(ErrorStack::get()) }
}

fn context_for(policy: &[u8; 32], sni: Option<&str>) -> [u8; 32] {
    let mut hasher = boring::sha::Sha256::new();
    hasher.update(policy);
    hasher.update(sni.unwrap_or_default().as_bytes());
    hasher.finish()
}

impl ResumptionState {
    /// Seals a new ticket. A client that resumed with a ticket gets one; BoringSSL would issue two in TLS 1.3.
    fn seal(
        &self,
        ssl: &SslRef,
        name: &mut [u8; 16],
        iv: &mut [u8; 16],
        cipher: &mut CipherCtxRef,
        hmac: &mut HmacCtxRef,
    ) -> TicketKeyCallbackResult {
        let before = self.issued.fetch_add(1, Ordering::Relaxed);
        let Some(tickets) = self.backend.tickets.as_ref().filter(|_| before == 0 || !ssl.session_reused())
        else {
            return TicketKeyCallbackResult::Noop;
        };
        let key = tickets.encrypting(since_epoch());
        *name = *key.name();
        let ready = boring::rand::rand_bytes(iv)
            .and_then(|()| cipher.init_encrypt(&cbc(&key), key.aes(), iv))
            .and_then(|()| hmac.init(key.hmac(), &MessageDigest::sha256()));
        if ready.is_ok() { TicketKeyCallbackResult::Success } else { TicketKeyCallbackResult::Noop }
    }

    /// Opens a ticket. It is always renewed, so that a ticket is not used for long, or twice in TLS 1.3.
    fn open(
        &self,
        name: &[u8; 16],
        iv: &[u8; 16],
        cipher: &mut CipherCtxRef,
        hmac: &mut HmacCtxRef,
    ) -> TicketKeyCallbackResult {
        let Some(key) = self.find(name) else { return TicketKeyCallbackResult::Noop };
        if self.backend.tickets.as_ref().is_some_and(|tickets| tickets.is_shared())
            && let Some(session) = self.ticket.get().and_then(|ticket| session_in(&key, ticket))
        {
            session_clock::tolerate(session.time());
        }
        let ready = cipher
            .init_decrypt(&cbc(&key), key.aes(), iv)
            .and_then(|()| hmac.init(key.hmac(), &MessageDigest::sha256()));
        if ready.is_ok() {
            TicketKeyCallbackResult::DecryptSuccessRenew
        } else {
            TicketKeyCallbackResult::Noop
        }
    }

    fn stored(&self, outcome: Result<(), &'static str>, asked: Instant) {
        let _ = self.stored.set(outcome);
        metrics::session_lookup(outcome.err().unwrap_or("hit"), asked.elapsed());
    }
}

/// Stores a new session with an ID.
fn keep(ssl: &SslRef, session: &SslSession) {
    let store = ResumptionState::attached(ssl).and_then(|state| state.backend.store.as_ref());
    let (Some(store), Ok(id)) = (store, SessionId::try_from(session.id())) else { return };
    if let Ok(der) = session.to_der() {
        store.put(&id, Arc::new(Zeroizing::new(der)));
    }
}

/// Looks up the session with this ID.
fn look_up(ssl: &SslRef, id: &[u8]) -> Option<BoxGetSessionFuture> {
    let state = ResumptionState::attached(ssl)?;
    let store = state.backend.store.as_ref()?;
    let asked = Instant::now();
    // IDs of other lengths are not ours.
    let id = SessionId::try_from(id).map_err(|_| state.stored(Err(reason(Miss::Unknown)), asked)).ok()?;
    match store.get(&id) {
        Lookup::Hit(session) => Some(Box::pin(async move { Some(found(Ok(session), asked)) })),
        Lookup::Miss(miss) => {
            state.stored(Err(reason(miss)), asked);
            None
        }
        Lookup::Pending(answer) => Some(Box::pin(async move {
            let answer = without_panic(Err(Miss::Unavailable), answer).await;
            Some(found(answer, asked))
        })),
    }
}

fn found(answer: Result<quadrille_resumption::Session, Miss>, asked: Instant) -> BoxGetSessionFinish {
    Box::new(move |ssl, _| {
        contained(None, || {
            let session = answer.map_err(reason).and_then(|der| {
                let session = SslSession::from_der(&der).map_err(|_| reason(Miss::Damaged))?;
                session_clock::tolerate(session.time());
                unfit(ssl, &session).map_or(Ok(session), Err)
            });
            if let Some(state) = ResumptionState::attached(ssl) {
                state.stored(session.as_ref().map(drop).map_err(|reason| *reason), asked);
            }
            session.ok()
        })
    })
}

/// Returns the reason for which BoringSSL will reject a session, as far as it is known before version and cipher
/// suite are chosen.
fn unfit(ssl: &SslRef, session: &SslSession) -> Option<&'static str> {
    match session.time() {
        made if session_clock::is_future(made) => Some("from_the_future"),
        _ if !is_alive(session) => Some("expired"),
        _ if context_of(session) != context_here(ssl) => Some("other_context"),
        _ => None,
    }
}

fn is_alive(session: &SslSession) -> bool {
    session.time() + u64::from(session.timeout()) > since_epoch().as_secs()
}

fn reason(miss: Miss) -> &'static str {
    match miss {
        Miss::Unknown => "store_miss",
        Miss::Timeout => "store_timeout",
        Miss::Unavailable => "store_unavailable",
        Miss::Damaged => "damaged",
    }
}

fn psk_ticket<'a>(hello: &'a ClientHello<'_>) -> Option<&'a [u8]> {
    hello.get_extension(ExtensionType::PRE_SHARED_KEY).and_then(first_identity)
}

/// Returns the first identity of a pre_shared_key extension (RFC 8446 section 4.2.11), the only one that BoringSSL
/// reads.
fn first_identity(extension: &[u8]) -> Option<&[u8]> {
    let (length, rest) = extension.get(2..)?.split_at_checked(2)?;
    rest.get(..usize::from(u16::from_be_bytes([length[0], length[1]])))
}

/// Decodes the session in a ticket, if it is intact and ours.
fn session_in(key: &TicketKey, ticket: &[u8]) -> Option<SslSession> {
    let session = opened(key, ticket).and_then(|der| SslSession::from_der(&der).ok());
    if session.is_none() {
        // The error queue belongs to the thread.
        drop(ErrorStack::get());
    }
    session
}

/// Decrypts a ticket (RFC 5077 section 4).
fn opened(key: &TicketKey, ticket: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (sealed, tag) = ticket.split_at_checked(ticket.len().checked_sub(32)?)?;
    let iv = sealed.get(16..32)?;
    let mut hmac = boring::hmac::Hmac::init(key.hmac(), &MessageDigest::sha256()).ok()?;
    hmac.update(sealed).ok()?;
    if !boring::memcmp::eq(&hmac.finalize().ok()?, tag) {
        return None;
    }
    boring::symm::decrypt(cbc(key), key.aes(), Some(iv), sealed.get(32..)?).ok().map(Zeroizing::new)
}

fn cbc(key: &TicketKey) -> Cipher {
    if key.aes().len() == 32 { Cipher::aes_256_cbc() } else { Cipher::aes_128_cbc() }
}

fn context_of(session: &SslSession) -> &[u8] {
    let mut length = 0;
    // SAFETY: the session is live and outlives the returned slice; BoringSSL returns pointer and length together.
    unsafe {
        let context = ffi::SSL_SESSION_get0_id_context(session.as_ptr(), &raw mut length);
        std::slice::from_raw_parts(context, length as usize)
    }
}

fn context_here(ssl: &SslRef) -> &[u8] {
    let mut length = 0;
    // SAFETY: the connection is live and outlives the returned slice; BoringSSL returns pointer and length together.
    unsafe {
        let context = ffi::SSL_get0_session_id_context(ssl.as_ptr(), &raw mut length);
        if context.is_null() { &[] } else { std::slice::from_raw_parts(context, length) }
    }
}

/// Sets the lifetimes of sessions by ID and by ticket, and of TLS 1.3 tickets, in seconds.
fn set_timeout(builder: &mut SslContextBuilder, seconds: u32) {
    // SAFETY: the context is live; these set integers on it.
    unsafe {
        ffi::SSL_CTX_set_timeout(builder.as_ptr(), seconds);
        ffi::SSL_CTX_set_session_psk_dhe_timeout(builder.as_ptr(), seconds);
    }
}
