use super::{Place, RedisAddress, Source};
use std::{path::PathBuf, time::Duration};

/// TLS session resumption.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resumption {
    /// Session tickets (RFC 5077; RFC 8446 section 4.6.1).
    pub tickets: TicketKeys,
    /// Storage of sessions with IDs (TLS 1.2 and below).
    pub cache: SessionCache,
    /// Maximum number of sessions that this process stores; with 0, Redis is queried for each of them.
    pub cache_size: usize,
    /// Time for which a session may be resumed.
    pub lifetime: Duration,
    /// Time for which a ticket key encrypts; it is accepted for the same time afterwards.
    pub rotation: Duration,
    /// Whether clients may send requests before the handshake is complete (0-RTT, RFC 8446 section 2.3; RFC 8470).
    pub early_data: bool,
    /// Time that a handshake waits for a session from Redis.
    pub lookup_timeout: Duration,
    /// The shared secret of a fleet, which seals sessions and ticket keys in Redis.
    pub fleet_secret: Option<(Source, Place)>,
    /// The password, in place of the one in the address.
    pub redis_password: Option<(Source, Place)>,
    /// The trusted CAs with `rediss://`; `None` uses the system's CAs.
    pub redis_ca: Option<(PathBuf, Place)>,
}

/// The source of session ticket keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TicketKeys {
    /// No tickets.
    Off,
    /// Random keys of this process, rotated.
    Local,
    /// Keys of the fleet, rotated by the fleet through Redis.
    Fleet(Place),
    /// Files in nginx's format: the first encrypts, the others decrypt.
    Files(Vec<Source>, Place),
}

/// The storage of sessions with IDs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SessionCache {
    /// No storage.
    Off,
    /// Memory of this process.
    Memory,
    /// Redis, for the whole fleet, with a cache in this process.
    Redis(RedisAddress, Place),
}

impl TicketKeys {
    /// Returns the reason why early data is impossible with these keys and this cache, if any.
    pub fn early_data_problem(&self, cache: &SessionCache) -> Option<&'static str> {
        match (self, cache) {
            (Self::Off, _) => Some("early data needs session tickets, and these are off"),
            (_, SessionCache::Off) => {
                Some("early data needs a session cache, in memory or Redis, to detect replays")
            }
            (Self::Files(..), SessionCache::Memory) => Some(
                "early data with shared ticket keys needs the session cache in Redis, to detect replays \
                 across gateways; otherwise use local tickets",
            ),
            _ => None,
        }
    }
}

impl Resumption {
    /// Returns settings without resumption: every handshake is a full one.
    pub fn off() -> Self {
        Self { tickets: TicketKeys::Off, cache: SessionCache::Off, ..Self::default() }
    }

    /// Returns all files that are read.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let keys: &[Source] = match &self.tickets {
            TicketKeys::Files(files, _) => files,
            _ => &[],
        };
        let secrets = [&self.fleet_secret, &self.redis_password];
        keys.iter().chain(secrets.into_iter().flatten().map(|(source, _)| source))
    }
}

impl Default for Resumption {
    fn default() -> Self {
        Self {
            tickets: TicketKeys::Local,
            cache: SessionCache::Memory,
            cache_size: 20_480,
            lifetime: Duration::from_secs(12 * 3600),
            rotation: Duration::from_secs(12 * 3600),
            early_data: false,
            lookup_timeout: Duration::from_millis(20),
            fleet_secret: None,
            redis_password: None,
            redis_ca: None,
        }
    }
}
