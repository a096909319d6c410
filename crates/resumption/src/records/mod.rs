//! Records that a fleet shares in Redis: sealed with the fleet secret, read by all members, and written by the one
//! member that holds the lease.
//!
//! A lease expires by itself, so a member that dies blocks no other. A lease has a fencing token, larger than all
//! before it. Redis checks the lease and writes the record in one step, so a former holder that has not noticed the
//! expiry cannot write. A record is sealed for its name and its version: without the secret, one record cannot be
//! passed off as another, or an old one as a newer one.

mod version;

pub use version::Version;

use crate::{FleetError, FleetSecret, Redis};
use redis::{Cmd, Pipeline, Script, ScriptInvocation};
use std::{
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};
use zeroize::Zeroizing;

/// The records of one kind.
#[derive(Clone, Debug)]
pub struct Records {
    redis: Redis,
    secret: FleetSecret,
    area: &'static str,
    member: String,
}

/// The right to write records, until it expires or is released.
#[derive(Debug)]
pub struct Lease {
    value: String,
    /// Version of the last record written under this lease.
    version: Mutex<Version>,
}

/// The state of a record.
#[derive(Debug)]
pub enum Record {
    /// There is no record of this name.
    Absent,
    /// The bytes were not sealed by this fleet for this name.
    Damaged,
    /// An authentic record.
    Sealed(Version, Zeroizing<Vec<u8>>),
}

/// Time after which a member without a sign of life is no longer waited for.
pub const SILENCE: Duration = Duration::from_secs(5);
/// Lifetime of a record that is not written again.
const KEEP: Duration = Duration::from_secs(180 * 24 * 3600);
/// Maximum size of a record; longer values count as damaged.
const LARGEST: usize = 256 * 1024;
/// Number of digits of the version in front of the sealed bytes.
const DIGITS: usize = 20;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew.lua")));
static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("write.lua")));
static ATTEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("attend.lua")));
static BEHIND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("behind.lua")));

impl Records {
    /// Creates a handle to the records of this area, for the fleet with this secret.
    ///
    /// # Errors
    /// If BoringSSL has no random bytes for this member's name.
    pub fn new(redis: Redis, secret: FleetSecret, area: &'static str) -> Result<Self, FleetError> {
        Ok(Self { redis, secret, area, member: random()? })
    }

    /// Returns the fleet's namespace, which distinguishes fleets.
    pub fn namespace(&self) -> &str {
        self.secret.namespace()
    }

    /// Acquires the lease; `None` if another member holds it. Its versions are newer than `known`.
    ///
    /// # Errors
    /// If Redis cannot be reached or sends an unexpected response.
    pub async fn acquire(&self, known: Version, term: Duration) -> Result<Option<Lease>, FleetError> {
        let holder = random()?;
        let mut call = ACQUIRE.key(self.key("lease"));
        call.key(self.key("token")).arg(&holder).arg(milliseconds(term)).arg(known.token());
        let Some(token): Option<String> = self.ask(&call).await? else { return Ok(None) };
        let version = token.parse().ok().and_then(Version::first).filter(|version| *version > known);
        let version = version.ok_or_else(|| FleetError::Unreachable("no fencing token".into()))?;
        Ok(Some(Lease { value: format!("{token}:{holder}"), version: Mutex::new(version) }))
    }

    /// Renews the lease; `false` if it has expired.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire).
    pub async fn renew(&self, lease: &Lease, term: Duration) -> Result<bool, FleetError> {
        let mut call = RENEW.key(self.key("lease"));
        self.ask(call.arg(&lease.value).arg(milliseconds(term))).await
    }

    /// Releases the lease.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire). The lease then expires by itself.
    pub async fn release(&self, lease: Lease) -> Result<(), FleetError> {
        self.renew(&lease, Duration::ZERO).await.map(drop)
    }

