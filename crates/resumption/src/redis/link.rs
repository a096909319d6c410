//! A thread's connection to a Redis: opening, open, or in the pause after a failure.

use super::{connect::Connection, options::Shared};
use crate::FleetError;
use std::{
    cell::RefCell,
    future::Future,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Pause after a connection could not be opened.
const PAUSE: Duration = Duration::from_millis(100);

thread_local! {
    static LINKS: RefCell<Vec<Link>> = const { RefCell::new(Vec::new()) };
}

struct Link {
    of: Weak<Shared>,
    id: u64,
    state: State,
}

enum State {
    Opening(watch::Receiver<Option<Opened>>),
    Failed(Instant, FleetError),
}

type Opened = Result<Connection, FleetError>;

/// Returns this thread's connection, and starts to open it if it is not open. Dropping the future does not cancel the
/// opening.
pub(super) fn connection(shared: &Arc<Shared>) -> impl Future<Output = Opened> + Send + 'static {
    let state = LINKS.with_borrow_mut(|links| {
        links.retain(|link| link.of.strong_count() > 0);
        let now = Instant::now();
        let known = links.iter_mut().find(|link| link.id == shared.id);
        match known.map(|link| &mut link.state) {
            Some(State::Opening(receiver)) => return Ok(receiver.clone()),
            Some(State::Failed(at, error)) if now < *at + PAUSE => return Err(error.clone()),
            _ => {}
        }
        let receiver = open(Arc::clone(shared));
        set(links, shared, State::Opening(receiver.clone()));
        Ok(receiver)
    });
    async move {
        let mut receiver = state?;
        let opened = receiver.wait_for(Option::is_some).await;
        let gone = || FleetError::Unreachable("the event loop has ended".into());
        opened.map_err(|_| gone())?.clone().unwrap_or_else(|| Err(gone()))
    }
}

/// Drops this thread's open connection.
pub(super) fn discard(shared: &Arc<Shared>) {
    LINKS.with_borrow_mut(|links| {
        let opened = |state: &State| matches!(state, State::Opening(receiver) if receiver.borrow().is_some());
        links.retain(|link| link.id != shared.id || !opened(&link.state));
    });
}

fn open(shared: Arc<Shared>) -> watch::Receiver<Option<Opened>> {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let opened = Connection::open(&shared.address, &shared.options).await;
        if let Err(error) = &opened {
            let failed = State::Failed(Instant::now(), error.clone());
            LINKS.with_borrow_mut(|links| set(links, &shared, failed));
        }
        drop(sender.send(Some(opened)));
    });
    receiver
}

fn set(links: &mut Vec<Link>, shared: &Arc<Shared>, state: State) {
    links.retain(|link| link.id != shared.id);
    links.push(Link { of: Arc::downgrade(shared), id: shared.id, state });
}
