//! Timer for deadlines that move with every byte: it is reset only when it fires too early.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};
use tokio::time::{Sleep, sleep_until};

/// A timer that is armed while a task waits. Moving the deadline further away costs nothing: the timer fires at the
/// earlier time, and is then reset to the later one.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Becomes ready once `due` has passed; otherwise the task is woken by then at the latest.
    pub(crate) fn poll_due(&mut self, context: &mut Context<'_>, due: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due.into())));
        if sleep.deadline() > due.into() {
            sleep.as_mut().reset(due.into());
        }
        loop {
            std::task::ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= due.into() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, time::Duration};

    #[tokio::test(flavor = "current_thread")]
    async fn a_deadline_moves_in_both_directions() {
        let mut alarm = Alarm::default();
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let is_due = |alarm: &mut Alarm, due| {
            alarm.poll_due(&mut Context::from_waker(std::task::Waker::noop()), due).is_ready()
        };
        assert!(!is_due(&mut alarm, at(20)));
        assert!(!is_due(&mut alarm, at(60_000)), "later");
        poll_fn(|context| alarm.poll_due(context, at(40))).await;
        assert!(start.elapsed() >= Duration::from_millis(40), "it fired at 20 and was reset");
        assert!(!is_due(&mut alarm, at(60_000)));
        poll_fn(|context| alarm.poll_due(context, at(60))).await;
        assert!(start.elapsed() < Duration::from_secs(60), "earlier");
        assert!(is_due(&mut alarm, at(5)), "in the past");
    }
}
