//! Which server computes which operation, and what happens when one does not answer: a state machine without I/O, one for
//! each event loop. Time is an argument.

use super::{latency::Latencies, link::Links, settings::Patience};
use crate::wire::{ErrorCode, Violation, WINDOW};
use quadrille_engine::OperationError;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No server can be reached.
    #[error("no key server can be reached")]
    Unavailable,
    /// None has answered in time.
    #[error("no key server has answered in time")]
    Deadline,
    /// Every server that could be asked has refused; this is what the last one said.
    #[error("the key server has refused: {0}")]
    Refused(ErrorCode),
    /// Too many operations are open.
    #[error("too many operations wait for key servers")]
    Full,
    /// The client has been closed.
    #[error("the client of the key servers has been closed")]
    Closed,
}

/// Operations that fit no key servers could compute fail before they are sent.
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

/// What a server said, judged.
pub(super) enum Reply {
    Good(Bytes),
    Refused(ErrorCode),
}

/// What is to be sent to a server.
pub(super) enum ToSend<J> {
    Request(u32, Arc<J>),
    Withdraw(u32),
}

/// What a look at the clock has brought.
#[derive(Default)]
pub(super) struct Ticked {
    pub(super) wakers: Vec<Waker>,
    /// Servers that have said nothing for long though something was asked: ask them whether they are still there.
    pub(super) suspects: Vec<usize>,
    pub(super) hedged: u64,
}

/// The operations of one event loop.
pub(super) struct Dispatch<J> {
    patience: Patience,
    capacity: usize,
    links: Links,
    open: HashMap<u32, Open<J>>,
    last: u32,
    /// Operations for which there is no server now.
    homeless: VecDeque<u32>,
    /// When each attempt was sent, in this order; for hedging, and after that for the stall limit.
    young: VecDeque<Attempt>,
    old: VecDeque<Attempt>,
    /// In the order of their ends: patient operations, impatient ones.
    deadlines: [VecDeque<(Instant, u32)>; 2],
    latencies: Latencies,
    /// Second requests that may still be made: a tenth of the operations, so that servers that are slow because they have
    /// too much to do do not get twice as much.
    hedges: f32,
}

struct Open<J> {
    job: Arc<J>,
    /// Servers that have it or will get it.
    asked: u64,
    /// Servers that have refused it.
    refused_by: u64,
    refusal: Option<ErrorCode>,
    /// There is another way: rather fail at once than wait for a server to come back.
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
const MOST_HEDGES: f32 = 32.0;
/// Before enough is known of the servers, and never sooner than the second.
const FIRST_HEDGE: Duration = Duration::from_millis(100);
const SOONEST_HEDGE: Duration = Duration::from_millis(5);

impl<J> Dispatch<J> {
    pub(super) fn new(servers: usize, patience: Patience, capacity: usize) -> Self {
        Self {
            patience,
            capacity,
            links: Links::new(servers),
            open: HashMap::new(),
            last: 0,
            homeless: VecDeque::new(),
            young: VecDeque::new(),
            old: VecDeque::new(),
            deadlines: Default::default(),
            latencies: Latencies::default(),
            hedges: MOST_HEDGES,
        }
    }

    /// Takes an operation. An impatient one fails as soon as there is no server for it.
    pub(super) fn submit(&mut self, now: Instant, job: Arc<J>, impatient: bool) -> Result<u32, Failure> {
        if self.open.len() >= self.capacity {
            return Err(Failure::Full);
        }
        let id = self.new_id();
        self.hedges = (self.hedges + HEDGES_EARNED).min(MOST_HEDGES);
        let open = Open { job, asked: 0, refused_by: 0, refusal: None, impatient, result: None, waker: None };
        self.open.insert(id, open);
        let limit = if impatient { self.patience.stall } else { self.patience.deadline };
        self.deadlines[usize::from(impatient)].push_back((now + limit, id));
        let _ = self.place(now, id);
        Ok(id)
    }

    /// The result, or a promise to wake.
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

    /// Nobody waits for this operation any more.
    pub(super) fn withdraw(&mut self, id: u32) {
        if let Some(open) = self.open.remove(&id) {
            self.links.withdraw(open.asked, id);
        }
    }

    /// A server can be asked.
    pub(super) fn up(&mut self, now: Instant, server: usize) {
        self.links.up(now, server);
        for id in std::mem::take(&mut self.homeless) {
            let _ = self.place(now, id);
        }
    }

    /// A server cannot be asked any more; what it had goes to others.
    pub(super) fn lost(&mut self, now: Instant, server: usize) -> Vec<Waker> {
        let orphans = self.links.down(server);
        let mut wakers = Vec::new();
        for id in orphans {
            if let Some(open) = self.open.get_mut(&id) {
                open.asked &= !bit(server);
                if open.asked == 0 {
                    wakers.extend(self.place(now, id));
                }
            }
        }
        wakers
    }

    /// What to send to this server next.
    pub(super) fn next_to_send(&mut self, now: Instant, server: usize) -> Option<ToSend<J>> {
        let link = self.links.get_mut(server)?;
        if let Some(id) = link.withdrawn.pop() {
            return Some(ToSend::Withdraw(id));
        }
        while link.sent.len() < WINDOW {
            let id = link.queue.pop_front()?;
            if let Some(open) = self.open.get(&id) {
                link.ask(now, id);
                self.young.push_back(Attempt { sent: now, id, server });
                return Some(ToSend::Request(id, Arc::clone(&open.job)));
            }
        }
        None
    }

    /// A server has said something.
    pub(super) fn heard(&mut self, now: Instant, server: usize) {
        if let Some(link) = self.links.get_mut(server) {
            link.heard = now;
        }
    }

