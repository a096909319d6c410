//! Scheduling of handshakes on a busy event loop: they yield to all other tasks, and unknown clients to known ones.
//!
//! Tokio polls in FIFO order. With many handshakes ready at any time, a request on an open connection would wait for
//! all of them at each of its steps. A handshake therefore advances only when it has a step. Several get a step
//! together, after all ready tasks, and after the kernel was polled for more.

use super::{
    loop_admission::{LoopAdmission, Visit},
    step_queue::Place,
};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// A handshake that yields to others where required.
pub(crate) struct Yielding<F> {
    visit: Arc<Visit>,
    place: Arc<Place>,
    handshake: F,
}

impl<F> Yielding<F> {
    pub(crate) fn new(visit: &Arc<Visit>, handshake: F) -> Self {
        Self { visit: Arc::clone(visit), place: Arc::default(), handshake }
    }
}

impl<F: Future + Unpin> Future for Yielding<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(precedence) = self.visit.yields()
            && !self.place.take_step()
        {
            let event_loop = self.visit.event_loop();
            event_loop.steps().wait(&self.place, precedence, context.waker(), event_loop.now());
            return Poll::Pending;
        }
        Pin::new(&mut self.handshake).poll(context)
    }
}

/// Gives steps on the event loop that it is spawned on, as long as it runs.
pub(crate) async fn run_yielding(event_loop: Arc<LoopAdmission>) {
    let (steps, mut pace) = (event_loop.steps(), Pace::default());
    loop {
        poll_fn(|context| steps.poll_waiting(context)).await;
        let began = event_loop.now();
        // Runs after all ready tasks, and those that the kernel has events for.
        tokio::task::yield_now().await;
        let turn = event_loop.now().saturating_sub(began);
        steps.yield_to_compute();
        event_loop.ran(steps.give(pace.after(turn)));
    }
}

/// Number of transfers that get a step in a turn of the event loop: as many as keep turns short, since a request on
/// another connection waits for some of them. The more get one, the fewer turns there are, which cost CPU time.
struct Pace(usize);

impl Pace {
    /// Duration below which more transfers get a step, and above which fewer do.
    const SHORT: Duration = Duration::from_micros(500);
    const LONG: Duration = Duration::from_millis(1);
    const MOST: usize = 8;

    /// Returns the number after a turn of this duration. It rises slowly: a step lasts several turns.
    fn after(&mut self, turn: Duration) -> usize {
        if turn < Self::SHORT {
            self.0 = (self.0 + 1).min(Self::MOST);
        } else if turn > Self::LONG {
            self.0 = (self.0 / 2).max(1);
        }
        self.0
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Admission;
    use std::{
        net::{IpAddr, Ipv4Addr},
        sync::Mutex,
        time::Instant,
    };

    const STEPS: usize = 4;

    /// Becomes ready on the second poll, which happens at once.
    async fn step() {
        let mut polled = false;
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Returns the third octets of the clients' networks in the order in which their handshakes end. All begin at
    /// once, and the last to begin is known.
    fn order(overloaded: bool) -> Vec<u8> {
        let admission = Admission::new(1, 1);
        let event_loop = LoopAdmission::new(&admission, 0);
        let address = |network| IpAddr::V4(Ipv4Addr::new(192, 0, network, 1));
        let visit =
            |network| event_loop.visit(address(network), Instant::now(), Some(Duration::from_secs(3)));
        let known = 200;
        visit(known).complete();
        admission.note_overload(overloaded);
        let done = Arc::new(Mutex::new(Vec::new()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(run_yielding(Arc::clone(&event_loop)));
            let handshakes = (0..100).chain([known]).map(|network| {
                let done = Arc::clone(&done);
                let steps = Box::pin(async move {
                    for _ in 0..STEPS {
                        step().await;
                    }
                    done.lock().unwrap().push(network);
                });
                tokio::spawn(Yielding::new(&visit(network), steps))
            });
            for handshake in handshakes.collect::<Vec<_>>() {
                handshake.await.unwrap();
            }
        });
        Arc::into_inner(done).unwrap().into_inner().unwrap()
    }

    #[test]
    fn a_known_client_goes_first_under_overload() {
        let order = order(true);
        let place = order.iter().position(|network| *network == 200).unwrap();
        // It has as many steps as the others, and at most eight others run before each of them.
        assert!(place <= STEPS * 8, "{order:?}");
        assert_eq!(order.len(), 101);
    }

    #[test]
    fn otherwise_all_go_as_they_come() {
        assert_eq!(order(false), (0..100).chain([200]).collect::<Vec<_>>());
    }

    #[test]
    fn more_transfers_get_a_step_while_turns_are_short() {
        let mut pace = Pace::default();
        let [short, medium, long] = [100, 700, 5_000].map(Duration::from_micros);
        let mut after = |turns: &[Duration]| turns.iter().map(|turn| pace.after(*turn)).collect::<Vec<_>>();
        assert_eq!(after(&[short, short, short, medium, long, long, long]), [2, 3, 4, 4, 2, 1, 1]);
        assert_eq!(after(&[short; 9]), [2, 3, 4, 5, 6, 7, 8, 8, 8]);
    }
}
