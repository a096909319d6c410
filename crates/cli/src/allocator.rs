//! The allocator of the whole process, for both Rust and BoringSSL. A handshake makes several hundred allocations,
//! and mimalloc takes half as long for them as glibc.

use libmimalloc_sys as mimalloc;
use std::alloc::{GlobalAlloc, Layout};

/// Disables transparent huge pages. mimalloc requests them, and then memory that a connection has reserved but never
/// touched is resident too: most of the 24 KiB of HTTP/2's buffers. A kernel without this setting has no huge pages
/// either.
pub(crate) fn use_small_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The alignment that `mi_malloc` guarantees; glibc's is the same on these targets.
const MIN_ALIGN: usize = 16;

unsafe extern "C" {
    fn mi_collect(force: bool);
}

/// Returns the free memory of this thread to the kernel, and that of threads that have ended.
pub(crate) fn release() {
    // SAFETY: the function has no preconditions (mimalloc.h).
    unsafe { mi_collect(true) }
}

/// mimalloc. An alignment is requested only where `mi_malloc` does not guarantee it. The `mimalloc` crate always
/// requests one, and then every block whose size is not a power of two is larger than needed and takes the slow path.
pub(crate) struct Mimalloc;

// SAFETY: all four functions pass their arguments to an allocator with the same contract. If the alignment is at
// most MIN_ALIGN and the size, `mi_malloc` returns an aligned block (mimalloc.h, MI_MAX_ALIGN_SIZE).
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two are valid.
        unsafe {
            if is_aligned_anyway(layout) {
                mimalloc::mi_malloc(layout.size()).cast()
            } else {
                mimalloc::mi_malloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if is_aligned_anyway(layout) {
                mimalloc::mi_zalloc(layout.size()).cast()
            } else {
                mimalloc::mi_zalloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the block was allocated here (the caller's contract).
        unsafe { mimalloc::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block was allocated here (the caller's contract).
        unsafe {
            if layout.align() <= MIN_ALIGN && layout.align() <= size {
                mimalloc::mi_realloc(block.cast(), size).cast()
            } else {
                mimalloc::mi_realloc_aligned(block.cast(), size, layout.align()).cast()
            }
        }
    }
}

fn is_aligned_anyway(layout: Layout) -> bool {
    layout.align() <= MIN_ALIGN && layout.align() <= layout.size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_released() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
        };
        let blocks: Vec<Vec<u8>> = (0..2048).map(|_| vec![1; 32 * 1024]).collect();
        let full = resident();
        drop(blocks);
        release();
        assert!(resident() + 48 * 1024 < full, "{} KiB of {full} KiB are left", resident());
    }

    #[test]
    fn blocks_of_every_size_and_alignment_are_aligned() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in (1..600).chain([1023, 1500, 2056, 4104, 70_000]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the layout has a size, and the blocks are freed with it.
                unsafe {
                    let block = Mimalloc.alloc(layout);
                    assert_eq!(block.addr() % align, 0, "{layout:?}");
                    let block = Mimalloc.realloc(block, layout, size + 40);
                    assert_eq!(block.addr() % align, 0, "{layout:?} grown");
                    Mimalloc.dealloc(block, Layout::from_size_align(size + 40, align).unwrap());
                    let zeroed = Mimalloc.alloc_zeroed(layout);
                    assert_eq!(zeroed.addr() % align, 0, "{layout:?} zeroed");
                    assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|byte| *byte == 0));
                    Mimalloc.dealloc(zeroed, layout);
                }
            }
        }
    }
}
