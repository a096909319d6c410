//! Serialisation of a ring, to be sealed and published: `version 1`, then for each key `from` (milliseconds,
//! big-endian) and the 80 bytes of its file.

use super::{Ring, Scheduled, TicketKey, UnixTime};
use std::{sync::Arc, time::Duration};
use zeroize::Zeroizing;

const VERSION: u8 = 1;
const ENTRY: usize = 8 + TicketKey::LENGTH;

/// Serialises a ring whose keys have 80 bytes each, as all random keys do.
pub(crate) fn encode(ring: &Ring) -> Zeroizing<Vec<u8>> {
    // Allocated at its final size: growing would leave copies of key material behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(1 + ring.keys().len() * ENTRY));
    bytes.push(VERSION);
    for Scheduled { key, from } in ring.keys() {
        let milliseconds = u64::try_from(from.as_millis()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&milliseconds.to_be_bytes());
        bytes.extend_from_slice(&key.to_file_bytes());
    }
    bytes
}

/// Parses a ring; `None` if the bytes are malformed.
pub(crate) fn decode(bytes: &[u8]) -> Option<Ring> {
    let entries = bytes.strip_prefix(&[VERSION])?;
    if entries.len() % ENTRY != 0 {
        return None;
    }
    let scheduled = |entry: &[u8]| {
        let (from, key) = entry.split_at(8);
        let from: UnixTime = Duration::from_millis(u64::from_be_bytes(from.try_into().ok()?));
        Some(Scheduled { key: Arc::new(TicketKey::from_file_bytes(key).ok()?), from })
    };
    Ring::from_keys(entries.chunks_exact(ENTRY).map(scheduled).collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Schedule;

    #[test]
    fn a_ring_survives() {
        let now = Duration::from_millis(1_800_000_000_123);
        let schedule = Schedule { rotation: Duration::from_secs(60) };
        let ring = Ring::provisional().begun(now).advanced(now, schedule).rotated(now, schedule);
        let copy = decode(&encode(&ring)).unwrap();
        assert!(copy.same(&ring));
        assert_eq!(copy.encrypting(now).key.hmac(), ring.encrypting(now).key.hmac());
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        let bytes = encode(&Ring::provisional());
        assert!(decode(&bytes[..bytes.len() - 1]).is_none());
        assert!(decode(&bytes[..1]).is_none());
        assert!(decode(&[]).is_none());
        assert!(decode(&[2; 1 + ENTRY]).is_none());
    }
}
