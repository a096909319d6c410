//! Waiting for a result. Inside an ASYNC job (`ASYNC_start_job(3)`), the job is paused and the server's event loop goes on;
//! elsewhere the thread sleeps.
//!
//! A server may free a connection whose job is paused, and never resume the job. OpenSSL then loses the job's stack, and
//! what the functions on it had allocated; nobody but OpenSSL could give it back (haproxy#3453). So nothing of ours
//! stands on that stack: what is waited for, and the descriptor, belong to the wait context, which is freed with the
//! connection. And because each such job is lost memory, a process that has lost many does not pause any more.

use crate::{
    error::{Failure, Reason},
    host::Async,
    signal::Signal,
};
use std::{
    ffi::{c_int, c_void},
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};
use zeroize::Zeroizing;

/// A result to come.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Outcome> + Send>>;
/// A signature, or a raw RSA result, which may be secret.
pub(crate) type Outcome = Result<Zeroizing<Vec<u8>>, Failure>;

/// Paused jobs that were never resumed.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// From so many lost jobs on, operations block instead. Each costs some 40 KiB.
static MOST_LOST: AtomicUsize = AtomicUsize::new(1024);

/// The place of our descriptor among those of a wait context.
static PLACE: u8 = 0;

/// Sets how many jobs may be lost.
pub(crate) fn set_most_lost(count: usize) {
    MOST_LOST.store(count, Ordering::Relaxed);
}

/// Whether [`for_answer`] would pause a job.
pub(crate) fn can_pause() -> bool {
    // SAFETY: it has no preconditions.
    let in_job = || Async::get().filter(|host| unsafe { !(host.current_job)().is_null() });
    LOST.load(Ordering::Relaxed) < MOST_LOST.load(Ordering::Relaxed) && in_job().is_some()
}

/// Waits for a result.
pub(crate) fn for_answer(mut answer: Answer) -> Outcome {
    if !can_pause() {
        return block(answer);
    }
    // What is there already needs no descriptor.
    if let Poll::Ready(outcome) = answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return outcome;
    }
    match Place::of_current_job() {
        Some(place) => pause_for(place, answer),
        None => block(answer),
    }
}

/// What the wait context of a connection owns.
struct Place {
    signal: Arc<Signal>,
    answer: Option<Answer>,
}

fn pause_for(place: *mut Place, answer: Answer) -> Outcome {
    let Some(host) = Async::get() else { return block(answer) };
    // SAFETY: the wait context owns the place, and lives at least until this job goes on or is lost. Between pauses only this
    // job touches it. If it is lost, what follows a pause is never run.
    unsafe { (*place).answer = Some(answer) };
    loop {
        // SAFETY: as above.
        let polled = unsafe { (*place).poll() };
        if let Poll::Ready(outcome) = polled {
            return outcome;
        }
        // SAFETY: this is a job. Nothing on the stack needs dropping.
        if unsafe { (host.pause)() } != 1 {
            // SAFETY: as above.
            return match unsafe { (*place).answer.take() } {
                Some(answer) => block(answer),
                None => Err(Reason::Internal.into()),
            };
        }
        // SAFETY: as above.
        unsafe { (*place).signal.clear() };
    }
}

impl Place {
    /// The place in the wait context of the job that runs now; made with the connection's first operation.
    fn of_current_job() -> Option<*mut Self> {
        let host = Async::get()?;
        let key = (&raw const PLACE).cast::<c_void>();
        let (mut fd, mut place) = (-1, std::ptr::null_mut());
        // SAFETY: the context is that of the current job, and the places for the answers are there.
        let context = unsafe { (host.wait_context)((host.current_job)()) };
        if context.is_null() {
            return None;
        }
        // SAFETY: as above.
        if unsafe { (host.get_fd)(context, key, &mut fd, &mut place) } == 1 && !place.is_null() {
            let place = place.cast::<Self>();
            // SAFETY: it was made below, for this context; nothing but its one job uses it.
            return unsafe { (*place).answer.is_none() }.then_some(place);
        }
        let signal = Arc::new(Signal::new().ok()?);
        let fd = signal.fd();
        let place = Box::into_raw(Box::new(Self { signal, answer: None }));
        // SAFETY: the context takes over the place, and gives it to `freed`.
        if unsafe { (host.set_fd)(context, key, fd, place.cast(), freed) } != 1 {
            // SAFETY: it was not taken over.
            drop(unsafe { Box::from_raw(place) });
            return None;
        }
        Some(place)
    }

    fn poll(&mut self) -> Poll<Outcome> {
        let waker = Waker::from(Arc::clone(&self.signal));
        let Some(answer) = &mut self.answer else { return Poll::Ready(Err(Reason::Internal.into())) };
        let polled = answer.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            self.answer = None;
            // Otherwise the server would be woken once more, for nothing.
            self.signal.clear();
        }
        polled
    }
}

/// The connection is freed, and with it the wait context.
unsafe extern "C" fn freed(_context: *mut c_void, _key: *const c_void, _fd: c_int, place: *mut c_void) {
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: `place` is the box that was handed over with this function, and is handed back once.
        let place = unsafe { Box::from_raw(place.cast::<Place>()) };
        if place.answer.is_some() {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Sleeps until the result is there.
pub(crate) fn block(mut answer: Answer) -> Outcome {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}
