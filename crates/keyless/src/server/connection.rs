//! One client's connection: accepts requests within the client's limits, computes them, and replies in any order.

use super::{
    Shared,
    clients::Client,
    close_reason::CloseReason,
    completions::{Completions, Done},
    generated::WantedKey,
    generator::{KeyChange, KeyChanges, Task},
    handshake::{IdentifiedClient, VerifiedCertificates},
    key_origin::Generated,
    keys::{GENERATED, Keys, StoredKey},
    metrics::{self, KeyCounters},
    policy::{Grant, OperationKind},
};
use crate::{
    io::Stream,
    session::{ReceivedRequest, ServerEvent, ServerSession},
    wire::{ErrorCode, Ski, WINDOW, opcode},
};
use ::metrics::Histogram;
use quadrille_config::model::key_server::Policy;
use quadrille_engine::{BatchFlusher, OperationError};
use std::{
    collections::{HashMap, VecDeque},
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{io::ReadBuf, sync::watch, time::Sleep};

const READ_BUFFER: usize = 32 * 1024;
/// Limit of unread replies; above it, no more requests are accepted.
const MAX_UNSENT: usize = 256 * 1024;
/// Operations that are submitted before other connections get their turn.
const MAX_SUBMITTED_PER_TURN: usize = 64;
/// Time limit for the rest of a message, and for reading replies.
const STUCK_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Connection {
    shared: Arc<Shared>,
    client: Arc<Client>,
    policy: Arc<Policy>,
    grant: Grant,
    identity: super::Identity,
    /// `None` for users of this machine.
    certificates: Option<VerifiedCertificates>,
    stream: Stream,
    session: ServerSession,
    /// Requests that wait for their share of the engine.
    waiting: VecDeque<ReceivedRequest>,
    running: Completions<Running>,
    /// Keys that are being generated or removed.
    key_changes: KeyChanges,
    /// Whether it counts as busy among the clients.
    busy: bool,
    idle: Duration,
    last_progress: Instant,
    alarm: Pin<Box<Sleep>>,
    draining: watch::Receiver<bool>,
    counters: HashMap<(Ski, OperationKind), Arc<KeyCounters>>,
    seconds: Histogram,
    buffer: Vec<u8>,
}

struct Running {
    began: Instant,
    kind: OperationKind,
    counters: Arc<KeyCounters>,
}

impl Connection {
    /// Returns `None` if the policy does not name this client.
    pub(super) fn new(
        shared: Arc<Shared>,
        identified: IdentifiedClient,
        client: Arc<Client>,
        draining: watch::Receiver<bool>,
    ) -> Option<Self> {
        let IdentifiedClient { stream, mode, identity, idle, certificates } = identified;
        let policy = shared.policy.load_full();
        let grant = Grant::new(&policy, &identity)?;
        Some(Self {
            shared,
            client,
            policy,
            grant,
            identity,
            certificates,
            stream,
            session: ServerSession::new(mode),
            waiting: VecDeque::new(),
            running: Completions::new(),
            key_changes: KeyChanges::default(),
            busy: false,
            idle,
            last_progress: Instant::now(),
            alarm: Box::pin(tokio::time::sleep(STUCK_TIMEOUT)),
            draining,
            counters: HashMap::new(),
            seconds: metrics::seconds(),
            buffer: vec![0; READ_BUFFER],
        })
    }

    /// Serves the client until the connection ends.
    pub(super) async fn serve(mut self) -> CloseReason {
        let mut draining = self.draining.clone();
        let mut drain = Box::pin(async move {
            let _ = draining.wait_for(|draining| *draining).await;
        });
        let mut drains = false;
        // Changes are applied by the next poll, and must not wait for the client's next request.
        let mut changes = self.shared.changes.subscribe();
        loop {
            let polled = poll_fn(|context| {
                drains = drains || drain.as_mut().poll(context).is_ready();
                self.poll(context, drains)
            });
            tokio::select! {
                biased;
                Ok(()) = changes.changed() => {}
                reason = polled => return reason,
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>, drains: bool) -> Poll<CloseReason> {
        match self.poll_all(context, drains) {
            Ok(()) => Poll::Pending,
            Err(ended) => {
                // Sends earlier replies, and the version error.
                let _ = self.poll_write(context);
                Poll::Ready(ended)
            }
        }
    }

    fn poll_all(&mut self, context: &mut Context<'_>, drains: bool) -> Result<(), CloseReason> {
        self.apply_changes()?;
        let mut submitted = 0;
        loop {
            for done in self.running.take_ready(context) {
                self.answer(done);
            }
            while let Poll::Ready(done) = self.key_changes.poll(context) {
                self.answer_change(done);
            }
            submitted += self.submit_waiting();
            let read = if !drains && self.has_room() { self.poll_read(context)? } else { Poll::Pending };
            if self.poll_write(context)?.is_pending() && read.is_pending() {
                break;
            }
            if submitted >= MAX_SUBMITTED_PER_TURN {
                context.waker().wake_by_ref();
                break;
            }
        }
        self.update_busy();
        if drains && self.session.unanswered() == 0 && self.session.writer().is_empty() {
            return Err(CloseReason::Drained);
        }
        self.poll_alarm(context)
    }

    /// Applies a changed policy, and changed CAs and revocation lists, to open connections.
    fn apply_changes(&mut self) -> Result<(), CloseReason> {
        if let Some(certificates) = &mut self.certificates {
            certificates.apply_changes(&self.shared).map_err(CloseReason::NotAccepted)?;
        }
        let policy = self.shared.policy.load();
        if !Arc::ptr_eq(&policy, &self.policy) {
            self.grant = Grant::new(&policy, &self.identity).ok_or(CloseReason::NotNamed)?;
            self.policy = Arc::clone(&policy);
        }
        Ok(())
    }

    fn has_room(&mut self) -> bool {
        let unanswered = self.session.unanswered();
        let alone = unanswered == 0;
        unanswered < WINDOW
            && self.session.writer().len() < MAX_UNSENT
            && (alone || self.client.has_room(&self.grant.limits))
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, CloseReason> {
        // Messages read before there was room are processed first.
        if self.take_requests()? {
            return Ok(Poll::Ready(()));
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut read = ReadBuf::new(&mut buffer);
        let polled = self.stream.as_mut().poll_read(context, &mut read)?;
        let count = read.filled().len();
        match polled {
            Poll::Pending => {}
            Poll::Ready(()) if count == 0 => return Err(CloseReason::Closed),
            Poll::Ready(()) => {
                self.last_progress = Instant::now();
                self.session.receive(&buffer[..count]);
            }
        }
        self.buffer = buffer;
        if polled.is_ready() {
            self.take_requests()?;
        }
        Ok(polled.map(|()| ()))
    }

    /// Accepts received requests while there is room. Returns whether there were any.
    fn take_requests(&mut self) -> Result<bool, CloseReason> {
        let mut any = false;
        while self.has_room() {
            match self.session.next_event()? {
                None => break,
                Some(ServerEvent::Request(request)) => {
                    self.client.taken();
                    self.waiting.push_back(request);
                }
                Some(ServerEvent::Answered) => {}
                Some(ServerEvent::Withdraw(id)) => self.withdraw(id),
            }
            any = true;
        }
        Ok(any)
    }

    /// Submits waiting requests to the engine, within this connection's share.
    fn submit_waiting(&mut self) -> usize {
        if self.waiting.is_empty() {
            return 0;
        }
        self.update_busy();
        let share = self.shared.clients.shares.per_connection(&self.client.busy);
        let mut submitted = 0;
        while self.running.in_engine() < share && submitted < MAX_SUBMITTED_PER_TURN {
            let Some(request) = self.waiting.pop_front() else { break };
            submitted += 1;
            if let Err((error, reason)) = self.submit(&request) {
                self.refuse(&request, error, reason);
            }
        }
        submitted
    }

    /// Submits a request, or returns the error for the client, and the reason for the log.
    fn submit(&mut self, request: &ReceivedRequest) -> Result<(), (ErrorCode, &'static str)> {
        match request.opcode {
            opcode::GENERATE => self.submit_generation(request),
            opcode::REMOVE => self.submit_removal(request),
            _ => self.submit_operation(request),
        }
    }

    fn submit_generation(&mut self, request: &ReceivedRequest) -> Result<(), (ErrorCode, &'static str)> {
        let (key_type, reference) =
            opcode::read_generation(&request.payload).map_err(|error| (error, "input"))?;
        if !self.grant.allows(OperationKind::Generate, &[reference]) {
            return Err((ErrorCode::Denied, "denied"));
        }
        let generated = Generated { client: self.client.name.clone(), reference: reference.to_owned() };
        let limit = self.grant.limits.generated_keys;
        self.change_keys(request.id, Task::Generate(WantedKey { key_type, generated, limit }))
    }

    /// Submits the removal of a key that was generated for this client; others cannot be removed.
    fn submit_removal(&mut self, request: &ReceivedRequest) -> Result<(), (ErrorCode, &'static str)> {
        let keys = self.shared.keys.load_full();
        let stored = self.find(&keys, request)?;
        let generated = stored.generated.as_ref();
        if !generated.is_some_and(|key| self.grant.may_remove(&self.identity, key, &stored.names())) {
            return Err((ErrorCode::Denied, "denied"));
        }
        self.change_keys(request.id, Task::Remove(stored.ski))
    }

    fn change_keys(&mut self, id: u32, task: Task) -> Result<(), (ErrorCode, &'static str)> {
        if !self.client.within_rate(Instant::now(), &self.grant.limits) {
            return Err((ErrorCode::Limited, "rate"));
        }
        self.key_changes.submit(&self.shared.generator, id, &self.client.name, task)
    }

    fn answer_change(&mut self, (id, result): KeyChange) {
        let counters = KeyCounters::new(&self.client.name, GENERATED, OperationKind::Generate.name());
        if result.is_ok() {
            counters.ok.increment(1);
        } else {
            counters.failed.increment(1);
        }
        self.reply(id, result.as_deref().map_err(|error| *error));
    }

    /// Finds the key of a request, if the client may learn that it exists.
    fn find<'k>(
        &self,
        keys: &'k Keys,
        request: &ReceivedRequest,
    ) -> Result<&'k Arc<StoredKey>, (ErrorCode, &'static str)> {
        let unknown = if request.key.ski.is_none() && request.key.modulus.is_none() {
            ErrorCode::Internal
        } else {
            ErrorCode::KeyNotFound
        };
        let stored = keys.find(&request.key).ok_or((unknown, "no_key"))?;
        if !self.grant.knows(&stored.names()) {
            return Err((ErrorCode::KeyNotFound, "denied"));
        }
        Ok(stored)
    }

    fn submit_operation(&mut self, request: &ReceivedRequest) -> Result<(), (ErrorCode, &'static str)> {
        let keys = self.shared.keys.load();
        let stored = self.find(&keys, request)?;
        let kind =
            if request.opcode == opcode::RSA_DECRYPT { OperationKind::Decrypt } else { OperationKind::Sign };
        let operation =
            opcode::operation(request.opcode, &request.payload).map_err(|error| (error, "opcode"))?;
        if !self.grant.allows(kind, &stored.names()) {
            return Err((ErrorCode::Denied, "denied"));
        }
        let now = Instant::now();
        if !self.client.within_rate(now, &self.grant.limits) {
            return Err((ErrorCode::Limited, "rate"));
        }
        let completion = self.shared.engine.enqueue(&stored.key, operation).map_err(|error| match error {
            OperationError::WrongKeyType => (ErrorCode::UnexpectedOpcode, "input"),
            OperationError::InvalidInput => (ErrorCode::Format, "input"),
            OperationError::QueueFull => (ErrorCode::Limited, "queue_full"),
            OperationError::Stopped | OperationError::Failed => (ErrorCode::Internal, "failed"),
        })?;
        if completion.is_queued() {
            BatchFlusher::schedule(&self.shared.engine);
        }
        let new = || Arc::new(KeyCounters::new(&self.client.name, stored.label(), kind.name()));
        let counters = Arc::clone(self.counters.entry((stored.ski, kind)).or_insert_with(new));
        if let Some(done) = self.running.push(request.id, completion, Running { began: now, kind, counters })
        {
            self.answer(done);
        }
        Ok(())
    }

    fn refuse(&mut self, request: &ReceivedRequest, error: ErrorCode, reason: &'static str) {
        metrics::refused(&self.client.name, reason);
        let key = request.key.ski.map(|ski| ski.to_string()).unwrap_or_default();
        self.client.audit.refused(Instant::now(), reason, opcode::name(request.opcode), &key);
        self.reply(request.id, Err(error));
    }

    fn answer(&mut self, (id, result, running): Done<Running>) {
        self.seconds.record(running.began.elapsed());
        match result {
            Ok(outcome) => {
                running.counters.ok.increment(1);
                if running.kind == OperationKind::Decrypt {
                    self.session.wipe();
                }
                self.reply(id, Ok(&outcome.bytes));
            }
            Err(_) => {
                running.counters.failed.increment(1);
                self.reply(id, Err(ErrorCode::Crypto));
            }
        }
    }

    /// Key changes cannot be withdrawn; their reply follows when they are done.
    fn withdraw(&mut self, id: u32) {
        if self.key_changes.has(id) {
            return;
        }
        if let Some(running) = self.running.withdraw(id) {
            running.counters.withdrawn.increment(1);
        } else {
            self.waiting.retain(|request| request.id != id);
        }
        self.reply(id, Err(ErrorCode::Withdrawn));
    }

    fn reply(&mut self, id: u32, result: Result<&[u8], ErrorCode>) {
        self.session.reply(id, result);
        self.client.answered(1);
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, CloseReason> {
        if self.session.writer().is_empty() {
            return Ok(Poll::Pending);
        }
        let unsent = self.session.writer().unsent();
        let count = match self.stream.as_mut().poll_write(context, unsent)? {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(0) => return Err(CloseReason::Closed),
            Poll::Ready(count) => count,
        };
        self.session.writer().advance(count);
        self.last_progress = Instant::now();
        Ok(Poll::Ready(()))
    }

    /// Clients with pending work share the engine.
    fn update_busy(&mut self) {
        let busy = !self.waiting.is_empty() || self.running.len() > 0;
        if busy != self.busy {
            self.busy = busy;
            let shares = &self.shared.clients.shares;
            if busy { shares.begin(&self.client.busy) } else { shares.end(&self.client.busy) }
        }
    }

    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        loop {
            let unread = !self.session.writer().is_empty();
            let stuck = unread || self.session.unanswered() == 0 && self.session.has_partial_message();
            let due = self.last_progress + if stuck { STUCK_TIMEOUT } else { self.idle };
            let due = self.certificates.iter().map(|known| known.expiry).fold(due, Instant::min);
            if self.alarm.is_elapsed() || self.alarm.deadline() > due.into() {
                self.alarm.as_mut().reset(due.into());
            }
            if self.alarm.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            let now = Instant::now();
            if let Some(certificates) = self.certificates.as_mut().filter(|known| known.expiry <= now) {
                certificates.verify_again().map_err(CloseReason::NotAccepted)?;
                continue;
            }
            if due <= now {
                match (stuck, self.session.unanswered()) {
                    (true, _) => return Err(CloseReason::Stuck),
                    (false, 0) => return Err(CloseReason::Idle),
                    // Its operations take long.
                    (false, _) => self.last_progress = now,
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.busy {
            self.shared.clients.shares.end(&self.client.busy);
        }
        self.client.answered(self.session.unanswered());
    }
}
