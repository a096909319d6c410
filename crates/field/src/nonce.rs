//! Random nonces at the price of a copy.
//!
//! A system call for each nonce would take longer than the encryption, so each thread draws [`NONCES`] at once. After
//! a fork (php-fpm forks) two processes must not share nonces: they are stored, with the count of the remaining ones,
//! in a page that the kernel zeroes in a child (`MADV_WIPEONFORK`), regardless of how the child was created. If the
//! kernel cannot do that, every nonce is drawn from the system.

use crate::{Error, xaes::NONCE_BYTES};
use std::{cell::OnceCell, ptr::NonNull};

/// Returns a fresh nonce.
pub(crate) fn next() -> Result<[u8; NONCE_BYTES], Error> {
    let taken = POOL.try_with(|pool| match pool.get_or_init(Pool::new) {
        Some(pool) => pool.take(),
        None => draw(),
    });
    // The pool may already be destroyed while the thread ends.
    taken.unwrap_or_else(|_| draw())
}

thread_local! {
    static POOL: OnceCell<Option<Pool>> = const { OnceCell::new() };
}

fn draw() -> Result<[u8; NONCE_BYTES], Error> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(Error::Random)?;
    Ok(nonce)
}

/// Number of nonces drawn at once: with their count they fill a page of 4096 bytes.
const NONCES: usize = 170;

#[repr(C)]
struct Page {
    left: usize,
    nonces: [[u8; NONCE_BYTES]; NONCES],
}

/// Page owned by one thread.
struct Pool(NonNull<Page>);

impl Pool {
    /// Returns `None` if the kernel cannot wipe a page on fork.
    fn new() -> Option<Self> {
        // SAFETY: a new private mapping without address or file touches nothing that exists.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return None;
        }
        // A zeroed page is an empty pool.
        let pool = Self(NonNull::new(page.cast())?);
        // SAFETY: the range is the mapping made above.
        let advised = unsafe { libc::madvise(page, size_of::<Page>(), libc::MADV_WIPEONFORK) };
        (advised == 0).then_some(pool)
    }

    fn take(&self) -> Result<[u8; NONCE_BYTES], Error> {
        // SAFETY: the mapping is as large as a page, aligned, and initialised by the kernel; it belongs to this thread
        // alone, and no reference to it outlives this function, which does not call itself.
        let page = unsafe { &mut *self.0.as_ptr() };
        if page.left == 0 {
            getrandom::fill(page.nonces.as_flattened_mut()).map_err(Error::Random)?;
            page.left = NONCES;
        }
        page.left -= 1;
        Ok(std::mem::take(&mut page.nonces[page.left]))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and no reference to it remains.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Page>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn nonces_differ_within_and_between_threads() {
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| draw_many(1000))).collect();
        let mut seen = HashSet::new();
        for thread in threads {
            for nonce in thread.join().expect("the thread does not panic") {
                assert!(seen.insert(nonce), "a nonce was repeated");
            }
        }
        assert_eq!(seen.len(), 4000);
        assert!(!seen.contains(&[0; NONCE_BYTES]), "a wiped nonce was handed out");
    }

    #[test]
    fn a_child_draws_its_own() {
        next().expect("nonce");
        let mut pipe = [0; 2];
        // SAFETY: the array has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: the child calls nothing but the pool, whose page and system call need no lock, and `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                for nonce in (0..NONCES).filter_map(|_| next().ok()) {
                    // SAFETY: the buffer has the given length.
                    unsafe { libc::write(pipe[1], nonce.as_ptr().cast(), NONCE_BYTES) };
                }
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(0) }
            }
            child => {
                assert!(child > 0);
                let mut theirs = [[0; NONCE_BYTES]; NONCES];
                for nonce in &mut theirs {
                    // SAFETY: the buffer has the given length.
                    let read = unsafe { libc::read(pipe[0], nonce.as_mut_ptr().cast(), NONCE_BYTES) };
                    assert_eq!(read, NONCE_BYTES as isize);
                }
                // SAFETY: waits for the child made above.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                let ours: HashSet<_> = draw_many(NONCES).into_iter().collect();
                assert!(theirs.iter().all(|nonce| !ours.contains(nonce) && *nonce != [0; NONCE_BYTES]));
            }
        }
    }

    fn draw_many(count: usize) -> Vec<[u8; NONCE_BYTES]> {
        (0..count).map(|_| next().expect("nonce")).collect()
    }
}
