//! Dispatch of operations to servers, with failover: a state machine without I/O, one for each event loop. Time is an
//! argument.

use super::{latency::Latencies, link::Links, settings::FailoverPolicy};
use crate::{
    session::{ClientSession, Completion, Outcome, RemoteOperation},
    wire::{ErrorCode, Request},
};
use quadrille_engine::OperationError;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Reason for which an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No server is reachable.
    #[error("no key server is reachable")]
    Unavailable,
    /// No server has responded in time.
    #[error("no key server responded in time")]
    Deadline,
    /// Every available server has rejected the operation; holds the last server's error.
    #[error("the key server rejected the operation: {0}")]
    Refused(ErrorCode),
    /// Too many operations are open.
    #[error("too many operations wait for key servers")]
    Full,
    /// The client has been closed.
    #[error("the key-server client was closed")]
    Closed,
}

/// Invalid operations fail before they are sent.
impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::QueueFull => Self::Full,
            OperationError::Stopped => Self::Closed,
            OperationError::WrongKeyType => Self::Refused(ErrorCode::UnexpectedOpcode),
            OperationError::InvalidInput => Self::Refused(ErrorCode::Format),
            OperationError::Failed => Self::Refused(ErrorCode::Crypto),
        }
    }
}

/// A signature in its TLS form, or a raw RSA result, checked with the public key.
pub(super) type Bytes = Zeroizing<Vec<u8>>;

/// Operation as requested from one server.
pub(super) struct Assignment<J> {
    id: u32,
    job: Arc<J>,
}

impl<J> Assignment<J> {
    /// Operation to compute.
    pub(super) fn job(&self) -> &J {
        &self.job
    }
}

/// Result of a tick.
#[derive(Default)]
pub(super) struct Ticked {
    pub(super) wakers: Vec<Waker>,
    pub(super) hedged: u64,
}

/// Operations of one event loop.
pub(super) struct Dispatch<J> {
    failover: FailoverPolicy,
    capacity: usize,
    links: Links,
    open: HashMap<u32, Open<J>>,
    last: u32,
    /// Operations without an available server.
    unassigned: VecDeque<u32>,
    /// Attempts in the order of sending: those that may be hedged, and those that have exceeded the usual time.
    to_hedge: VecDeque<Attempt>,
    slow: VecDeque<Attempt>,
    /// Deadlines in order: patient operations, impatient ones.
    deadlines: [VecDeque<(Instant, u32)>; 2],
    latencies: Latencies,
    /// Budget of second requests: a tenth of the operations, so that overloaded servers do not get twice the load.
    hedges: f32,
}

struct Open<J> {
    job: Arc<J>,
    /// Servers with a request, sent or queued.
    asked: u64,
    /// Servers that have rejected it.
    refused_by: u64,
    refusal: Option<ErrorCode>,
    /// Fails immediately instead of waiting for a server to return, because the caller has an alternative.
    impatient: bool,
    result: Option<Result<Bytes, Failure>>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy)]
struct Attempt {
    sent: Instant,
    id: u32,
    server: usize,
}

const HEDGES_EARNED: f32 = 0.1;
const MAX_HEDGES: f32 = 32.0;
/// Delay until the latency of the servers is known, and minimum delay of the second request.
const FIRST_HEDGE: Duration = Duration::from_millis(100);
const SOONEST_HEDGE: Duration = Duration::from_millis(5);

impl<J: RemoteOperation> Dispatch<J> {
    pub(super) fn new(servers: usize, failover: FailoverPolicy, capacity: usize) -> Self {
        Self {
            failover,
            capacity,
            links: Links::new(servers),
            open: HashMap::new(),
            last: 0,
            unassigned: VecDeque::new(),
            to_hedge: VecDeque::new(),
            slow: VecDeque::new(),
            deadlines: Default::default(),
            latencies: Latencies::default(),
            hedges: MAX_HEDGES,
        }
    }

    /// Submits an operation. An impatient one fails as soon as no server is available.
    pub(super) fn submit(&mut self, now: Instant, job: Arc<J>, impatient: bool) -> Result<u32, Failure> {
        if self.open.len() >= self.capacity {
            return Err(Failure::Full);
        }
        let id = self.new_id();
        self.hedges = (self.hedges + HEDGES_EARNED).min(MAX_HEDGES);
        let open = Open { job, asked: 0, refused_by: 0, refusal: None, impatient, result: None, waker: None };
        self.open.insert(id, open);
        let limit = if impatient { self.failover.stall } else { self.failover.deadline };
        self.deadlines[usize::from(impatient)].push_back((now + limit, id));
        let _ = self.assign(now, id);
        Ok(id)
    }

