//! Records that a fleet shares in Redis: sealed with the fleet secret, read by all, and written by the one member that
//! has the lease.
//!
//! The lease ends by itself, so that a member that dies stops nobody. A lease has a fencing token, larger than all before
//! it; Redis writes a record and looks at the lease in one step, so that who had the lease before, and does not know that it
//! has ended, changes nothing any more. A record is sealed for its name and its version: nobody without the secret can pass
//! one off as another, or an old one off as a newer one.

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

/// The right to write, for as long as it is renewed.
#[derive(Debug)]
pub struct Lease {
    value: String,
    /// Of what was written last under it.
    version: Mutex<Version>,
}

/// What is under one name.
#[derive(Debug)]
pub enum Record {
    /// Nothing.
    Absent,
    /// Bytes that this fleet has not sealed for this name.
    Damaged,
    /// A record.
    Sealed(Version, Zeroizing<Vec<u8>>),
}

/// A member that has not been heard of for this long is not waited for.
pub const SILENCE: Duration = Duration::from_secs(5);
/// How long a record stays without being written again.
const KEEP: Duration = Duration::from_secs(180 * 24 * 3600);
/// The largest record; what is longer is damaged.
const LARGEST: usize = 256 * 1024;
/// The digits of a version in front of what is sealed.
const DIGITS: usize = 20;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew.lua")));
static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("write.lua")));
static ATTEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("attend.lua")));
static BEHIND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("behind.lua")));

impl Records {
    /// The records in this area of the fleet that has the secret.
    ///
    /// # Errors
    /// If BoringSSL has no random bytes for this member's name.
    pub fn new(redis: Redis, secret: FleetSecret, area: &'static str) -> Result<Self, FleetError> {
        Ok(Self { redis, secret, area, member: random()? })
    }

    /// Tells fleets apart.
    pub fn namespace(&self) -> &str {
        self.secret.namespace()
    }

    /// The lease, unless another member has it. Its versions are newer than `known`.
    ///
    /// # Errors
    /// If Redis cannot be reached or does not answer as it should.
    pub async fn acquire(&self, known: Version, term: Duration) -> Result<Option<Lease>, FleetError> {
        let holder = random()?;
        let mut call = ACQUIRE.key(self.key("lease"));
        call.key(self.key("token")).arg(&holder).arg(milliseconds(term)).arg(known.token());
        let Some(token): Option<String> = self.ask(&call).await? else { return Ok(None) };
        let version = token.parse().ok().and_then(Version::first).filter(|version| *version > known);
        let version = version.ok_or_else(|| FleetError::Unreachable("no fencing token".into()))?;
        Ok(Some(Lease { value: format!("{token}:{holder}"), version: Mutex::new(version) }))
    }

    /// Has the lease go on; `false` if it has ended.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn renew(&self, lease: &Lease, term: Duration) -> Result<bool, FleetError> {
        let mut call = RENEW.key(self.key("lease"));
        self.ask(call.arg(&lease.value).arg(milliseconds(term))).await
    }

    /// Ends the lease.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire). Then it ends by itself.
    pub async fn release(&self, lease: Lease) -> Result<(), FleetError> {
        self.renew(&lease, Duration::ZERO).await.map(drop)
    }

    /// Writes a record; `None`, and nothing is written, if the lease has ended.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
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

    /// The records of these names, in their order.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn read(&self, names: &[String]) -> Result<Vec<Record>, FleetError> {
        let mut pipeline = Pipeline::with_capacity(names.len());
        for name in names {
            // Whatever somebody has put there, no more of it is taken.
            let mut command = Cmd::new();
            command.arg("GETRANGE").arg(self.record(name)).arg(0).arg(LARGEST);
            pipeline.add_command(command);
        }
        let mut connection = self.redis.connection().await?;
        let values: Vec<Vec<u8>> = self.redis.checked(pipeline.query_async(&mut connection).await)?;
        if values.len() != names.len() {
            return Err(FleetError::Unreachable("not as many answers as questions".into()));
        }
        Ok(names.iter().zip(values).map(|(name, value)| self.opened(name, &value)).collect())
    }

    /// Says that this member is alive and has all records up to a version. Gives the newest version; `None` if there is no
    /// record.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn attend(&self, has: Version) -> Result<Option<Version>, FleetError> {
        let mut call = ATTEND.key(self.key("members"));
        call.key(self.key("newest")).arg(&self.member).arg(has.to_string());
        let newest: String = self.ask(call.arg(milliseconds(SILENCE))).await?;
        Ok(newest.parse().ok())
    }

    /// How many members that are alive have not got this version yet.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
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

/// Whether they are the very same, with their connections.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.member == other.member
    }
}

impl Eq for Records {}

/// Which fleet, and where.
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
