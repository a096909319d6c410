//! Waiting for a result. Inside an ASYNC job (`ASYNC_start_job(3)`), the job is paused and the server's event loop
//! continues; elsewhere the thread sleeps.
//!
//! A server may free a connection whose job is paused, and never resume the job. OpenSSL then leaks the job's stack
//! and the allocations of the functions on it; only OpenSSL could free them (haproxy#3453). Therefore nothing of ours
//! is on that stack: the awaited operation and the descriptor belong to the wait context, which is freed with the
//! connection. Because each such job leaks memory, a process that has lost many stops pausing.

use crate::{
    error::{Failure, Reason},
    host::Async,
    wakeup::Wakeup,
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

/// A pending result.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Outcome> + Send>>;
/// A signature, or a raw RSA result, which may be secret.
pub(crate) type Outcome = Result<Zeroizing<Vec<u8>>, Failure>;

/// Number of paused jobs that were never resumed.
static LOST_JOBS: AtomicUsize = AtomicUsize::new(0);

/// Number of lost jobs from which operations block instead. Each costs some 80 KiB.
static MAX_LOST_JOBS: AtomicUsize = AtomicUsize::new(512);

/// Static whose address identifies our descriptor in a wait context.
static KEY: u8 = 0;

/// Sets the maximum number of lost jobs.
pub(crate) fn set_max_lost_jobs(count: usize) {
    MAX_LOST_JOBS.store(count, Ordering::Relaxed);
}

/// Returns whether [`for_answer`] would pause a job.
pub(crate) fn can_pause() -> bool {
    LOST_JOBS.load(Ordering::Relaxed) < MAX_LOST_JOBS.load(Ordering::Relaxed) && in_job()
}

/// Returns whether the caller is on the stack of a job.
pub(crate) fn in_job() -> bool {
    // SAFETY: it has no preconditions.
    Async::get().is_some_and(|host| unsafe { !(host.current_job)().is_null() })
}

/// Waits for a result.
pub(crate) fn for_answer(answer: Answer) -> Outcome {
    let Some(host) = Async::get().filter(|_| can_pause()) else { return block(answer) };
    match JobWait::of_current_job(host) {
        Some(wait) => wait.run(host, answer),
        None => block(answer),
    }
}

/// An operation for which a job is paused. The wait context of the connection owns it.
struct PausedOperation {
    wakeup: Arc<Wakeup>,
    answer: Option<Answer>,
}

/// A waiting job: its paused operation, and the wait context that owns it or will own it.
struct JobWait {
    context: *mut c_void,
    paused: *mut PausedOperation,
    is_new: bool,
}

impl JobWait {
    /// Returns `None` if the context already has a pending operation.
    fn of_current_job(host: &Async) -> Option<Self> {
        let (mut fd, mut paused) = (-1, std::ptr::null_mut());
        // SAFETY: the context is that of the current job, and the outputs are writable.
        let context = unsafe { (host.wait_context)((host.current_job)()) };
        if context.is_null() {
            return None;
        }
        // SAFETY: as above.
        if unsafe { (host.get_fd)(context, key(), &mut fd, &mut paused) } == 1 && !paused.is_null() {
            let paused = paused.cast::<PausedOperation>();
            // SAFETY: `run` made it for this context; only its one job uses it.
            unsafe { (*paused).wakeup.update(host, context) };
            // SAFETY: as above.
            return unsafe { (*paused).answer.is_none() }.then_some(Self { context, paused, is_new: false });
        }
        // SAFETY: it is the context of the current job.
        let wakeup = Arc::new(unsafe { Wakeup::new(host, context) }.ok()?);
        let paused = Box::into_raw(Box::new(PausedOperation { wakeup, answer: None }));
        Some(Self { context, paused, is_new: true })
    }

    /// Waits in the job. A result that is ready at once leaves no descriptor in the context: a server may only learn
    /// of descriptors by pauses, and HAProxy stops at one that it does not know. So a job that gets a descriptor is
    /// also paused for it.
    fn run(self, host: &Async, answer: Answer) -> Outcome {
        let paused = self.paused;
        // SAFETY: the wait context owns the paused operation; until it is handed over below, this function does. It
        // lives at least until this job continues or is lost. Between pauses only this job touches it. If the job is
        // lost, the code after a pause never runs, and nothing on the stack is left to be dropped.
        unsafe { (*paused).answer = Some(answer) };
        // SAFETY: as above.
        let ready = unsafe { (*paused).poll() };
        if let Poll::Ready(outcome) = ready {
            self.discard();
            return outcome;
        }
        if self.is_new {
            // SAFETY: the context takes ownership of the paused operation, and passes it to `freed`.
            let taken =
                unsafe { (host.set_fd)(self.context, key(), (*paused).wakeup.fd(), paused.cast(), freed) };
            if taken != 1 {
                // SAFETY: as above.
                let answer = unsafe { (*paused).answer.take() };
                self.discard();
                return answer.map_or_else(|| Err(Reason::Internal.into()), block);
            }
        }
        loop {
            // SAFETY: this is a job.
            if unsafe { (host.pause)() } != 1 {
                // SAFETY: as above.
                let answer = unsafe { (*paused).answer.take() };
                return answer.map_or_else(|| Err(Reason::Internal.into()), block);
            }
            // SAFETY: as above.
            if let Poll::Ready(outcome) = unsafe { (*paused).resumed() } {
                return outcome;
            }
        }
    }

    /// Frees a paused operation that no context owns.
    fn discard(self) {
        if self.is_new {
            // SAFETY: it was made in `of_current_job`, and has no other owner.
            drop(unsafe { Box::from_raw(self.paused) });
        }
    }
}

/// Returns the key of our descriptor in a wait context.
fn key() -> *const c_void {
    (&raw const KEY).cast()
}

impl PausedOperation {
    /// Polls after a resumption. After a spurious one, the descriptor must not stay readable.
    fn resumed(&mut self) -> Poll<Outcome> {
        let polled = self.poll();
        if polled.is_ready() {
            return polled;
        }
        self.wakeup.clear();
        self.poll()
    }

    fn poll(&mut self) -> Poll<Outcome> {
        let waker = Waker::from(Arc::clone(&self.wakeup));
        let Some(answer) = &mut self.answer else { return Poll::Ready(Err(Reason::Internal.into())) };
        let polled = answer.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            self.answer = None;
            // Otherwise the server would be woken once more, for nothing.
            self.wakeup.clear();
        }
        polled
    }
}

/// Called when the connection is freed, and with it the wait context.
unsafe extern "C" fn freed(_context: *mut c_void, _key: *const c_void, _fd: c_int, paused: *mut c_void) {
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: `paused` is the box that was handed over with this function, and is handed back once.
        let paused = unsafe { Box::from_raw(paused.cast::<PausedOperation>()) };
        paused.wakeup.disconnect();
        if paused.answer.is_some() {
            LOST_JOBS.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Sleeps until the result is ready.
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
