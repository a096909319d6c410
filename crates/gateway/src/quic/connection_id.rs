//! Connection ids that the gateway gives out (RFC 9000 section 5.1).
//!
//! They name the event loop that has the connection, so that a datagram which the kernel has given to another one (its
//! client has moved) finds its way. Nobody else can read that from them, or tell two ids of one connection from those of
//! two: the number is masked by a keyed hash of the rest, which is random.

use quiche::ConnectionId;
use std::hash::{BuildHasher, RandomState};

/// Bytes.
pub(super) const LENGTH: usize = 16;
const RANDOM: usize = LENGTH - 2;

/// Makes ids, and reads those that it has made.
#[derive(Debug, Default)]
pub(super) struct ConnectionIds {
    mask: RandomState,
}

impl ConnectionIds {
    /// A new id for a connection of this event loop.
    pub(super) fn make(&self, event_loop: u16) -> ConnectionId<'static> {
        let mut id = [0; LENGTH];
        // Without random bytes there is no TLS either; a repeated id is found out where it is registered.
        let _ = boring::rand::rand_bytes(&mut id[..RANDOM]);
        let masked = event_loop ^ self.mask(&id[..RANDOM]);
        id[RANDOM..].copy_from_slice(&masked.to_be_bytes());
        ConnectionId::from_vec(id.to_vec())
    }

    /// The event loop that an id names. An id that was not made here names any.
    pub(super) fn event_loop(&self, id: &[u8]) -> Option<u16> {
        let (random, masked) = id.split_at_checked(RANDOM)?;
        Some(u16::from_be_bytes(masked.try_into().ok()?) ^ self.mask(random))
    }

    fn mask(&self, random: &[u8]) -> u16 {
        self.mask.hash_one(random) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_event_loop_and_shows_it_to_nobody() {
        let ids = ConnectionIds::default();
        let mut shown = std::collections::HashSet::new();
        for event_loop in [0, 1, 7, 65_535] {
            for _ in 0..100 {
                let id = ids.make(event_loop);
                assert_eq!(id.len(), LENGTH);
                assert_eq!(ids.event_loop(&id), Some(event_loop));
                shown.insert(id[RANDOM..].to_vec());
            }
        }
        assert!(shown.len() > 300, "what is shown does not repeat: {}", shown.len());
        assert_eq!(ids.event_loop(&[1; LENGTH - 1]), None);
        let of_others = (0..1000).filter(|_| ids.event_loop(&ConnectionIds::default().make(0)) == Some(0));
        assert!(of_others.count() < 10, "another process's ids say nothing here");
    }
}
