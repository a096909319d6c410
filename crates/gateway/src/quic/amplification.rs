//! The limit of what is sent to an address that has not been validated (RFC 9000 section 8.1).
//!
//! quiche keeps it for packets, but does not count what it fills a datagram up with that has an Initial packet. A
//! ServerHello that goes ahead of its signature is mostly that, and with it up to 3.9 times of what had come was sent.

/// Of what has come, so much may be sent.
const FACTOR: u64 = 3;

/// The datagrams of one connection whose client has not proven its address, in bytes.
#[derive(Clone, Copy, Default)]
struct Datagrams {
    received: u64,
    sent: u64,
}

/// What the limit of one connection is made from, as long as there is one.
pub(super) struct Amplification(Option<Datagrams>);

impl Amplification {
    /// Of a connection whose client has proven its address by a token, or has not.
    pub(super) fn new(is_proven: bool) -> Self {
        Self((!is_proven).then(Datagrams::default))
    }

    /// A datagram of this size has come.
    pub(super) fn receives(&mut self, size: usize) {
        if let Some(datagrams) = &mut self.0 {
            datagrams.received += size as u64;
        }
    }

    /// A datagram of this size leaves.
    pub(super) fn sends(&mut self, size: usize) {
        if let Some(datagrams) = &mut self.0 {
            datagrams.sent += size as u64;
        }
    }

    /// How large the next datagram may be.
    pub(super) fn room(&mut self, quic: &quiche::Connection) -> usize {
        let Some(Datagrams { received, sent }) = self.0 else { return usize::MAX };
        let limit = received.saturating_mul(FACTOR);
        // It has sent more than quiche lets it before a packet proves the address, or has completed the handshake.
        if quic.is_established() || quic.stats().sent_bytes > limit {
            self.0 = None;
            return usize::MAX;
        }
        usize::try_from(limit.saturating_sub(sent)).unwrap_or(usize::MAX)
    }
}