    /// Returns the result, or registers the waker.
    pub(super) fn poll(&mut self, id: u32, waker: &Waker) -> Poll<Result<Bytes, Failure>> {
        let Some(open) = self.open.get_mut(&id) else { return Poll::Ready(Err(Failure::Closed)) };
        match open.result.take() {
            Some(result) => {
                self.open.remove(&id);
                Poll::Ready(result)
            }
            None => {
                if !open.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    open.waker = Some(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Withdraws the operation.
    pub(super) fn withdraw(&mut self, id: u32) {
        if let Some(open) = self.open.remove(&id) {
            self.links.withdraw(open.asked, id);
        }
    }

    /// Marks a server as available.
    pub(super) fn up(&mut self, now: Instant, server: usize) {
        self.links.up(now, server);
        for id in std::mem::take(&mut self.unassigned) {
            let _ = self.assign(now, id);
        }
    }

    /// Marks a server as lost; its operations go to others.
    pub(super) fn lost(&mut self, now: Instant, server: usize) -> Vec<Waker> {
        let orphans = self.links.down(server);
        let mut wakers = Vec::new();
        for id in orphans {
            if let Some(open) = self.open.get_mut(&id) {
                open.asked &= !bit(server);
                if open.asked == 0 {
                    wakers.extend(self.assign(now, id));
                }
            }
        }
        wakers
    }

    /// Submits this server's requests to its session, as far as there is room, and withdraws those no longer needed.
    pub(super) fn fill(&mut self, now: Instant, server: usize, session: &mut ClientSession<Assignment<J>>) {
        let Some(link) = self.links.get_mut(server) else { return };
        link.withdrawn.drain(..).for_each(|request| session.withdraw(request));
        while session.has_room() {
            let Some(id) = link.queue.pop_front() else { break };
            let Some(open) = self.open.get(&id).filter(|open| open.result.is_none()) else { continue };
            let assignment = Assignment { id, job: Arc::clone(&open.job) };
            // Its deadline is kept here, because several sessions may compute it.
            if let Some(request) = session.submit(now, assignment, None) {
                link.ask(now, id, request);
                self.to_hedge.push_back(Attempt { sent: now, id, server });
            }
        }
    }

    /// Records that a server has sent something.
    pub(super) fn heard(&mut self, now: Instant, server: usize) {
        if let Some(link) = self.links.get_mut(server) {
            link.heard = now;
        }
    }

    /// Records a completed request of this server's session. Returns the waker to call.
    pub(super) fn completed(
        &mut self,
        now: Instant,
        server: usize,
        completion: Completion<Assignment<J>>,
    ) -> Option<Waker> {
        let Completion { operation: Assignment { id, .. }, took, outcome } = completion;
        self.links.get_mut(server)?.answered(now, id, took);
        match outcome {
            Outcome::Computed(bytes) => {
                self.latencies.record(took);
                self.finish(id, Ok(bytes))
            }
            Outcome::Refused(error) => {
                let open = self.open.get_mut(&id)?;
                open.asked &= !bit(server);
                open.refused_by |= bit(server);
                open.refusal = Some(error);
                if open.asked == 0 { self.assign(now, id) } else { None }
            }
            Outcome::Withdrawn { computed } => {
                if computed {
                    self.latencies.record(took);
                }
                None
            }
            Outcome::Expired => None,
        }
    }

    /// Time at which [`tick`](Self::tick) is due.
    pub(super) fn due(&mut self) -> Option<Instant> {
        self.forget_answered();
        let hedge = self.to_hedge.front().map(|attempt| attempt.sent + self.hedge_after());
        let stall = self.slow.front().map(|attempt| attempt.sent + self.failover.stall / 2);
        let deadlines = self.deadlines.iter().filter_map(|queue| queue.front().map(|(due, _)| *due));
        deadlines.chain(hedge).chain(stall).min()
    }

    /// Processes timeouts.
    pub(super) fn tick(&mut self, now: Instant) -> Ticked {
        let mut ticked = Ticked::default();
        self.forget_answered();
        let hedge_after = self.hedge_after();
        while let Some(attempt) = self.to_hedge.pop_front_if(|attempt| attempt.sent + hedge_after <= now) {
            if self.waits(attempt) {
                ticked.hedged += u64::from(self.hedge(now, attempt));
                self.slow.push_back(attempt);
            }
        }
        let overdue_after = self.failover.stall / 2;
        while let Some(attempt) = self.slow.pop_front_if(|attempt| attempt.sent + overdue_after <= now) {
            if self.waits(attempt) {
                self.overdue(now, attempt);
            }
        }
        for queue in 0..self.deadlines.len() {
            while let Some((_, id)) = self.deadlines[queue].pop_front_if(|(due, _)| *due <= now) {
                ticked.wakers.extend(self.expire(id));
            }
        }
        ticked
    }

    /// Returns the servers with requests to send; each is reported once.
    pub(super) fn take_ready(&mut self) -> u64 {
        self.links.take_ready()
    }

    /// Fails all operations, because the client closes.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        let ids: Vec<u32> = self.open.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.finish(id, Err(Failure::Closed))).collect()
    }

    /// Number of queue entries in use, including those of completed operations.
    #[cfg(test)]
    pub(super) fn queued(&self, servers: usize) -> usize {
        let links = (0..servers).filter_map(|server| self.links.get(server));
        self.unassigned.len() + links.map(|link| link.queue.len()).sum::<usize>()
    }

    fn new_id(&mut self) -> u32 {
        loop {
            // Zero is reserved for pings.
            self.last = self.last.wrapping_add(1).max(1);
            if !self.open.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// Assigns an operation to a server, or lets it wait for one, or fails it.
    fn assign(&mut self, now: Instant, id: u32) -> Option<Waker> {
        let open = self.open.get_mut(&id).filter(|open| open.result.is_none())?;
        match self.links.choose(now, open.asked | open.refused_by) {
            Some(server) => {
                open.asked |= bit(server);
                self.enqueue(server, id);
                None
            }
            // A server that is down may hold the key that the others lack.
            None if !open.impatient && !self.links.all_in(open.refused_by) => {
                forget_over(&mut self.unassigned, &self.open);
                self.unassigned.push_back(id);
                None
            }
            None => {
                let failure = open.refusal.map_or(Failure::Unavailable, Failure::Refused);
                self.finish(id, Err(failure))
            }
        }
    }

    fn enqueue(&mut self, server: usize, id: u32) {
        if let Some(link) = self.links.get_mut(server) {
            forget_over(&mut link.queue, &self.open);
        }
        self.links.enqueue(server, id);
    }

    /// Sends a request to a second server, if there is one and the budget allows it.
    fn hedge(&mut self, now: Instant, attempt: Attempt) -> bool {
        let allowed = self.failover.hedge && self.hedges >= 1.0;
        let done = allowed && self.ask_another(now, attempt.id);
        if done {
            self.hedges -= 1.0;
        }
        done
    }

    fn ask_another(&mut self, now: Instant, id: u32) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        // At most two at the same time.
        if open.asked.count_ones() > 1 {
            return false;
        }
        let Some(server) = self.links.choose(now, open.asked | open.refused_by) else { return false };
        open.asked |= bit(server);
        self.enqueue(server, id);
        true
    }

    /// Handles an attempt that exceeds the usual maximum. If the server is entirely silent, and its session now pings
    /// it, all its operations go to others, outside the budget.
    fn overdue(&mut self, now: Instant, attempt: Attempt) {
        let limit = self.failover.stall / 2;
        if self.links.get(attempt.server).is_some_and(|link| link.silence(now) >= limit) {
            self.ask_another(now, attempt.id);
        } else {
            self.hedge(now, attempt);
        }
    }

    fn expire(&mut self, id: u32) -> Option<Waker> {
        let open = self.open.get(&id).filter(|open| open.result.is_none())?;
        let unasked = open.refusal.map_or(Failure::Unavailable, Failure::Refused);
        let failure = if open.asked == 0 { unasked } else { Failure::Deadline };
        self.finish(id, Err(failure))
    }

    /// Sets the result, unless there is one. Withdraws the requests of other servers.
    fn finish(&mut self, id: u32, result: Result<Bytes, Failure>) -> Option<Waker> {
        let open = self.open.get_mut(&id).filter(|open| open.result.is_none())?;
        open.result = Some(result);
        let asked = std::mem::take(&mut open.asked);
        let waker = open.waker.take();
        self.links.withdraw(asked, id);
        waker
    }

    fn waits(&self, attempt: Attempt) -> bool {
        let sent = self.links.get(attempt.server).and_then(|link| link.sent.get(&attempt.id));
        sent.is_some_and(|sent| sent.at == attempt.sent)
            && self.open.get(&attempt.id).is_some_and(|open| open.result.is_none())
    }

    /// Drops attempts and deadlines of completed operations.
    fn forget_answered(&mut self) {
        while self.to_hedge.front().is_some_and(|attempt| !self.waits(*attempt)) {
            self.to_hedge.pop_front();
        }
        while self.slow.front().is_some_and(|attempt| !self.waits(*attempt)) {
            self.slow.pop_front();
        }
        let open = &self.open;
        let over = |id: &u32| open.get(id).is_none_or(|open| open.result.is_some());
        for queue in &mut self.deadlines {
            while queue.pop_front_if(|(_, id)| over(id)).is_some() {}
        }
    }

    fn hedge_after(&self) -> Duration {
        const SHARE: f64 = 0.99;
        let usual = self.latencies.quantile(SHARE).unwrap_or(FIRST_HEDGE);
        usual.clamp(SOONEST_HEDGE, (self.failover.stall / 2).max(SOONEST_HEDGE))
    }
}

impl<J: RemoteOperation> RemoteOperation for Assignment<J> {
    fn request(&self, id: u32) -> Request<'_> {
        self.job.request(id)
    }

    fn is_secret(&self) -> bool {
        self.job.is_secret()
    }

    fn accepts(&self, result: &[u8]) -> bool {
        self.job.accepts(result)
    }
}

/// Drops completed operations from a queue when they outnumber the others: while no server takes requests, operations
/// end without passing through the queue.
fn forget_over<J>(queue: &mut VecDeque<u32>, open: &HashMap<u32, Open<J>>) {
    const FEW: usize = 64;
    if queue.len() > 2 * open.len() + FEW {
        queue.retain(|id| open.get(id).is_some_and(|open| open.result.is_none()));
    }
}

fn bit(server: usize) -> u64 {
    1 << server
}
