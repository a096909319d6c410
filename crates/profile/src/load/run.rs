//! A running load, on one thread.

use super::{
    Client, Live, Load, LoadError, Outcome,
    alarm::Alarm,
    connection::{Connection, Errand, Progress},
    pace::in_share,
};
use mio::{Events, Interest, Poll, Token};
use std::{
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Interval at which connections are checked for timeouts.
const TICK: Duration = Duration::from_millis(100);
/// Number of source addresses for loopback targets: each adds its own range of ports.
const SOURCES: u64 = 8;

/// Connections left open by [`Load::hold`], closed on drop.
#[derive(Debug)]
pub struct Held {
    connections: Vec<Connection>,
}

impl Held {
    /// Returns the number of connections that the server has not closed.
    pub fn still_open(&mut self) -> usize {
        self.connections.iter_mut().map(|connection| usize::from(connection.is_open())).sum()
    }
}

pub(super) struct Run<'a> {
    load: &'a Load,
    client: Client,
    /// Number of sessions issued to the client before this load.
    handed_out_before: u64,
    requests: Vec<Vec<u8>>,
    poll: Poll,
    alarm: Alarm,
    /// Whether the system refused the newest connection.
    refused: bool,
    slots: Vec<Option<Connection>>,
    empty: Vec<usize>,
    begun: u64,
    start: Instant,
    outcome: Outcome,
    /// Finished connections that stay open.
    held: Option<Vec<Connection>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(load: &'a Load, client: &Client, hold: bool) -> Result<Self, LoadError> {
        let closing = if load.server_closes { "Connection: close\r\n" } else { "" };
        let request = |name: &String| {
            let host = if name.contains(':') { format!("[{name}]") } else { name.clone() };
            format!(
                "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: quadrille-bench\r\nAccept: */*\r\n{closing}\r\n",
                load.path
            )
            .into_bytes()
        };
        let poll = Poll::new()?;
        let alarm = Alarm::new(poll.registry())?;
        Ok(Self {
            client: client.clone(),
            handed_out_before: client.sessions.handed_out(),
            requests: load.names.iter().map(request).collect(),
            poll,
            alarm,
            refused: false,
            slots: (0..load.connections).map(|_| None).collect(),
            empty: (0..load.connections).rev().collect(),
            begun: 0,
            start: Instant::now(),
            outcome: Outcome::default(),
            held: hold.then(Vec::new),
            load,
        })
    }

    pub(super) fn finish(mut self, live: &Live, stop: &AtomicBool) -> Result<(Outcome, Held), LoadError> {
        let mut events = Events::with_capacity(self.slots.len().clamp(16, 1024));
        self.start = Instant::now();
        let mut next_tick = self.start + TICK;
        self.begin_what_is_due(live)?;
        while (self.under_way() || self.may_begin())
            && self.start.elapsed() < self.load.time_limit
            && !stop.load(Ordering::Relaxed)
        {
            let patience = self.patience()?;
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in events.iter().filter(|event| event.token() != Alarm::TOKEN) {
                self.step(event.token().0, live)?;
            }
            self.begin_what_is_due(live)?;
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                self.expire(now, live);
            }
        }
        self.outcome.elapsed = self.start.elapsed();
        self.outcome.tickets = self.client.sessions.handed_out() - self.handed_out_before;
        Ok((self.outcome, Held { connections: self.held.unwrap_or_default() }))
    }

    /// Returns whether connections remain to be started, now or later.
    fn may_begin(&self) -> bool {
        let end = self.load.begin_within.unwrap_or(self.load.time_limit).min(self.load.time_limit);
        self.begun < self.load.count && self.start.elapsed() < end
    }

    fn under_way(&self) -> bool {
        self.empty.len() < self.slots.len()
    }

    /// Returns the poll timeout, unless the alarm or a connection wakes this thread earlier.
    fn patience(&mut self) -> io::Result<Duration> {
        let next = (self.may_begin() && !self.empty.is_empty() && !self.refused)
            .then(|| self.load.pace.due(self.begun))
            .flatten();
        if let Some(due) = next {
            match due.saturating_sub(self.start.elapsed()) {
                Duration::ZERO => return Ok(Duration::ZERO),
                wait => self.alarm.set(self.begun, wait)?,
            }
        }
        Ok(TICK)
    }

    /// Starts every connection that is due and has a slot, at most one for each slot: a server that refuses
    /// connections frees each slot at once. A connection that cannot be opened ends the turn: the next would fail
    /// too, and those in flight must proceed.
    fn begin_what_is_due(&mut self, live: &Live) -> Result<(), LoadError> {
        for _ in 0..self.slots.len() {
            if !self.may_begin() {
                break;
            }
            let due = match self.load.pace.due(self.begun).map(|due| self.start + due) {
                Some(due) if due > Instant::now() => break,
                Some(due) => due,
                None => Instant::now(),
            };
            let Some(slot) = self.empty.pop() else { break };
            self.refused = !self.begin(slot, due, live)?;
            if self.refused {
                break;
            }
        }
        Ok(())
    }

    /// Starts a connection. Returns whether it could be opened.
    fn begin(&mut self, slot: usize, due: Instant, live: &Live) -> Result<bool, LoadError> {
        let index = self.begun;
        self.begun += 1;
        let turn = (index % self.load.names.len() as u64) as usize;
        let name = &self.load.names[turn];
        let session = in_share(index, self.load.resumed).then(|| self.client.sessions.take(name)).flatten();
        self.outcome.offered += u64::from(session.is_some());
        let errand = Errand {
            target: self.load.target,
            source: self.source(index),
            name,
            session,
            request: &self.requests[turn],
            requests: self.load.requests,
            due,
        };
        match Connection::open(&self.client.context, errand) {
            Ok(mut connection) => {
                let interest = Interest::READABLE | Interest::WRITABLE;
                self.poll.registry().register(connection.socket(), Token(slot), interest)?;
                self.slots[slot] = Some(connection);
                self.step(slot, live).map(|()| true)
            }
            Err(failure) => {
                self.empty.push(slot);
                self.outcome.fail(failure, live);
                Ok(false)
            }
        }
    }

    /// Advances the connection in `slot` as far as possible without blocking, and frees the slot at its end.
    fn step(&mut self, slot: usize, live: &Live) -> Result<(), LoadError> {
        let Some(mut connection) = self.slots[slot].take() else { return Ok(()) };
        match connection.advance() {
            Ok(Progress::Waiting) => {
                self.slots[slot] = Some(connection);
                return Ok(());
            }
            Ok(Progress::Done) => {
                self.outcome.succeed(&connection, live);
                match &mut self.held {
                    None => connection.close(),
                    Some(held) => {
                        self.poll.registry().deregister(connection.socket())?;
                        held.push(connection);
                    }
                }
            }
            Err(failure) => self.outcome.fail(failure, live),
        }
        self.empty.push(slot);
        Ok(())
    }

    fn expire(&mut self, now: Instant, live: &Live) {
        let limit = self.load.connection_timeout;
        for (slot, place) in self.slots.iter_mut().enumerate() {
            if let Some(connection) = place.take_if(|connection| connection.age(now) > limit) {
                self.empty.push(slot);
                self.outcome.fail(connection.timed_out(), live);
            }
        }
    }

    /// Returns the source address. Addresses rotate, so that ports in TIME_WAIT do not run out.
    fn source(&self, index: u64) -> Option<Ipv4Addr> {
        let named = &self.load.sources;
        if !named.is_empty() {
            return Some(named[(index % named.len() as u64) as usize]);
        }
        let local = matches!(self.load.target.ip(), IpAddr::V4(address) if address.is_loopback());
        let turn = u32::try_from(index % SOURCES).unwrap_or_default();
        local.then(|| Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 2)) + turn))
    }
}
