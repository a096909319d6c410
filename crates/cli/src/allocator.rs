//! The allocator of the whole process, for Rust and BoringSSL alike: a handshake allocates some hundred times, and
//! mimalloc spends half as long on it as glibc.

use libmimalloc_sys as mimalloc;
use std::alloc::{GlobalAlloc, Layout};

/// Has the kernel give memory by small pages. mimalloc asks for huge ones, and then whatever a connection has reserved
/// and never touched counts as well: of HTTP/2's buffers most of the 24 KiB. Where the kernel knows no such thing, there
/// are no huge pages either.
pub(crate) fn use_small_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// What `mi_malloc` aligns to, as glibc does on these targets.
const MIN_ALIGN: usize = 16;

/// mimalloc, asked for an alignment only where it does not keep it anyway. The `mimalloc` crate always asks, and then
/// every block that is not a power of two is allocated larger than needed, by the slow path.
pub(crate) struct Mimalloc;

// SAFETY: all four pass on what they get to an allocator that keeps the same promises; a block of at least its
// alignment that is at most MIN_ALIGN comes aligned from `mi_malloc` (mimalloc.h, MI_MAX_ALIGN_SIZE).
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two will do.
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
        // SAFETY: the caller has it from here.
        unsafe { mimalloc::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller has it from here.
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
