//! A client and a server in one thread.

use super::{
    chain::{Chain, verify},
    error::Error,
    exchange,
    key::MarkedKey,
    kind::{HandshakeKind, Side, Suite},
    pipe::{self, Pipe},
};
use boring::{
    error::ErrorStack,
    ssl::{
        HandshakeError, MidHandshakeSslStream, Ssl, SslContext, SslContextBuilder, SslMethod, SslOptions,
        SslSession, SslSessionCacheMode, SslSignatureAlgorithm, SslStream, SslVersion,
    },
};
use quadrille_handshake_timing::{Marks, Message, Spent, follow, reading_cost, thread_time};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A client and a server context for handshakes of one kind.
pub(super) struct Endpoints {
    kind: HandshakeKind,
    /// The measured side.
    side: Side,
    server: SslContext,
    client: SslContext,
    /// The newest session that the client has received.
    session: Arc<Mutex<Option<SslSession>>>,
    /// Cost of taking one mark.
    clock: Duration,
}

/// Measured cost of one handshake on the measured side.
pub(super) struct Seen {
    pub(super) messages: Vec<(Message, Duration)>,
    pub(super) key_operation: Duration,
    pub(super) key_exchange: Duration,
    pub(super) verification: Duration,
    pub(super) total: Duration,
}

/// Measurements taken during a handshake.
struct Measured {
    marks: Marks,
    total: Duration,
}

enum Turn {
    Going(MidHandshakeSslStream<Pipe>),
    Done(SslStream<Pipe>),
}

impl Endpoints {
    pub(super) fn new(kind: HandshakeKind, side: Side) -> Result<Self, Error> {
        let session = Arc::default();
        let chain = Chain::new(kind.suite)?;
        let ends = Self {
            kind,
            side,
            server: server(kind, &chain)?,
            client: client(kind, chain, Arc::clone(&session))?,
            session,
            clock: reading_cost(),
        };
        if kind.resumed {
            ends.connect(false)?;
        }
        Ok(ends)
    }

    /// Performs one handshake of the kind.
    pub(super) fn shake_hands(&mut self) -> Result<Seen, Error> {
        self.connect(self.kind.resumed)
    }

    fn connect(&self, resumed: bool) -> Result<Seen, Error> {
        let mut measured = Measured { marks: Marks::new(), total: Duration::ZERO };
        let (near, far) = pipe::pair();
        let mut ssl = self.ssl(&self.client, Side::Client)?;
        ssl.set_hostname("localhost")?;
        let offered = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(session) = offered.filter(|_| resumed) {
            // SAFETY: the session was made by a connection of this context.
            unsafe { ssl.set_session(&session) }?;
        }
        let mut client = self.turn_of(Side::Client, &mut measured, ssl.setup_connect(near))?;
        let ssl = self.ssl(&self.server, Side::Server)?;
        let mut server = self.turn_of(Side::Server, &mut measured, ssl.setup_accept(far))?;
        for _ in 0..8 {
            client = match client {
                Turn::Going(going) => self.turn_of(Side::Client, &mut measured, going)?,
                done => done,
            };
            server = match server {
                Turn::Going(going) => self.turn_of(Side::Server, &mut measured, going)?,
                done => done,
            };
            if let (Turn::Done(client), Turn::Done(server)) = (&mut client, &mut server) {
                // BoringSSL sends the tickets of TLS 1.3 with the server's first bytes.
                let _ = server.ssl_write(b"x");
                let _ = client.ssl_read(&mut [0]);
                if client.ssl().session_reused() != resumed {
                    return Err(self.stuck("unexpected resumption, or none"));
                }
                return self.seen(&measured);
            }
        }
        Err(self.stuck("not finished after eight turns"))
    }

    fn ssl(&self, context: &SslContext, side: Side) -> Result<Ssl, Error> {
        let mut ssl = Ssl::new(context)?;
        if side == self.side {
            follow(&mut ssl);
        }
        Ok(ssl)
    }

    fn seen(&self, Measured { marks, total }: &Measured) -> Result<Seen, Error> {
        let spent = marks.share_out(self.clock).ok_or_else(|| self.stuck("too many marks"))?;
        // The clock is read once for each mark and at the end of each turn.
        let asked = u32::try_from(marks.readings() + marks.turns()).unwrap_or(u32::MAX);
        let total = total.saturating_sub(self.clock * asked);
        let Spent { messages, key_operation, key_exchange, verification } = spent;
        Ok(Seen { messages, key_operation, key_exchange, verification, total })
    }

    /// Runs one turn of a side, timed if it is the measured side.
    fn turn_of(
        &self,
        side: Side,
        measured: &mut Measured,
        going: MidHandshakeSslStream<Pipe>,
    ) -> Result<Turn, Error> {
        if side != self.side {
            return self.turn(going.handshake());
        }
        let began = thread_time();
        let result = measured.marks.turn(|| going.handshake());
        measured.total += thread_time().saturating_sub(began);
        self.turn(result)
    }

    fn turn(&self, result: Result<SslStream<Pipe>, HandshakeError<Pipe>>) -> Result<Turn, Error> {
        match result {
            Ok(done) => Ok(Turn::Done(done)),
            Err(HandshakeError::WouldBlock(going)) => Ok(Turn::Going(going)),
            Err(error) => Err(self.stuck(&error.to_string())),
        }
    }

    fn stuck(&self, reason: &str) -> Error {
        Error::Stuck { kind: self.kind, reason: reason.to_owned() }
    }
}

fn server(kind: HandshakeKind, chain: &Chain) -> Result<SslContext, Error> {
    let mut context = builder(kind)?;
    context.set_certificate(&chain.leaf)?;
    context.add_extra_chain_cert(chain.intermediate.clone())?;
    context.set_private_key_method(MarkedKey(chain.key.clone()));
    if kind.tls13 {
        exchange::install(&mut context)?;
    }
    context.set_session_id_context(b"profile")?;
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    if !kind.resumed {
        context.set_options(SslOptions::NO_TICKET);
    }
    Ok(context.build())
}

fn client(
    kind: HandshakeKind,
    chain: Chain,
    session: Arc<Mutex<Option<SslSession>>>,
) -> Result<SslContext, Error> {
    let mut context = builder(kind)?;
    verify(&mut context, chain.root)?;
    context.set_verify_algorithm_prefs(&[
        SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256,
        SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256,
    ])?;
    context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
    context.set_new_session_callback(move |_, new| {
        *session.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
    });
    Ok(context.build())
}

fn builder(kind: HandshakeKind) -> Result<SslContextBuilder, ErrorStack> {
    let mut context = SslContext::builder(SslMethod::tls())?;
    let version = if kind.tls13 { SslVersion::TLS1_3 } else { SslVersion::TLS1_2 };
    context.set_min_proto_version(Some(version))?;
    context.set_max_proto_version(Some(version))?;
    context.set_curves_list("X25519:P-256")?;
    context.set_cipher_list(match kind.suite {
        Suite::EcdheRsa => "ECDHE-RSA-AES128-GCM-SHA256",
        Suite::EcdheEcdsa => "ECDHE-ECDSA-AES128-GCM-SHA256",
        Suite::Rsa => "AES128-GCM-SHA256",
    })?;
    Ok(context)
}
