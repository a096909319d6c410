//! The ring of ticket keys that a fleet shares: published in Redis, sealed with the fleet secret, changed by
//! compare-and-set.

use crate::{
    FleetError, FleetSecret, Redis,
    keys::{Ring, Schedule, UnixTime, decode, encode},
};
use redis::{Cmd, Script};
use std::fmt;

/// A fleet's published ring.
#[derive(Clone, Debug)]
pub struct Fleet {
    redis: Redis,
    secret: FleetSecret,
    name: String,
}

/// Maximum number of attempts. A change by another member between read and write is rare; many in a row are a fault.
const TRIES: usize = 8;
const PURPOSE: &[u8] = b"ticket keys";

/// Replaces the value if it is still the one that was read; an empty string means that there was no value.
const COMPARE_AND_SET: &str = "
    if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
    return 1";

impl Fleet {
    /// Returns a handle to the ring of the fleet with this secret.
    pub fn new(redis: Redis, secret: FleetSecret) -> Self {
        let name = format!("quadrille:{}:ticket-keys", secret.namespace());
        Self { redis, secret, name }
    }

    /// Returns the current ring for a member that holds `own`: merged with the published ring, advanced, and
    /// published again if that changed it. A published ring that cannot be opened is ignored.
    ///
    /// # Errors
    /// If Redis cannot be reached or sends an unexpected response.
    pub async fn agree(
        &self,
        own: Option<&Ring>,
        now: UnixTime,
        schedule: Schedule,
    ) -> Result<Ring, FleetError> {
        self.change(schedule, |published| Ok(Ring::agreed(own, published, now, schedule))).await
    }

    /// Publishes a new key that takes over once every gateway has seen it.
    ///
    /// # Errors
    /// The errors of [`agree`](Self::agree), and `NoRing` if no ring is published.
    pub async fn rotate(&self, now: UnixTime, schedule: Schedule) -> Result<Ring, FleetError> {
        let none = || FleetError::NoRing(self.secret.namespace().to_owned());
        self.change(schedule, |published| Ok(published.ok_or_else(none)?.rotated(now, schedule))).await
    }

    /// Returns the published ring.
    ///
    /// # Errors
    /// The errors of [`rotate`](Self::rotate).
    pub async fn published(&self) -> Result<Ring, FleetError> {
        let none = || FleetError::NoRing(self.secret.namespace().to_owned());
        self.opened(&self.read().await?).ok_or_else(none)
    }

    async fn change(
        &self,
        schedule: Schedule,
        change: impl Fn(Option<&Ring>) -> Result<Ring, FleetError>,
    ) -> Result<Ring, FleetError> {
        for _ in 0..TRIES {
            let read = self.read().await?;
            let published = self.opened(&read);
            let ring = change(published.as_ref())?;
            let unchanged = published.is_some_and(|published| published.same(&ring));
            if unchanged || self.replace(&read, &ring, schedule).await? {
                return Ok(ring);
            }
        }
        Err(FleetError::Busy)
    }

    async fn read(&self) -> Result<Vec<u8>, FleetError> {
        let mut connection = self.redis.connection().await?;
        let read: Result<Option<Vec<u8>>, _> = Cmd::get(&self.name).query_async(&mut connection).await;
        Ok(self.redis.checked(read)?.unwrap_or_default())
    }

    fn opened(&self, sealed: &[u8]) -> Option<Ring> {
        let ring = self.secret.open(PURPOSE, sealed).and_then(|bytes| decode(&bytes));
        if ring.is_none() && !sealed.is_empty() {
            tracing::warn!(redis = %self.redis, name = self.name, "the stored ticket keys are not this fleet's; they are replaced");
        }
        ring
    }

    /// Writes the ring with an expiry of four rotations: a fleet that is down for longer starts with a new ring.
    async fn replace(&self, read: &[u8], ring: &Ring, schedule: Schedule) -> Result<bool, FleetError> {
        let keep = (schedule.rotation * 4).as_millis().max(60_000);
        let sealed = self.secret.seal(PURPOSE, &encode(ring)).ok_or(FleetError::Busy)?;
        let script = Script::new(COMPARE_AND_SET);
        let mut connection = self.redis.connection().await?;
        let keep = u64::try_from(keep).unwrap_or(u64::MAX);
        let mut call = script.key(&self.name);
        let replaced = call.arg(read).arg(sealed).arg(keep).invoke_async(&mut connection).await;
        self.redis.checked(replaced)
    }
}

/// Shows the namespace and the address.
impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.secret.namespace(), self.redis)
    }
}
