//! Share of a connection in the transfers of its event loop.
//!
//! Tokio polls in FIFO order, and a task may transfer megabytes before it returns. Beside many downloads, or many
//! requests, a request on another connection would wait for all of them at each of its steps. A connection therefore
//! transfers what a step allows, and then waits for the next: after all ready tasks, after the kernel was polled for
//! more, and after the clients whose last step was longer ago: those with many connections get no more steps than those
//! with one. A connection with little data seldom waits.
//!
//! Requests and pieces of their bodies count as the bytes that cost as much.

use super::{
    loop_admission::LoopAdmission,
    step_queue::{ClientNumber, Place},
};
use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

/// Number of bytes of a step: some 0.8 ms of CPU time. Shorter ones cost bulk transfers CPU time, because the data of
/// the others displaces theirs from the cache.
const STEP: usize = 1024 * 1024;

/// Number of bytes of a step while [`MANY`] connections wait, and of the first: some 0.2 ms.
const SHORT_STEP: usize = 256 * 1024;
const MANY: usize = 64;

/// Cost of a call in addition to its bytes, in bytes: small records and requests cost CPU time, too.
const CALL: usize = 4 * 1024;

/// A connection's share.
pub(crate) struct Transfers {
    event_loop: Arc<LoopAdmission>,
    client: ClientNumber,
    left: usize,
    /// Number of the last step.
    last_step: u64,
    /// `None` before the first wait.
    place: Option<Arc<Place>>,
    was_one_of_many: bool,
}

impl Transfers {
    /// Creates the share of a connection of the client with this address.
    pub(crate) fn new(event_loop: &Arc<LoopAdmission>, client: IpAddr) -> Self {
        let last_step = event_loop.steps().transferred();
        Self {
            event_loop: Arc::clone(event_loop),
            client: event_loop.client_number(client),
            left: SHORT_STEP,
            last_step,
            place: None,
            was_one_of_many: false,
        }
    }

    /// Records that a proxy has announced another client.
    pub(crate) fn belongs_to(&mut self, client: IpAddr) {
        self.client = self.event_loop.client_number(client);
    }

    /// Ready if the connection may transfer now.
    pub(crate) fn poll_allowed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 {
            return Poll::Ready(());
        }
        let steps = self.event_loop.steps();
        let place = self.place.get_or_insert_default();
        if !place.take_step() {
            steps.wait_to_transfer(place, self.client, self.last_step, context.waker());
            return Poll::Pending;
        }
        self.left = if steps.waiting_transfers() < MANY { STEP } else { SHORT_STEP };
        self.last_step = steps.transferred();
        Poll::Ready(())
    }

    /// Returns whether many connections wait, once.
    pub(crate) fn becomes_one_of_many(&mut self) -> bool {
        !self.was_one_of_many && {
            self.was_one_of_many = self.event_loop.steps().waiting_transfers() >= MANY;
            self.was_one_of_many
        }
    }

    /// Returns how often work of this cost fits into the step: at least once, and at most `most` times.
    pub(crate) fn fits(&self, cost: usize, most: usize) -> usize {
        (self.left / cost).clamp(1, most)
    }

    /// Records a call that transferred this number of bytes.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.charge(bytes + CALL);
    }

    /// Records other work that costs as much as this number of bytes.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

impl fmt::Debug for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transfers({} bytes left)", self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Admission, run_yielding};
    use std::{cell::RefCell, future::poll_fn, rc::Rc};

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Transfers `bytes` in calls of 16 KiB.
    async fn transfer(event_loop: &Arc<LoopAdmission>, bytes: usize) {
        let mut transfers = Transfers::new(event_loop, CLIENT);
        for _ in 0..bytes / (16 << 10) {
            poll_fn(|context| transfers.poll_allowed(context)).await;
            transfers.count(16 << 10);
        }
    }

    #[test]
    fn small_transfers_end_before_large_ones_that_began_earlier() {
        let event_loop = LoopAdmission::new(&Admission::new(1, 1), 0);
        let (local, ended) = (tokio::task::LocalSet::new(), Rc::new(RefCell::new(Vec::new())));
        let sizes = [8 << 20, 4 << 20, 64 << 10, 2 << 20, 16 << 10];
        local.spawn_local(run_yielding(Arc::clone(&event_loop)));
        let all: Vec<_> = sizes
            .into_iter()
            .map(|bytes| {
                let (event_loop, ended) = (Arc::clone(&event_loop), Rc::clone(&ended));
                local.spawn_local(async move {
                    transfer(&event_loop, bytes).await;
                    ended.borrow_mut().push(bytes);
                })
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(local.run_until(async {
            for one in all {
                one.await.unwrap();
            }
        }));
        assert_eq!(*ended.borrow(), [64 << 10, 16 << 10, 2 << 20, 4 << 20, 8 << 20]);
    }

    #[test]
    fn other_work_ends_a_step_as_bytes_do() {
        let event_loop = LoopAdmission::new(&Admission::new(1, 1), 0);
        let mut transfers = Transfers::new(&event_loop, CLIENT);
        let is_allowed = |transfers: &mut Transfers| {
            transfers.poll_allowed(&mut Context::from_waker(std::task::Waker::noop())).is_ready()
        };
        assert_eq!((transfers.fits(SHORT_STEP / 4, 16), transfers.fits(SHORT_STEP / 4, 3)), (4, 3));
        transfers.charge(SHORT_STEP - 1);
        assert_eq!((transfers.fits(SHORT_STEP / 4, 16), is_allowed(&mut transfers)), (1, true));
        transfers.charge(1);
        assert!(!is_allowed(&mut transfers));
        event_loop.steps().give(1);
        assert!(is_allowed(&mut transfers));
    }
}
