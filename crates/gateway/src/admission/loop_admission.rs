//! Interface of admission control for event loops and handshakes.

use super::{
    Admission, Cost, PendingOperation, Refusal,
    controller::{Admitted, Arrival, Door, Work},
    network,
    step_queue::{ClientNumber, Given, Precedence, StepQueue},
};
use quadrille_engine::{KeyType, Priority};
use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Interval between measurements of an event loop's delay.
const MEASURED_EVERY: Duration = Duration::from_millis(10);
/// Delay from which on handshakes take steps.
const BUSY: Duration = Duration::from_millis(2);

/// Admission state of an event loop.
pub(crate) struct LoopAdmission {
    admission: Arc<Admission>,
    index: usize,
    /// Time of the last delay measurement, in nanoseconds since the epoch of [`Admission`].
    measured: AtomicU64,
    /// Whether handshakes take steps.
    busy: AtomicBool,
    steps: StepQueue,
}

/// Admission state of a handshake.
pub(crate) struct Visit {
    event_loop: Arc<LoopAdmission>,
    client: u64,
    accepted: Instant,
    /// Deadline; without one the handshake continues, however long it waits.
    deadline: Option<Duration>,
    decision: OnceLock<Decision>,
    /// Second decision, for a handshake that offered to resume a session and did not.
    reconsidered: OnceLock<Result<Admitted, Refusal>>,
    /// Whether its private-key operation is in progress.
    computing: AtomicBool,
}

/// Decision made when the ClientHello was read.
struct Decision {
    outcome: Result<Admitted, Refusal>,
    /// The certificate's name.
    name: u64,
    work: Work,
}

impl LoopAdmission {
    pub(crate) fn new(admission: &Arc<Admission>, index: usize) -> Arc<Self> {
        let (measured, busy, steps) = (AtomicU64::new(0), AtomicBool::new(false), StepQueue::default());
        Arc::new(Self { admission: Arc::clone(admission), index, measured, busy, steps })
    }

    /// Records an accepted connection. At intervals, measures the delay of ready tasks.
    pub(crate) fn measure(self: &Arc<Self>) {
        let began = self.admission.now();
        let began_nanos = u64::try_from(began.as_nanos()).unwrap_or(u64::MAX);
        let every = u64::try_from(MEASURED_EVERY.as_nanos()).unwrap_or(u64::MAX);
        if began_nanos.saturating_sub(self.measured.load(Ordering::Relaxed)) < every {
            return;
        }
        self.measured.store(began_nanos, Ordering::Relaxed);
        let this = Arc::clone(self);
        drop(tokio::spawn(async move {
            // Runs after all tasks that are ready now.
            tokio::task::yield_now().await;
            let now = this.admission.now();
            let delay = now.saturating_sub(began);
            this.busy.store(delay >= BUSY || this.steps.has_handshakes(), Ordering::Relaxed);
            this.admission.state().controller.ran(this.index, delay, now);
        }));
    }

    /// Returns whether there is a standing queue, so that [`Self::rejects`] has to be consulted.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.admission.is_overloaded()
    }

    /// Returns whether to close a connection from this address before the event loop serves it. `full` inspects the
    /// data received: for a full handshake, it returns whether this will wait for a compute thread.
    pub(crate) fn rejects(&self, address: IpAddr, full: impl FnOnce() -> Option<bool>) -> bool {
        let (client, now) = (self.admission.client(address), self.admission.now());
        let mut state = self.admission.state();
        let door = state.controller.door(client, self.index, now);
        self.admission.note_overload(state.controller.is_overloaded(now));
        match door {
            Door::Open => return false,
            Door::Closed => {
                self.admission.note_shut_out(state.shut_out.count_rejection(network::of(address), now));
                self.admission.refused(state, Refusal::ClientShare, now);
            }
            Door::ForSessions | Door::ForSessionsAndKeysInPlace => {
                // Released before `full`, which is a system call.
                drop(state);
                match full() {
                    Some(waits_for_compute) if waits_for_compute || door == Door::ForSessions => {}
                    _ => return false,
                }
                let mut state = self.admission.state();
                let refusal = state.controller.refuse_at_door(client, self.index, now);
                self.admission.refused(state, refusal, now);
            }
        }
        true
    }

    /// Returns a version number that changes with the set of [`shut_out`](Self::shut_out) networks.
    pub(crate) fn shut_out_version(&self) -> u64 {
        self.admission.shut_out_version.load(Ordering::Relaxed)
    }

    /// Returns the networks that flood, whose connections are dropped without looking at their data.
    pub(crate) fn shut_out(&self) -> Vec<IpAddr> {
        let mut state = self.admission.state();
        self.admission.note_shut_out(state.shut_out.expire(self.admission.now()));
        state.shut_out.networks().collect()
    }

    /// Creates the state of a handshake. Its deadline, if any, is counted from the accept.
    pub(crate) fn visit(
        self: &Arc<Self>,
        client: IpAddr,
        accepted: Instant,
        deadline: Option<Duration>,
    ) -> Arc<Visit> {
        let (event_loop, client) = (Arc::clone(self), self.admission.client(client));
        let (decision, reconsidered) = (OnceLock::new(), OnceLock::new());
        let computing = AtomicBool::new(false);
        Arc::new(Visit { event_loop, client, accepted, deadline, decision, reconsidered, computing })
    }

    /// Records how long the handshakes that got steps have waited.
    pub(super) fn ran(&self, given: Given) {
        let Given { first, others } = given;
        if first.is_none() && others.is_none() {
            return;
        }
        let now = self.now();
        let mut state = self.admission.state();
        if let Some(since) = first {
            state.controller.ran(self.index, now.saturating_sub(since), now);
        }
        if let Some(since) = others {
            state.controller.ran_behind(self.index, now.saturating_sub(since), now);
        }
    }

    pub(super) fn steps(&self) -> &StepQueue {
        &self.steps
    }

    pub(super) fn now(&self) -> Duration {
        self.admission.now()
    }

    /// Returns the number of the client with this address among those that share the steps of transfers.
    pub(super) fn client_number(&self, address: IpAddr) -> ClientNumber {
        ClientNumber::of_hash(self.admission.client(address))
    }
}

