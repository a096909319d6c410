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

    /// Returns whether quiche processing a packet of this datagram validates the address: it has Handshake packets
    /// alone, whose keys only a client has that has received the ServerHello (RFC 9000 section 8.1).
    pub(super) fn may_be_lifted_by(&self, datagram: &[u8]) -> bool {
        self.0.is_some() && has_only_handshake_packets(datagram)
    }

    /// Lifts the limit, because the address is validated.
    pub(super) fn lift(&mut self) {
        self.0 = None;
    }

    /// Returns the maximum size of the next datagram.
    pub(super) fn room(&mut self, quic: &quiche::Connection) -> usize {
        if quic.is_established() {
            self.lift();
        }
        let Some(Datagrams { received, sent }) = self.0 else { return usize::MAX };
        let limit = received.saturating_mul(FACTOR);
        usize::try_from(limit.saturating_sub(sent)).unwrap_or(usize::MAX)
    }
}

/// Returns whether a datagram consists of Handshake packets of QUIC version 1 (RFC 9000 section 17.2.4), after which a
/// 1-RTT packet may follow.
fn has_only_handshake_packets(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    let mut found = false;
    while let Some(first) = rest.first() {
        if first & LONG == 0 {
            return found;
        }
        let Some(after) = after_handshake_packet(rest) else { return false };
        (rest, found) = (after, true);
    }
    found
}

/// Form bit and type bits of the first byte, and their values in a Handshake packet.
const LONG: u8 = 0x80;
const LONG_TYPE: u8 = 0xb0;
const HANDSHAKE: u8 = 0xa0;

/// Returns the bytes after a Handshake packet; `None` if another packet comes first.
fn after_handshake_packet(packet: &[u8]) -> Option<&[u8]> {
    const VERSION_1: [u8; 4] = 1_u32.to_be_bytes();
    let (first, rest) = packet.split_first()?;
    let rest = rest.strip_prefix(&VERSION_1).filter(|_| first & LONG_TYPE == HANDSHAKE)?;
    // Destination and source connection ID.
    let rest = after_short(after_short(rest)?)?;
    let (length, rest) = variable_length(rest)?;
    rest.get(usize::try_from(length).ok()?..)
}

/// Returns the bytes after an item with a length of one byte.
fn after_short(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first()?;
    rest.get(usize::from(*length)..)
}

/// Splits an integer of variable length off (RFC 9000 section 16).
fn variable_length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let number =
        number[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::{has_only_handshake_packets, variable_length};

    /// Returns a packet with this first byte and version, IDs of two bytes and one, and contents of three bytes.
    fn packet(first: u8, version: u8) -> Vec<u8> {
        [&[first, 0, 0, 0, version, 2, 8, 9, 1, 7][..], &[0x40, 3], &[1, 2, 3]].concat()
    }

    #[test]
    fn handshake_packets_are_known_by_their_headers() {
        let (initial, handshake, short) = (packet(0xc3, 1), packet(0xe1, 1), vec![0x41, 8, 9, 1]);
        let only = |packets: &[&Vec<u8>]| {
            let datagram: Vec<u8> = packets.iter().flat_map(|packet| packet.iter().copied()).collect();
            has_only_handshake_packets(&datagram)
        };
        assert!(only(&[&handshake]) && only(&[&handshake, &handshake, &short]));
        assert!(!only(&[]) && !only(&[&short]) && !only(&[&initial]) && !only(&[&initial, &handshake]));
        assert!(!only(&[&handshake, &initial]) && !only(&[&packet(0xe1, 2)]) && !only(&[&packet(0xd1, 1)]));
        for cut in 1..handshake.len() {
            assert!(!has_only_handshake_packets(&handshake[..cut]), "{cut}");
        }
    }

    /// The examples of RFC 9000, appendix A.1.
    #[test]
    fn integers_have_one_to_eight_bytes() {
        for (bytes, number) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(variable_length(bytes), Some((number, &[][..])));
            assert_eq!(variable_length(&bytes[..bytes.len() - 1]), None);
        }
    }
}
