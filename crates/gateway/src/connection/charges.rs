//! Work of a connection that its bytes do not show, in the bytes that cost as much.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Cost of a request: some 60 us of CPU time.
pub(crate) const REQUEST: usize = 64 * 1024;

/// Cost of a field of its header in addition to its bytes.
const FIELD: usize = 512;

/// Cost of a piece of a request's body, which may be a byte: some 8 us with the system calls of both connections.
const PIECE: usize = 8 * 1024;

/// Cost of a request that the client cancels: its connection to a server ends, and another has to be opened.
const RESET: usize = 128 * 1024;

/// Work since the last [`take`](Self::take). Only tasks of the connection's event loop use it.
#[derive(Debug, Default)]
pub(crate) struct Charges(AtomicUsize);

impl Charges {
    /// Adds a request with this number of header fields.
    pub(crate) fn request(&self, fields: usize) {
        self.add(REQUEST + fields * FIELD);
    }

    /// Adds a piece of a request's body. The bytes of a long one cost as much.
    pub(crate) fn piece(&self, length: usize) {
        self.add(PIECE.saturating_sub(length));
    }

    /// Adds a request that the client has canceled.
    pub(crate) fn reset(&self) {
        self.add(RESET);
    }

    /// Returns the work since the last call.
    pub(crate) fn take(&self) -> usize {
        let bytes = self.0.load(Ordering::Relaxed);
        if bytes > 0 {
            self.0.store(0, Ordering::Relaxed);
        }
        bytes
    }

    fn add(&self, bytes: usize) {
        self.0.store(self.0.load(Ordering::Relaxed).saturating_add(bytes), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_pieces_cost_more_than_their_bytes() {
        let charges = Charges::default();
        for (length, cost) in [(0, PIECE), (1, PIECE - 1), (PIECE, 0), (1 << 20, 0)] {
            charges.piece(length);
            assert_eq!(charges.take(), cost, "{length}");
        }
    }

    #[test]
    fn work_is_taken_once() {
        let charges = Charges::default();
        charges.request(10);
        charges.reset();
        assert_eq!((charges.take(), charges.take()), (REQUEST + 10 * FIELD + RESET, 0));
    }
}