impl Visit {
    /// Decides whether the handshake continues; `name` is the certificate's name. `cost` receives whether a closer
    /// look is worthwhile.
    pub(crate) fn arrive(&self, name: &str, cost: impl FnOnce(bool) -> Cost) -> Result<(), Refusal> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let admission = self.admission();
        let (name, work) = (admission.name(name), cost(admission.is_overloaded()).into());
        let outcome = self.decide(deadline, name, work);
        let _ = self.decision.set(Decision { outcome, name, work });
        outcome.map(drop)
    }

    /// Checks admission before a private-key operation of this type is submitted. A handshake admitted for resumption
    /// is decided again: a valid ticket does not show that it is for this name, nor that the client allows its use.
    pub(crate) fn needs_key(&self, key_type: KeyType, queued: bool) -> Result<(), Refusal> {
        let (Some(deadline), Some(Decision { outcome: Ok(_), name, work: Work::Resumed })) =
            (self.deadline, self.decision.get())
        else {
            return Ok(());
        };
        let outcome = self.decide(deadline, *name, Cost::Full { key_type, queued }.into());
        let _ = self.reconsidered.set(outcome);
        outcome.map(drop)
    }

    fn decide(&self, deadline: Duration, name: u64, work: Work) -> Result<Admitted, Refusal> {
        let admission = self.admission();
        let (now, age) = (admission.now(), self.accepted.elapsed());
        let (client, event_loop) = (self.client, self.event_loop.index);
        let arrival = Arrival { client, name, event_loop, age, deadline, work };
        let mut state = admission.state();
        let decision = state.controller.arrive(&arrival, now);
        admission.note_overload(state.controller.is_overloaded(now));
        if let Err(refusal) = decision {
            admission.refused(state, refusal, now);
        }
        decision
    }

    fn outcome(&self) -> Option<Result<Admitted, Refusal>> {
        self.reconsidered.get().copied().or_else(|| Some(self.decision.get()?.outcome))
    }

    /// Returns with which precedence the handshake waits for a step. `None` if it runs without: the event loop is not
    /// busy, or it was rejected and is about to end. Known clients and those that resume have precedence.
    pub(super) fn yields(&self) -> Option<Precedence> {
        let admission = self.admission();
        let busy = self.event_loop.busy.load(Ordering::Relaxed) || admission.is_overloaded();
        if self.deadline.is_none() || !busy {
            return None;
        }
        let first = match self.outcome() {
            Some(Ok(admitted)) => admitted.first,
            Some(Err(_)) => return None,
            None => admission.state().controller.goes_first(self.client, admission.now()),
        };
        Some(if first { Precedence::First } else { Precedence::Other })
    }

    /// Returns the reason for the rejection, if it was rejected.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.outcome()?.err()
    }

    /// Returns the priority of its private-key operation.
    pub(crate) fn priority(&self) -> Priority {
        match self.outcome() {
            Some(Ok(Admitted { urgent: true, .. })) => Priority::Urgent,
            _ => Priority::Normal,
        }
    }

    /// Returns the queueing delay of its private-key operation if it were submitted now.
    pub(crate) fn key_wait(&self) -> Duration {
        self.admission().state().controller.key_wait(self.priority() == Priority::Urgent)
    }

    /// Records its submitted private-key operation. Keep the returned guard until it completes or is canceled.
    pub(crate) fn enter(&self, key_type: KeyType, priority: Priority) -> PendingOperation {
        if priority == Priority::Urgent {
            self.event_loop.steps.expect_compute();
        }
        self.admission().enter(key_type, priority == Priority::Urgent)
    }

    /// Records that its announced private-key operation is not submitted.
    pub(crate) fn pass_by(&self, key_type: KeyType) {
        drop(self.enter(key_type, self.priority()));
    }

    /// Sets whether its private-key operation is in progress.
    pub(crate) fn set_computing(&self, computing: bool) {
        self.computing.store(computing, Ordering::Relaxed);
    }

    /// Returns whether it waits for its private-key operation, and not for its client.
    pub(crate) fn is_computing(&self) -> bool {
        self.computing.load(Ordering::Relaxed)
    }

    /// Records that the handshake has succeeded.
    pub(crate) fn complete(&self) {
        let now = self.admission().now();
        self.admission().state().controller.complete(self.client, now);
    }

    /// Records its measured CPU time on the event loop.
    pub(crate) fn measured(&self, resumed: bool, cpu: Duration) {
        self.admission().state().controller.measured(resumed, cpu);
    }

    pub(super) fn event_loop(&self) -> &LoopAdmission {
        &self.event_loop
    }

    fn admission(&self) -> &Arc<Admission> {
        &self.event_loop.admission
    }
}
