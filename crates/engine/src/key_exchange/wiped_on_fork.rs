//! Memory that is zero in a child process.

use std::{marker::PhantomData, ptr::NonNull};

/// Value in a mapping of its own, which the kernel zeroes in a child (`MADV_WIPEONFORK`), regardless of how the child
/// was created.
pub(super) struct WipedOnFork<T: Blank>(NonNull<T>, PhantomData<T>);

/// # Safety
/// All bytes zero must be a valid value, and dropping a value must do nothing.
pub(super) unsafe trait Blank {}

impl<T: Blank> WipedOnFork<T> {
    /// Maps zeroed memory. `None` if the kernel has no memory, or cannot wipe it on fork.
    pub(super) fn new() -> Option<Self> {
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) };
        // SAFETY: a new private mapping without address or file touches nothing that exists.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return None;
        }
        let value = Self(NonNull::new(memory.cast())?, PhantomData);
        // SAFETY: the range is the mapping made above.
        let advised = unsafe { libc::madvise(memory, size_of::<T>(), libc::MADV_WIPEONFORK) };
        (advised == 0).then_some(value)
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        // SAFETY: the mapping is as large as a `T` and aligned to a page, and zeros are a valid value; it belongs to
        // this value alone, which is borrowed for as long as the reference lives.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Blank> Drop for WipedOnFork<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and no reference to it remains.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Blank, WipedOnFork};

    // SAFETY: a plain number.
    unsafe impl Blank for u64 {}

    #[test]
    fn a_child_finds_zeros() {
        let mut value = WipedOnFork::<u64>::new().expect("memory");
        assert_eq!(std::mem::replace(value.get_mut(), 7), 0);
        // SAFETY: the child reads a number and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::try_from(*value.get_mut()).unwrap_or(1)) }
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child reads zeros");
        assert_eq!(*value.get_mut(), 7, "the parent keeps the value");
    }
}
