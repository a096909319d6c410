//! A load client that is cheap per handshake: one thread, non-blocking sockets, BoringSSL.
//!
//! Closed loop: `connections` are in flight at any time, and a new one begins when one ends. Each connects, makes a
//! handshake (a full one, or with the session of an earlier connection if so asked), sends its requests one after another, reads each response whole, and closes
//! with close_notify and FIN. The certificate's chain is not checked, its signature in the handshake is.

mod connection;
mod outcome;

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use boring::ssl::{SslContext, SslMethod, SslOptions, SslSession, SslSessionCacheMode, SslVerifyMode};
use mio::{Events, Interest, Poll, Token};

use self::connection::{Connection, Progress};
pub use self::{
    connection::{Failure, Stage},
    outcome::{Negotiated, Outcome},
};
use crate::scenario::{Resumed, Scenario, TlsVersion};

/// How often connections are looked at for having outlived their time.
const TICK: Duration = Duration::from_millis(100);
/// Source addresses for loopback targets: each brings its own range of ports.
const SOURCES: u32 = 8;

/// A load: what to ask, of whom, how often, and when to stop.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server. Loopback only: this is no tool to point at others.
    pub target: SocketAddr,
    /// The only version offered.
    pub version: TlsVersion,
    /// Key exchange groups, colon-separated as BoringSSL names them; the first gets the key share.
    pub groups: String,
    /// Connections in flight.
    pub connections: usize,
    /// Requests on each connection; 0 is the handshake alone.
    pub requests: u32,
    /// How clients come back; `None` never offers a session.
    pub resumed: Option<Resumed>,
    /// Connections to make.
    pub count: u64,
    /// The load ends after this time, however many connections it has made.
    pub time_limit: Duration,
    /// A connection that takes longer has failed.
    pub connection_timeout: Duration,
}

impl Load {
    /// `count` connections as `scenario` wants them, within `time_limit`.
    pub fn new(scenario: &Scenario, target: SocketAddr, count: u64, time_limit: Duration) -> Self {
        Self {
            target,
            version: scenario.version,
            groups: scenario.groups.clone(),
            connections: scenario.clients,
            requests: scenario.requests,
            resumed: scenario.resumed,
            count,
            time_limit,
            connection_timeout: Duration::from_secs(10),
        }
    }

    /// Makes the load. Connections that fail are counted, not returned as an error.
    pub fn run(&self) -> Result<Outcome> {
        Ok(self.drive(false)?.0)
    }

    /// Makes the load, but leaves every connection open when it has got its responses.
    pub fn hold(&self) -> Result<(Outcome, Held)> {
        self.drive(true)
    }

    fn drive(&self, hold: bool) -> Result<(Outcome, Held)> {
        ensure!(self.target.ip().is_loopback(), "{} is not a loopback address", self.target);
        ensure!(self.connections > 0, "no connection is allowed in flight");
        let (tickets, sessions) = (Arc::new(AtomicU64::new(0)), Sessions::default());
        let mut run = Run {
            load: self,
            context: self.context(Arc::clone(&tickets), Arc::clone(&sessions))?,
            sessions,
            poll: Poll::new()?,
            slots: (0..self.connections).map(|_| None).collect(),
            begun: 0,
            start: Instant::now(),
            outcome: Outcome::default(),
            held: hold.then(Vec::new),
        };
        run.finish()?;
        run.outcome.elapsed = run.start.elapsed();
        run.outcome.tickets = tickets.load(Ordering::Relaxed);
        Ok((run.outcome, Held { connections: run.held.unwrap_or_default() }))
    }

    fn context(&self, tickets: Arc<AtomicU64>, sessions: Sessions) -> Result<SslContext> {
        let mut context = SslContext::builder(SslMethod::tls())?;
        context.set_verify(SslVerifyMode::NONE);
        context.set_min_proto_version(Some(self.version.boring()))?;
        context.set_max_proto_version(Some(self.version.boring()))?;
        let groups = self.offered_groups();
        context.set_curves_list(&groups).with_context(|| format!("groups {groups}"))?;
        context.set_alpn_protos(b"\x08http/1.1")?;
        if self.resumed == Some(Resumed::Id) {
            context.set_options(SslOptions::NO_TICKET);
        }
        // BoringSSL keeps nothing; the callback shows whether the peer hands out what could be resumed.
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let returns = self.resumed.is_some();
        context.set_new_session_callback(move |_, session| {
            tickets.fetch_add(1, Ordering::Relaxed);
            if returns {
                keep(&sessions, session);
            }
        });
        Ok(context.build())
    }

