//! When a request must be over. Pingora bounds each read and write; this bounds the whole.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};
use tokio::time::{Sleep, sleep_until};

thread_local! {
    /// Of the request that is being polled.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// An answer that has not begun by then is given up with a status, which takes a moment.
const GRACE: Duration = Duration::from_millis(50);

/// Sets when the request that is being polled must be over.
pub(super) fn set(deadline: Option<Instant>) {
    DEADLINE.set(deadline.map(|deadline| deadline + GRACE));
}

/// The future's output; `None` if its deadline has passed.
pub(super) async fn enforce<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut deadline = None;
    let mut alarm: Option<std::pin::Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        DEADLINE.set(deadline);
        let poll = future.as_mut().poll(context);
        deadline = DEADLINE.replace(None);
        if let Poll::Ready(output) = poll {
            return Poll::Ready(Some(output));
        }
        let Some(due) = deadline else {
            alarm = None;
            return Poll::Pending;
        };
        let due = due.into();
        let alarm = alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        alarm.as_mut().poll(context).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn only_what_has_a_deadline_ends_early() {
        assert_eq!(enforce(async { 1 }).await, Some(1));
        let slow = |deadline: Option<Duration>| async move {
            set(deadline.map(|after| Instant::now() + after));
            tokio::time::sleep(Duration::from_millis(150)).await;
            2
        };
        assert_eq!(enforce(slow(None)).await, Some(2));
        assert_eq!(enforce(slow(Some(Duration::from_secs(9)))).await, Some(2));
        assert_eq!(enforce(slow(Some(Duration::ZERO))).await, None);
        let both = tokio::join!(enforce(slow(Some(Duration::ZERO))), enforce(slow(None)));
        assert_eq!(both, (None, Some(2)), "each has its own");
    }
}
