//! Per-event-loop state of the servers: open requests, and the choice of the next server.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

/// One server.
pub(super) struct Link {
    up: bool,
    /// Operations to send.
    pub(super) queue: VecDeque<u32>,
    /// Requests to withdraw.
    pub(super) withdrawn: Vec<u32>,
    /// Operations without a reply, including withdrawn ones, which also get a reply.
    pub(super) sent: HashMap<u32, Sent>,
    /// Time of the last received data, or of the first request after it.
    pub(super) heard: Instant,
    /// Smoothed duration of an operation, in seconds.
    mean: f64,
    measured: Instant,
}

/// Operation requested from a server.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// Id of the request on the connection.
    request: u32,
}

/// All servers, by index.
pub(super) struct Links {
    links: Vec<Link>,
    /// Servers with data to send that have not been reported.
    ready: u64,
}

/// A server with fewer open requests than this counts as idle: together they make one batch there, and one frame on
/// the way.
const BATCH: usize = 8;
/// Weight of a new measurement.
const SMOOTHING: f64 = 0.1;
/// Half-life of the penalty of a slow server.
const FORGIVEN_BY_HALF: Duration = Duration::from_secs(1);
const UNKNOWN: f64 = 1e-3;
/// A silence of this many seconds, or of ten times what an operation takes, makes a server the last choice.
const SUSPICIOUS: f64 = 0.05;
const LAST_CHOICE: f64 = 1e6;

impl Links {
    pub(super) fn new(servers: usize) -> Self {
        let now = Instant::now();
        let link = || Link {
            up: false,
            queue: VecDeque::new(),
            withdrawn: Vec::new(),
            sent: HashMap::new(),
            heard: now,
            mean: UNKNOWN,
            measured: now,
        };
        Self { links: (0..servers.min(64)).map(|_| link()).collect(), ready: 0 }
    }

    pub(super) fn get(&self, server: usize) -> Option<&Link> {
        self.links.get(server)
    }

    pub(super) fn get_mut(&mut self, server: usize) -> Option<&mut Link> {
        self.links.get_mut(server)
    }

    pub(super) fn up(&mut self, now: Instant, server: usize) {
        if let Some(link) = self.links.get_mut(server) {
            link.up = true;
            link.heard = now;
        }
    }

    /// Clears the requests of the server, and returns them.
    pub(super) fn down(&mut self, server: usize) -> Vec<u32> {
        let Some(link) = self.links.get_mut(server) else { return Vec::new() };
        link.up = false;
        link.withdrawn.clear();
        link.queue.drain(..).chain(link.sent.drain().map(|(id, _)| id)).collect()
    }

    pub(super) fn enqueue(&mut self, server: usize, id: u32) {
        if let Some(link) = self.links.get_mut(server) {
            link.queue.push_back(id);
            self.ready |= 1 << server;
        }
    }

    /// Withdraws this operation from these servers.
    pub(super) fn withdraw(&mut self, servers: u64, id: u32) {
        for (index, link) in self.links.iter_mut().enumerate().filter(|(index, _)| servers >> index & 1 == 1)
        {
            // Unsent requests are dropped when their turn comes.
            if let Some(sent) = link.sent.get(&id) {
                link.withdrawn.push(sent.request);
                self.ready |= 1 << index;
            }
        }
    }

    /// Returns whether these are all servers.
    pub(super) fn all_in(&self, servers: u64) -> bool {
        (0..self.links.len()).all(|index| servers >> index & 1 == 1)
    }

    pub(super) fn take_ready(&mut self) -> u64 {
        std::mem::take(&mut self.ready)
    }

    /// Returns the server that will probably respond first, except those in `except`.
    pub(super) fn choose(&self, now: Instant, except: u64) -> Option<usize> {
        let usable = |index: &usize| self.links[*index].up && except >> index & 1 == 0;
        let best = self.links.iter().filter(|link| link.up).map(|link| link.mean).fold(f64::MAX, f64::min);
        let cost = |index: &usize| self.links[*index].cost(now, best);
        (0..self.links.len()).filter(usable).min_by(|a, b| cost(a).total_cmp(&cost(b)))
    }
}

impl Link {
    /// Records a request for this operation.
    pub(super) fn ask(&mut self, now: Instant, id: u32, request: u32) {
        if self.sent.is_empty() {
            self.heard = now;
        }
        self.sent.insert(id, Sent { at: now, request });
    }

    /// Time of silence while requests are open.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        if self.sent.is_empty() { Duration::ZERO } else { now.saturating_duration_since(self.heard) }
    }

    /// Records a reply after this time.
    pub(super) fn answered(&mut self, now: Instant, id: u32, took: Duration) {
        self.heard = now;
        self.sent.remove(&id);
        self.mean += SMOOTHING * (took.as_secs_f64() - self.mean);
        self.measured = now;
    }

    fn cost(&self, now: Instant, best: f64) -> f64 {
        let halves =
            now.saturating_duration_since(self.measured).as_secs_f64() / FORGIVEN_BY_HALF.as_secs_f64();
        let mean = best + (self.mean - best) * (-halves).exp2();
        let batches = (self.queue.len() + self.sent.len()) / BATCH;
        let silent = self.silence(now).as_secs_f64() > SUSPICIOUS + 10.0 * self.mean;
        mean * (1 + batches) as f64 * if silent { LAST_CHOICE } else { 1.0 }
    }
}