    /// Writes a record; returns `None` and writes nothing if the lease has expired.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire).
    pub async fn write(
        &self,
        lease: &Lease,
        name: &str,
        content: &[u8],
    ) -> Result<Option<Version>, FleetError> {
        let Some(version) = lease.next() else { return Ok(None) };
        let sealed = self.secret.seal(&self.purpose(name, version), content).ok_or(FleetError::Busy)?;
        let record = [version.to_string().as_bytes(), &sealed].concat();
        let mut call = WRITE.key(self.key("lease"));
        call.key(self.record(name)).key(self.key("newest"));
        call.arg(&lease.value).arg(version.to_string()).arg(record).arg(milliseconds(KEEP));
        let written: bool = self.ask(&call).await?;
        Ok(written.then_some(version))
    }

    /// Reads the records of these names, in their order.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire).
    pub async fn read(&self, names: &[String]) -> Result<Vec<Record>, FleetError> {
        let mut pipeline = Pipeline::with_capacity(names.len());
        for name in names {
            // Reads at most `LARGEST` bytes, however long the stored value is.
            let mut command = Cmd::new();
            command.arg("GETRANGE").arg(self.record(name)).arg(0).arg(LARGEST);
            pipeline.add_command(command);
        }
        let mut connection = self.redis.connection().await?;
        let values: Vec<Vec<u8>> = self.redis.checked(pipeline.query_async(&mut connection).await)?;
        if values.len() != names.len() {
            return Err(FleetError::Unreachable("fewer responses than requests".into()));
        }
        Ok(names.iter().zip(values).map(|(name, value)| self.opened(name, &value)).collect())
    }

    /// Reports that this member is alive and has all records up to a version. Returns the newest version; `None` if
    /// there is no record.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire).
    pub async fn attend(&self, has: Version) -> Result<Option<Version>, FleetError> {
        let mut call = ATTEND.key(self.key("members"));
        call.key(self.key("newest")).arg(&self.member).arg(has.to_string());
        let newest: String = self.ask(call.arg(milliseconds(SILENCE))).await?;
        Ok(newest.parse().ok())
    }

    /// Returns the number of live members that do not have this version yet.
    ///
    /// # Errors
    /// The errors of [`acquire`](Self::acquire).
    pub async fn behind(&self, version: Version) -> Result<usize, FleetError> {
        let mut call = BEHIND.key(self.key("members"));
        self.ask(call.arg(version.to_string()).arg(milliseconds(SILENCE))).await
    }

    fn opened(&self, name: &str, value: &[u8]) -> Record {
        if value.is_empty() {
            return Record::Absent;
        }
        let opened = value.split_at_checked(DIGITS).filter(|_| value.len() <= LARGEST).and_then(
            |(version, sealed)| {
                let version = std::str::from_utf8(version).ok()?.parse().ok()?;
                Some((version, self.secret.open(&self.purpose(name, version), sealed)?))
            },
        );
        opened.map_or(Record::Damaged, |(version, content)| Record::Sealed(version, content))
    }

    fn purpose(&self, name: &str, version: Version) -> Vec<u8> {
        format!("record 1 {} {version} {name}", self.area).into_bytes()
    }

    /// All keys are in one slot of a cluster.
    fn key(&self, what: &str) -> String {
        format!("quadrille:{}:{{{}}}:{what}", self.secret.namespace(), self.area)
    }

    fn record(&self, name: &str) -> String {
        self.key(&format!("record:{name}"))
    }

    async fn ask<T: redis::FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T, FleetError> {
        let mut connection = self.redis.connection().await?;
        self.redis.checked(call.invoke_async(&mut connection).await)
    }
}

impl Lease {
    fn next(&self) -> Option<Version> {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        *version = version.next()?;
        Some(*version)
    }
}

/// Compares identity: both handles share their connections.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.member == other.member
    }
}

impl Eq for Records {}

/// Shows the namespace and the address.
impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.secret.namespace(), self.redis)
    }
}

fn random() -> Result<String, FleetError> {
    let mut bytes = [0; 16];
    boring::rand::rand_bytes(&mut bytes).map_err(|error| FleetError::Unreachable(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