    /// In TLS 1.2 the list of groups is also that of the curves allowed in certificates (RFC 8422, section 5.1): a P-256
    /// certificate needs its own in it, at the end, where key exchange does not choose it.
    fn offered_groups(&self) -> String {
        let named = self.groups.split(':').any(|group| group == "P-256");
        match self.version {
            TlsVersion::V1_2 if !named => format!("{}:P-256", self.groups),
            _ => self.groups.clone(),
        }
    }
}

type Sessions = Arc<Mutex<Vec<SslSession>>>;

/// Newest last, and not without end.
fn keep(sessions: &Sessions, session: SslSession) {
    const MOST: usize = 4096;
    let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    if sessions.len() < MOST {
        sessions.push(session);
    }
}

/// Connections left open by [`Load::hold`]; dropping them closes them.
#[derive(Debug)]
pub struct Held {
    connections: Vec<Connection>,
}

impl Held {
    /// How many the server has not closed.
    pub fn still_open(&mut self) -> usize {
        self.connections.iter_mut().map(|connection| usize::from(connection.is_open())).sum()
    }
}

/// A load on its way.
struct Run<'a> {
    load: &'a Load,
    context: SslContext,
    /// What connections may come back with.
    sessions: Sessions,
    poll: Poll,
    slots: Vec<Option<Connection>>,
    begun: u64,
    start: Instant,
    outcome: Outcome,
    /// Where finished connections go that are to stay open.
    held: Option<Vec<Connection>>,
}

impl Run<'_> {
    fn finish(&mut self) -> Result<()> {
        let mut events = Events::with_capacity(self.slots.len().clamp(16, 1024));
        let mut next_tick = self.start + TICK;
        for slot in 0..self.slots.len() {
            self.fill(slot)?;
        }
        while self.slots.iter().any(Option::is_some) && self.start.elapsed() < self.load.time_limit {
            match self.poll.poll(&mut events, Some(TICK)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.advance(event.token().0)?;
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                self.expire(now)?;
            }
        }
        Ok(())
    }

    /// Begins connections in `slot` until one has to wait for the network, or none is left to begin.
    fn fill(&mut self, slot: usize) -> Result<()> {
        while self.slots[slot].is_none()
            && self.begun < self.load.count
            && self.start.elapsed() < self.load.time_limit
        {
            let source = self.source();
            self.begun += 1;
            let session = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match Connection::open(&self.context, self.load.target, source, self.load.requests, session) {
                Ok(mut connection) => {
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    self.poll.registry().register(connection.socket(), Token(slot), interest)?;
                    self.slots[slot] = Some(connection);
                    self.step(slot)?;
                }
                Err(failure) => self.outcome.fail(failure),
            }
        }
        Ok(())
    }

    fn advance(&mut self, slot: usize) -> Result<()> {
        self.step(slot)?;
        self.fill(slot)
    }

    /// Takes the connection in `slot` as far as it goes without waiting, and empties the slot at its end.
    fn step(&mut self, slot: usize) -> Result<()> {
        let Some(mut connection) = self.slots[slot].take() else { return Ok(()) };
        match connection.advance() {
            Ok(Progress::Waiting) => self.slots[slot] = Some(connection),
            Ok(Progress::Done) => {
                self.outcome.succeed(&connection);
                // In TLS 1.2 a session may be used again, and a resumed one is not announced.
                if let Some(session) =
                    connection.resumed_session().filter(|_| self.load.version == TlsVersion::V1_2)
                {
                    keep(&self.sessions, session);
                }
                match &mut self.held {
                    None => connection.close(),
                    Some(held) => {
                        self.poll.registry().deregister(connection.socket())?;
                        held.push(connection);
                    }
                }
            }
            Err(failure) => self.outcome.fail(failure),
        }
        Ok(())
    }

    fn expire(&mut self, now: Instant) -> Result<()> {
        for slot in 0..self.slots.len() {
            let late = |connection: &Connection| connection.age(now) > self.load.connection_timeout;
            if let Some(connection) = self.slots[slot].take_if(|connection| late(connection)) {
                self.outcome.fail(connection.timed_out());
                self.fill(slot)?;
            }
        }
        Ok(())
    }

    /// Source addresses take turns, so that ports in TIME_WAIT do not run short.
    fn source(&self) -> Option<Ipv4Addr> {
        let turn = u32::try_from(self.begun % u64::from(SOURCES)).unwrap_or_default();
        self.load.target.is_ipv4().then(|| Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 2)) + turn))
    }
}
