//! The end of an event loop's turn, when all operations that its connections have handed in go to the engine at once.

use quadrille_engine::Engine;
use std::{cell::RefCell, sync::Arc};
use tokio::sync::Notify;

thread_local! {
    static TURN: RefCell<Option<Arc<Notify>>> = const { RefCell::new(None) };
}

/// Runs on every event-loop thread. Tokio's current-thread scheduler is first come, first served: woken by the first
/// operation of a turn, this task runs after all connections that were ready with that one.
pub async fn flush_each(engine: Engine) {
    let notify = Arc::new(Notify::new());
    TURN.set(Some(Arc::clone(&notify)));
    loop {
        notify.notified().await;
        engine.flush();
    }
}

/// An operation waits: flush when this turn ends, or now if this thread has no event loop.
pub fn end_with_flush(engine: &Engine) {
    TURN.with_borrow(|turn| match turn {
        Some(notify) => notify.notify_one(),
        None => engine.flush(),
    });
}
