use super::{Place, RedisAddress, Source};
use std::{path::PathBuf, time::Duration};

/// How returning clients avoid a full handshake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resumption {
    /// Session tickets (RFC 5077; RFC 8446 section 4.6.1).
    pub tickets: TicketKeys,
    /// Where sessions with ids (TLS 1.2 and below) are kept.
    pub cache: SessionCache,
    /// Sessions that this process keeps at most; with 0, Redis is asked for each of them.
    pub cache_size: usize,
    /// How long a session may be resumed.
    pub lifetime: Duration,
    /// How long a ticket key encrypts; it is accepted for as long again.
    pub rotation: Duration,
    /// Whether clients may send requests before the handshake is complete (0-RTT, RFC 8446 section 2.3; RFC 8470).
    pub early_data: bool,
    /// How long a handshake waits for a session from Redis.
    pub lookup_timeout: Duration,
    /// What all gateways of a fleet know: seals sessions and ticket keys in Redis.
    pub fleet_secret: Option<(Source, Place)>,
    /// In place of the password in the address.
    pub redis_password: Option<(Source, Place)>,
    /// Whom to trust with `rediss://`; `None` uses the system's CAs.
    pub redis_ca: Option<(PathBuf, Place)>,
}

/// Where the keys of session tickets come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TicketKeys {
    /// No tickets.
    Off,
    /// Random ones of this process, rotated.
    Local,
    /// The fleet's, rotated by the fleet through Redis.
    Fleet(Place),
    /// Files as nginx has them: the first encrypts, the others decrypt.
    Files(Vec<Source>, Place),
}

/// Where sessions with ids are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SessionCache {
    /// Nowhere.
    Off,
    /// In this process.
    Memory,
    /// In Redis for the whole fleet, with those of this process in front.
    Redis(RedisAddress, Place),
}

impl TicketKeys {
    /// Why early data cannot be had with these and this cache.
    pub fn early_data_problem(&self, cache: &SessionCache) -> Option<&'static str> {
        match (self, cache) {
            (Self::Off, _) => Some("early data comes with session tickets, and these are off"),
            (_, SessionCache::Off) => Some(
                "early data counts once, and something must remember which has come: it needs a session cache, in memory or Redis",
            ),
            (Self::Files(..), SessionCache::Memory) => Some(
                "early data counts once among all gateways that have these ticket keys: it needs the session cache in Redis, or tickets that are local",
            ),
            _ => None,
        }
    }
}

impl Resumption {
    /// Every handshake is a full one.
    pub fn off() -> Self {
        Self { tickets: TicketKeys::Off, cache: SessionCache::Off, ..Self::default() }
    }

    /// Every file that is read.
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
