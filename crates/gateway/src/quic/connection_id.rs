//! Connection ids that the gateway gives out (RFC 9000 section 5.1).
//!
//! They name the event loop that has the connection, so that a datagram which the kernel has given to another one (its
//! client has moved) finds its way; and which of the processes that follow each other has it, for when the sockets are the
//! next one's already. Nobody else can read that from them, or tell two ids of one connection from those of two: the number
//! is masked by a keyed hash of the rest, which is random.

use quiche::ConnectionId;
use siphasher::sip::SipHasher24;

/// Bytes.
pub(super) const LENGTH: usize = 16;
const RANDOM: usize = LENGTH - 2;

/// Generations are counted with so many bits, and event loops with the others of 16.
const GENERATION_BITS: u32 = 6;
const GENERATIONS: u16 = 1 << GENERATION_BITS;

/// How many processes before this one may still have connections.
const ANCESTORS: u16 = 3;

/// Makes ids, and reads those that it has made.
#[derive(Debug)]
pub(super) struct ConnectionIds {
    lineage: Lineage,
    mask: SipHasher24,
}

/// What processes that hand their sockets on to each other have in common. It guards no secret: who knows it can tell which
/// event loop has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Lineage {
    mask: [u8; 16],
    /// Counts the processes, and begins again at some point.
    generation: u16,
}

/// Who has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// This event loop of this process.
    EventLoop(u16),
    /// A process before this one, which hands its sockets on.
    Predecessor,
    /// A process after this one, which has the sockets already.
    Successor,
    /// Nobody who is known: the id was not made here.
    Unknown,
}

impl Lineage {
    /// A first process. `None` if there are no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let mut mask = [0; 16];
        boring::rand::rand_bytes(&mut mask).ok()?;
        Some(Self { mask, generation: 0 })
    }

    /// The process after this one.
    pub(crate) fn next(self) -> Self {
        Self { generation: (self.generation + 1) % GENERATIONS, ..self }
    }
}

impl ConnectionIds {
    pub(super) fn new(lineage: Lineage) -> Self {
        let mask = SipHasher24::new_with_key(&lineage.mask);
        Self { lineage: Lineage { generation: lineage.generation % GENERATIONS, ..lineage }, mask }
    }

    /// A new id for a connection of this event loop.
    pub(super) fn make(&self, event_loop: u16) -> ConnectionId<'static> {
        let mut id = [0; LENGTH];
        // Without random bytes there is no TLS either; a repeated id is found out where it is registered.
        let _ = boring::rand::rand_bytes(&mut id[..RANDOM]);
        let named = (event_loop << GENERATION_BITS) | self.lineage.generation;
        let masked = named ^ self.mask(&id[..RANDOM]);
        id[RANDOM..].copy_from_slice(&masked.to_be_bytes());
        ConnectionId::from_vec(id.to_vec())
    }

    /// Whose connection an id names, of so many event loops. An id that was not made here names any.
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
    fn an_id_names_its_event_loop_and_shows_it_to_nobody() {
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
        assert!(shown.len() > 300, "what is shown does not repeat: {}", shown.len());
        assert_eq!(ids.home(&[1; LENGTH - 1], 1024), Home::Unknown);
        assert_eq!(ids.home(&ids.make(7), 7), Home::Unknown);
    }

    #[test]
    fn ids_of_others_are_hardly_ever_taken_for_ones_of_this_line() {
        let ids = ids();
        let known = (0..10_000).filter(|_| ids.home(&self::ids().make(0), 16) != Home::Unknown);
        // 7 generations of 64, 16 event loops of 1024: one in 585.
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
        assert_eq!((homes[63], lineage), (Home::EventLoop(3), first), "numbers begin again");
    }
}