    /// The operation that a reply of this server is for; `None` if nobody waits for it any more.
    pub(super) fn asked(&self, server: usize, id: u32) -> Result<Option<Arc<J>>, Violation> {
        let sent = self.links.get(server).is_some_and(|link| link.sent.contains_key(&id));
        if !sent {
            return Err(Violation::UnknownReply(id));
        }
        let waiting = self.open.get(&id).filter(|open| open.result.is_none());
        Ok(waiting.map(|open| Arc::clone(&open.job)))
    }

    /// A server has answered a request that it had. Gives back how long it took, and whom to wake.
    pub(super) fn replied(
        &mut self,
        now: Instant,
        server: usize,
        id: u32,
        reply: Reply,
    ) -> (Duration, Option<Waker>) {
        let Some(link) = self.links.get_mut(server) else { return (Duration::ZERO, None) };
        let took = link.answered(now, id);
        match reply {
            Reply::Good(bytes) => {
                self.latencies.record(took);
                (took, self.finish(id, Ok(bytes)))
            }
            Reply::Refused(error) => {
                let Some(open) = self.open.get_mut(&id) else { return (took, None) };
                open.asked &= !bit(server);
                open.refused_by |= bit(server);
                open.refusal = Some(error);
                let waker = if open.asked == 0 { self.place(now, id) } else { None };
                (took, waker)
            }
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn due(&mut self) -> Option<Instant> {
        self.forget_answered();
        let hedge = self.young.front().map(|attempt| attempt.sent + self.hedge_after());
        let stall = self.old.front().map(|attempt| attempt.sent + self.patience.stall / 2);
        let deadlines = self.deadlines.iter().filter_map(|queue| queue.front().map(|(due, _)| *due));
        deadlines.chain(hedge).chain(stall).min()
    }

    /// Looks at the clock.
    pub(super) fn tick(&mut self, now: Instant) -> Ticked {
        let mut ticked = Ticked::default();
        self.forget_answered();
        let hedge_after = self.hedge_after();
        while let Some(attempt) = self.young.pop_front_if(|attempt| attempt.sent + hedge_after <= now) {
            if self.waits(attempt) {
                ticked.hedged += u64::from(self.hedge(now, attempt));
                self.old.push_back(attempt);
            }
        }
        let overdue_after = self.patience.stall / 2;
        while let Some(attempt) = self.old.pop_front_if(|attempt| attempt.sent + overdue_after <= now) {
            if self.waits(attempt) {
                self.overdue(now, attempt, &mut ticked);
            }
        }
        for queue in 0..self.deadlines.len() {
            while let Some((_, id)) = self.deadlines[queue].pop_front_if(|(due, _)| *due <= now) {
                ticked.wakers.extend(self.expire(id));
            }
        }
        ticked
    }

    /// Servers with something to send, to be asked for it; each is told once.
    pub(super) fn take_ready(&mut self) -> u64 {
        self.links.take_ready()
    }

    /// Everything fails, because the client closes.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        let ids: Vec<u32> = self.open.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.finish(id, Err(Failure::Closed))).collect()
    }

    fn new_id(&mut self) -> u32 {
        loop {
            // Zero is for pings.
            self.last = self.last.wrapping_add(1).max(1);
            if !self.open.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// Gives an operation that nobody has to a server, or lets it wait for one, or fails it.
    fn place(&mut self, now: Instant, id: u32) -> Option<Waker> {
        let open = self.open.get_mut(&id).filter(|open| open.result.is_none())?;
        match self.links.choose(now, open.asked | open.refused_by) {
            Some(server) => {
                open.asked |= bit(server);
                self.links.enqueue(server, id);
                None
            }
            // One that is not there now may know the key that the others do not.
            None if !open.impatient && !self.links.all_in(open.refused_by) => {
                self.homeless.push_back(id);
                None
            }
            None => {
                let failure = open.refusal.map_or(Failure::Unavailable, Failure::Refused);
                self.finish(id, Err(failure))
            }
        }
    }

    /// Asks a second server, if there is one and few enough were asked twice.
    fn hedge(&mut self, now: Instant, attempt: Attempt) -> bool {
        let allowed = self.patience.hedge && self.hedges >= 1.0;
        let done = allowed && self.ask_another(now, attempt.id);
        if done {
            self.hedges -= 1.0;
        }
        done
    }

    fn ask_another(&mut self, now: Instant, id: u32) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        // Two at the same time are enough.
        if open.asked.count_ones() > 1 {
            return false;
        }
        let Some(server) = self.links.choose(now, open.asked | open.refused_by) else { return false };
        open.asked |= bit(server);
        self.links.enqueue(server, id);
        true
    }

    /// An attempt has lasted longer than any should. Of a server that says nothing at all, all operations go to others
    /// without counting.
    fn overdue(&mut self, now: Instant, attempt: Attempt, ticked: &mut Ticked) {
        let limit = self.patience.stall / 2;
        if self.links.get(attempt.server).is_some_and(|link| link.silence(now) >= limit) {
            if !ticked.suspects.contains(&attempt.server) {
                ticked.suspects.push(attempt.server);
            }
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

    /// Sets the result, unless there is one. Servers that still work on it may stop.
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
        sent == Some(&attempt.sent) && self.open.get(&attempt.id).is_some_and(|open| open.result.is_none())
    }

    /// Attempts and deadlines of operations that have been answered are nobody's business.
    fn forget_answered(&mut self) {
        while self.young.front().is_some_and(|attempt| !self.waits(*attempt)) {
            self.young.pop_front();
        }
        while self.old.front().is_some_and(|attempt| !self.waits(*attempt)) {
            self.old.pop_front();
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
        usual.clamp(SOONEST_HEDGE, (self.patience.stall / 2).max(SOONEST_HEDGE))
    }
}

fn bit(server: usize) -> u64 {
    1 << server
}
