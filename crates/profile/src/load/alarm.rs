//! Timer that wakes a load when its next connection is due.

use mio::{Interest, Registry, Token, unix::SourceFd};
use nix::sys::{
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};
use std::{io, os::fd::AsFd, os::fd::AsRawFd, time::Duration};

/// A timer file descriptor. The kernel counts a poll timeout in milliseconds, which is too coarse for thousands of
/// connections a second, and a thread that busy-waits takes the CPU from the others.
pub(super) struct Alarm {
    timer: TimerFd,
    /// Number of the connection that it is set for.
    set_for: Option<u64>,
}

impl Alarm {
    /// Token of its events.
    pub(super) const TOKEN: Token = Token(usize::MAX);

    pub(super) fn new(registry: &Registry) -> io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let descriptor = timer.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&descriptor), Self::TOKEN, Interest::READABLE)?;
        Ok(Self { timer, set_for: None })
    }

    /// Sets the timer for connection number `index`, which is due after `wait`.
    pub(super) fn set(&mut self, index: u64, wait: Duration) -> io::Result<()> {
        if self.set_for != Some(index) {
            // Zero would disarm the timer.
            let wait = TimeSpec::from(wait.max(Duration::from_nanos(1)));
            self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?;
            self.set_for = Some(index);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};
    use std::time::Instant;

    /// Long enough for a loaded machine.
    const LIMIT: Duration = Duration::from_secs(180);

    #[test]
    fn wakes_when_it_is_time_again_and_again() {
        let mut poll = Poll::new().unwrap();
        let mut alarm = Alarm::new(poll.registry()).unwrap();
        let mut events = Events::with_capacity(4);
        for (index, micros) in [300, 0, 1700].into_iter().enumerate() {
            let (wait, start) = (Duration::from_micros(micros), Instant::now());
            alarm.set(index as u64, wait).unwrap();
            poll.poll(&mut events, Some(LIMIT)).unwrap();
            assert_eq!(events.iter().map(mio::event::Event::token).collect::<Vec<_>>(), [Alarm::TOKEN]);
            assert!(start.elapsed() >= wait);
        }
    }

    #[test]
    fn the_same_connection_sets_it_once() {
        let mut poll = Poll::new().unwrap();
        let mut alarm = Alarm::new(poll.registry()).unwrap();
        let mut events = Events::with_capacity(4);
        alarm.set(7, Duration::from_millis(1)).unwrap();
        alarm.set(7, Duration::from_secs(3600)).unwrap();
        poll.poll(&mut events, Some(LIMIT)).unwrap();
        assert!(!events.is_empty(), "it was not re-armed");
    }
}
