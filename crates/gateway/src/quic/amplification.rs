//! Anti-amplification limit for addresses that have not been validated (RFC 9000 section 8.1).
//!
//! quiche enforces it for packets, but does not count the padding of datagrams that contain an Initial packet. A
//! ServerHello sent ahead of its signature is mostly padding, so that up to 3.9 times the bytes received were sent.

/// Limit of sent bytes, as a multiple of the bytes received.
const FACTOR: u64 = 3;

/// Bytes of a connection whose client address is not validated.
#[derive(Clone, Copy, Default)]
struct Datagrams {
    received: u64,
    sent: u64,
}

/// State of the limit, while it applies.
pub(super) struct Amplification(Option<Datagrams>);

impl Amplification {
    /// Creates the limit; a client whose address a token has validated has none.
    pub(super) fn new(is_proven: bool) -> Self {
        Self((!is_proven).then(Datagrams::default))
    }

    /// Counts a received datagram.
    pub(super) fn receives(&mut self, size: usize) {
        if let Some(datagrams) = &mut self.0 {
            datagrams.received += size as u64;
        }
    }

    /// Counts a sent datagram.
    pub(super) fn sends(&mut self, size: usize) {
        if let Some(datagrams) = &mut self.0 {
            datagrams.sent += size as u64;
        }
    }

    /// Returns the maximum size of the next datagram.
    pub(super) fn room(&mut self, quic: &quiche::Connection) -> usize {
        let Some(Datagrams { received, sent }) = self.0 else { return usize::MAX };
        let limit = received.saturating_mul(FACTOR);
        // quiche has sent more than it allows before validation, or the handshake is complete: the address is
        // validated.
        if quic.is_established() || quic.stats().sent_bytes > limit {
            self.0 = None;
            return usize::MAX;
        }
        usize::try_from(limit.saturating_sub(sent)).unwrap_or(usize::MAX)
    }
}
