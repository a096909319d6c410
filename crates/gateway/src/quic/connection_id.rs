//! Connection IDs issued by the gateway (RFC 9000 section 5.1).
//!
//! An ID names the event loop of the connection, so that a datagram that the kernel delivers to another event loop
//! (its client has migrated) is passed on. It also names the process generation, for datagrams that arrive when the
//! sockets belong to the successor process. Third parties cannot read this, nor link two IDs of one connection: the
//! number is masked by a keyed hash of the rest, which is random.

use quiche::ConnectionId;
use siphasher::sip::SipHasher24;

/// Length of an ID in bytes.
pub(super) const LENGTH: usize = 16;
const RANDOM: usize = LENGTH - 2;

/// Bits of the process generation; the remaining ones of 16 are the event loop.
const GENERATION_BITS: u32 = 6;
const GENERATIONS: u16 = 1 << GENERATION_BITS;

/// Number of previous processes that may still have connections.
const ANCESTORS: u16 = 3;

/// Creates IDs, and decodes its own.
#[derive(Debug)]
pub(super) struct ConnectionIds {
    lineage: Lineage,
    mask: SipHasher24,
}

/// Identity shared by processes that hand their sockets on to each other. It protects no secret: a holder can tell
/// the event loop of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Lineage {
    mask: [u8; 16],
    /// Generation of the process; it wraps around.
    generation: u16,
}

/// Owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// This event loop of this process.
    EventLoop(u16),
    /// A previous process, which has handed its sockets on.
    Predecessor,
    /// A successor process, which has the sockets already.
    Successor,
    /// Unknown: the ID was not issued here.
    Unknown,
}

impl Home {
    /// Returns whether a datagram with this ID is left to the successor process: the sockets are being handed over, and
    /// a stateless reset would end a connection there. A new client chooses an ID itself, by chance such a one, and
    /// repeats it in every attempt.
    pub(super) fn may_be_served_by_successor(self, is_of_new_client: bool) -> bool {
        self == Self::Successor && !is_of_new_client
    }
}

impl Lineage {
    /// Creates the identity of a first process. Returns `None` if there are no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let mut mask = [0; 16];
        boring::rand::rand_bytes(&mut mask).ok()?;
        Some(Self { mask, generation: 0 })
    }

    /// Returns the identity of the successor process.
    pub(crate) fn next(self) -> Self {
        Self { generation: (self.generation + 1) % GENERATIONS, ..self }
    }
}

impl ConnectionIds {
    pub(super) fn new(lineage: Lineage) -> Self {
        let mask = SipHasher24::new_with_key(&lineage.mask);
        Self { lineage: Lineage { generation: lineage.generation % GENERATIONS, ..lineage }, mask }
    }

    /// Creates an ID for a connection of this event loop.
    pub(super) fn make(&self, event_loop: u16) -> ConnectionId<'static> {
        let mut id = [0; LENGTH];
        // Without random bytes TLS fails too; a repeated ID is detected when it is registered.
        let _ = boring::rand::rand_bytes(&mut id[..RANDOM]);
        let named = (event_loop << GENERATION_BITS) | self.lineage.generation;
        let masked = named ^ self.mask(&id[..RANDOM]);
        id[RANDOM..].copy_from_slice(&masked.to_be_bytes());
        ConnectionId::from_vec(id.to_vec())
    }

    /// Returns the owner of the connection with this ID. An ID that was not issued here yields an arbitrary one.
    pub(super) fn home(&self, id: &[u8], event_loops: usize) -> Home {
        let Some((random, masked)) = id.split_at_checked(RANDOM) else { return Home::Unknown };
        let Ok(masked) = masked.try_into() else { return Home::Unknown };
        let named = u16::from_be_bytes(masked) ^ self.mask(random);
        let (event_loop, generation) = (named >> GENERATION_BITS, named % GENERATIONS);
        if usize::from(event_loop) >= event_loops {
            return Home::Unknown;
        }
        match (self.lineage.generation + GENERATIONS - generation) % GENERATIONS {
            0 => Home::EventLoop(event_loop),
            1..=ANCESTORS => Home::Predecessor,
            after if after >= GENERATIONS - ANCESTORS => Home::Successor,
            _ => Home::Unknown,
        }
    }

    fn mask(&self, random: &[u8]) -> u16 {
        self.mask.hash(random) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> ConnectionIds {
        ConnectionIds::new(Lineage::new().unwrap())
    }

    #[test]
    fn an_id_names_its_event_loop_and_conceals_it() {
        let ids = ids();
        let mut shown = std::collections::HashSet::new();
        for event_loop in [0, 1, 7, 1023] {
            for _ in 0..100 {
                let id = ids.make(event_loop);
                assert_eq!(id.len(), LENGTH);
                assert_eq!(ids.home(&id, 1024), Home::EventLoop(event_loop));
                shown.insert(id[RANDOM..].to_vec());
            }
        }
        assert!(shown.len() > 300, "the visible part does not repeat: {}", shown.len());
        assert_eq!(ids.home(&[1; LENGTH - 1], 1024), Home::Unknown);
        assert_eq!(ids.home(&ids.make(7), 7), Home::Unknown);
    }

    #[test]
    fn ids_of_others_are_hardly_ever_taken_for_ones_of_this_line() {
        let ids = ids();
        let known = (0..10_000).filter(|_| ids.home(&self::ids().make(0), 16) != Home::Unknown);
        // There are 7 of 64 generations and 16 of 1024 event loops: one in 585.
        assert!(known.count() < 60);
    }

    #[test]
    fn an_id_of_a_process_before_is_known_as_one_until_it_is_long_gone() {
        let first = Lineage::new().unwrap();
        let id = ConnectionIds::new(first).make(3);
        let mut lineage = first;
        let mut homes = Vec::new();
        for _ in 0..GENERATIONS {
            lineage = lineage.next();
            homes.push(ConnectionIds::new(lineage).home(&id, 16));
        }
        assert_eq!(homes[..3], [Home::Predecessor; 3]);
        assert_eq!(homes[3..60], [Home::Unknown; 57]);
        assert_eq!(homes[60..63], [Home::Successor; 3]);
        assert_eq!((homes[63], lineage), (Home::EventLoop(3), first), "numbers wrap around");
    }

    #[test]
    fn a_new_client_may_choose_an_id_of_the_successor() {
        let successor = ConnectionIds::new(Lineage { mask: [7; 16], generation: 1 });
        let home = ConnectionIds::new(Lineage { mask: [7; 16], generation: 0 }).home(&successor.make(0), 1);
        assert_eq!(home, Home::Successor);
        assert_eq!([true, false].map(|is_new| home.may_be_served_by_successor(is_new)), [false, true]);
        assert!(!Home::Unknown.may_be_served_by_successor(false));
    }
}
