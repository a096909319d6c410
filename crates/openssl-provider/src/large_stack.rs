//! A stack for functions that do not fit on that of an ASYNC job (32 KiB, which libssl and the server use as well).
//!
//! Each thread has one, and switches to it as OpenSSL itself switches to a job's (makecontext(3)). A switch costs
//! less than a microsecond; a separate thread would cost twenty.

use crate::{
    error::{Failure, Reason},
    wait,
};
use std::{
    any::Any,
    cell::{Cell, RefCell},
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

const SIZE: usize = 256 * 1024;
const GUARD: usize = 4096;

thread_local! {
    static STACK: RefCell<Option<Stack>> = const { RefCell::new(None) };
    /// Function to run on the other stack.
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
}

/// Called once, while `run` waits for it, so it may borrow from the caller's stack.
type Call = *mut (dyn FnMut() + 'static);

/// Runs `what` on the caller's stack, or if that is a job's, on a sufficiently large one.
///
/// # Errors
/// [`Internal`](Reason::Internal) if there is no memory for a stack, or if `what` panics.
pub(crate) fn run<T>(what: impl FnOnce() -> T) -> Result<T, Failure> {
    if !wait::in_job() {
        return Ok(what());
    }
    let stack = STACK.take().map_or_else(Stack::new, Some).ok_or(Reason::Internal)?;
    let mut outcome = None;
    let mut what = Some(what);
    stack.call(&mut || {
        outcome = what.take().map(|what| catch_unwind(AssertUnwindSafe(what)));
    });
    STACK.replace(Some(stack));
    let panicked = |_: Box<dyn Any + Send>| Failure::new(Reason::Internal, "a panic on another stack");
    outcome.ok_or(Reason::Internal)?.map_err(panicked)
}

/// Mapped memory with a guard page at the bottom.
struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> Option<Self> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK);
        // SAFETY: new memory at any address.
        let base = unsafe { libc::mmap(ptr::null_mut(), GUARD + SIZE, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let stack = Self(base);
        // SAFETY: the first page of the mapping.
        (unsafe { libc::mprotect(base, GUARD, libc::PROT_NONE) } == 0).then_some(stack)
    }

    /// Calls `what` on this stack. `what` must not panic.
    fn call(&self, what: &mut dyn FnMut()) {
        // SAFETY: only the lifetime changes, and `what` has returned before this function does.
        CALL.set(Some(unsafe { std::mem::transmute::<&mut dyn FnMut(), Call>(what) }));
        let (mut here, mut there) = (MaybeUninit::uninit(), MaybeUninit::<libc::ucontext_t>::uninit());
        // SAFETY: `there` is filled by the first call. Its stack is ours alone, and `enter` returns to `here`, which
        // swapcontext(3) fills before it leaves.
        unsafe {
            if libc::getcontext(there.as_mut_ptr()) != 0 {
                return;
            }
            let context = there.as_mut_ptr();
            (*context).uc_stack.ss_sp = self.0.byte_add(GUARD);
            (*context).uc_stack.ss_size = SIZE;
            (*context).uc_link = here.as_mut_ptr();
            libc::makecontext(context, enter, 0);
            libc::swapcontext(here.as_mut_ptr(), context);
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: it was mapped in `new`, and no call uses it.
        unsafe { libc::munmap(self.0, GUARD + SIZE) };
    }
}

extern "C" fn enter() {
    if let Some(what) = CALL.take() {
        // SAFETY: `call` waits for it.
        unsafe { (*what)() };
    }
}

#[cfg(test)]
mod tests {
    use super::Stack;

    #[test]
    fn large_frames_run_on_the_other_stack() {
        let stack = Stack::new().unwrap();
        let here = 0_u8;
        for round in 0..100_u8 {
            let mut seen = 0;
            let mut distance = 0;
            stack.call(&mut || {
                let large = std::hint::black_box([round; 128 * 1024]);
                seen = large.iter().map(|byte| usize::from(*byte)).sum();
                distance = (&raw const large).addr().abs_diff((&raw const here).addr());
            });
            assert_eq!(seen, usize::from(round) * 128 * 1024);
            assert!(distance > 128 * 1024, "it runs on the caller's stack");
        }
    }
}
