//! Backend that holds every batch until the test releases it, so that tests control the queue.

use super::PATIENCE;
use quadrille_engine::{Backend, Job, KeyType, Scalar};
use std::sync::{Arc, Condvar, Mutex};

/// The backend.
pub(crate) struct Gate(Arc<Shared>);

/// Control of the gate; opens it on drop.
pub(crate) struct Open(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entered: usize,
    open: bool,
}

impl Gate {
    pub(crate) fn new() -> (Self, Open) {
        let shared = Arc::new(Shared::default());
        (Self(Arc::clone(&shared)), Open(shared))
    }
}

impl Open {
    /// Waits until `batches` batches in all have reached the gate.
    pub(crate) fn entered(&self, batches: usize) {
        self.0.wait(|state| state.entered >= batches);
    }

    /// Lets all batches through, now and later.
    pub(crate) fn open(&self) {
        self.0.state.lock().unwrap().open = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.open();
    }
}

impl Shared {
    fn wait(&self, until: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let (_state, timeout) =
            self.changed.wait_timeout_while(state, PATIENCE, |state| !until(state)).unwrap();
        assert!(!timeout.timed_out(), "the gate was not opened in time");
    }
}

impl Backend for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        self.0.state.lock().unwrap().entered += 1;
        self.0.changed.notify_all();
        self.0.wait(|state| state.open);
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }
}
