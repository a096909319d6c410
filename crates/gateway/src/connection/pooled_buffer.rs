//! Pooled buffers for data in transit. The memory belongs to a pool of the event loop and is released with the last
//! byte, so that an idle connection holds none.

use crate::memory::{self, Purpose};
use std::cell::RefCell;
use tokio::io::ReadBuf;

/// Capacity of a buffer: four of the largest TLS records (RFC 8446 section 5.2).
pub(crate) const CAPACITY: usize = 4 * (16 * 1024 + 256 + 5);

/// Maximum number of free buffers per thread; others are returned to the allocator.
const KEPT: usize = 16;

thread_local! {
    static FREE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// Memory of a buffer, which is counted as held from its allocation on.
#[derive(Debug, Default)]
struct Memory {
    bytes: Box<[u8]>,
}

impl Memory {
    fn allocate() -> Self {
        memory::count(Purpose::Buffers, 0, CAPACITY);
        Self { bytes: vec![0; CAPACITY].into() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            memory::count(Purpose::Buffers, CAPACITY, 0);
        }
    }
}

/// Frees the unused buffers of this thread.
pub(crate) fn release_buffers() {
    FREE.with_borrow_mut(|free| *free = Vec::new());
}

/// FIFO byte buffer of at most [`CAPACITY`] bytes.
#[derive(Debug, Default)]
pub(crate) struct PooledBuffer {
    /// Memory of the buffer; empty while there are no bytes.
    memory: Memory,
    start: usize,
    end: usize,
}

impl PooledBuffer {
    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory.bytes[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the number of bytes that can be added.
    pub(crate) fn room(&self) -> usize {
        CAPACITY - (self.end - self.start)
    }

    /// Lets `read` append up to `most` bytes, as far as there is room.
    pub(crate) fn fill<T>(&mut self, most: usize, read: impl FnOnce(&mut ReadBuf<'_>) -> T) -> T {
        self.make_room();
        let limit = CAPACITY.min(self.end.saturating_add(most));
        let mut room = ReadBuf::new(&mut self.memory.bytes[self.end..limit]);
        let outcome = read(&mut room);
        self.end += room.filled().len();
        self.release_if_empty();
        outcome
    }

    /// Appends as many of these bytes as there is room for, and returns their number.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        self.fill(count, |room| room.put_slice(&bytes[..count]));
        count
    }

    /// Removes bytes from the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        self.release_if_empty();
    }

    /// Moves the bytes to the front, so that all free memory is behind them.
    fn make_room(&mut self) {
        if self.memory.bytes.is_empty() {
            self.memory = take_memory();
        } else if self.start > 0 {
            self.memory.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    fn release_if_empty(&mut self) {
        if self.is_empty() && !self.memory.bytes.is_empty() {
            give_memory(std::mem::take(&mut self.memory));
            (self.start, self.end) = (0, 0);
        }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.consume(usize::MAX);
    }
}

fn take_memory() -> Memory {
    FREE.with_borrow_mut(Vec::pop).unwrap_or_else(Memory::allocate)
}

fn give_memory(memory: Memory) {
    // A thread that ends has no pool; the memory is then freed here.
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free.len() < KEPT && !memory::is_scarce() {
            free.push(memory);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, FREE, KEPT, PooledBuffer};

    fn free() -> usize {
        FREE.with_borrow(Vec::len)
    }

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut buffer = PooledBuffer::default();
        assert_eq!(buffer.put(b"abc"), 3);
        buffer.consume(1);
        assert_eq!(buffer.put(b"de"), 2);
        assert_eq!(buffer.bytes(), b"bcde");
        assert_eq!(buffer.room(), CAPACITY - 4);
        let count = buffer.fill(2, |room| {
            assert_eq!(room.remaining(), 2);
            room.put_slice(b"f");
            room.filled().len()
        });
        assert_eq!((count, buffer.bytes()), (1, &b"bcdef"[..]));
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let mut buffer = PooledBuffer::default();
        assert_eq!(buffer.put(&[1; CAPACITY - 1]), CAPACITY - 1);
        assert_eq!(buffer.put(b"two"), 1);
        assert_eq!((buffer.put(b"none"), buffer.room()), (0, 0));
        buffer.consume(CAPACITY - 1);
        assert_eq!(buffer.put(b"hree"), 4);
        assert_eq!(buffer.bytes(), b"three");
    }

    #[test]
    fn memory_is_held_only_while_there_are_bytes_and_the_pool_is_bounded() {
        let mut buffer = PooledBuffer::default();
        assert_eq!((buffer.memory.bytes.len(), free()), (0, 0));
        buffer.put(b"bytes");
        assert_eq!((buffer.memory.bytes.len(), free()), (CAPACITY, 0));
        buffer.consume(5);
        assert_eq!((buffer.memory.bytes.len(), free()), (0, 1));
        buffer.fill(CAPACITY, |_| ());
        assert_eq!((buffer.memory.bytes.len(), free()), (0, 1), "nothing was read");
        let filled = || {
            let mut buffer = PooledBuffer::default();
            buffer.put(b"bytes");
            buffer.consume(1);
            buffer
        };
        let many: Vec<_> = (0..2 * KEPT).map(|_| filled()).collect();
        assert_eq!(free(), 0);
        drop(many);
        assert_eq!(free(), KEPT);
    }
}
