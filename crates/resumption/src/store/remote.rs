//! The fleet's sessions in Redis: sealed before they leave the process, looked up under a deadline, behind a breaker.

use super::{
    Claim, Lookup, Miss, Session, SessionId, SessionStore, StoreStatistics, UseId,
    uses::{REMEMBERED, Uses},
};
use crate::{Breaker, FleetError, FleetSecret, Redis};
use redis::{Cmd, Script};
use std::{
    future::Future,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// A store in Redis, for the fleet with this secret. Clones share it.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    redis: Redis,
    secret: FleetSecret,
    prefix: Vec<u8>,
    lifetime: Duration,
    deadline: Duration,
    breaker: Mutex<Breaker>,
    /// Uses seen by this process. They guard against a client that can delete keys in Redis, where a repeat might
    /// then count as the first use.
    uses: Mutex<Uses>,
    /// Read on every lookup in place of the lock.
    suspended: AtomicBool,
    under_way: AtomicUsize,
    written: AtomicU64,
    lost: AtomicU64,
}

/// All its keys are in one slot of a cluster.
static FIRST_USE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("first_use.lua")));

/// Maximum number of concurrent lookups and writes; a lookup above it is a miss, a write is lost.
const MOST_UNDER_WAY: usize = 4096;
/// Capacity of each generation of early-data uses remembered here, 32 bytes each.
const USES: usize = 100_000;
/// Timeout of a write; no handshake waits for it.
const WRITE: Duration = Duration::from_secs(1);

impl RedisStore {
    /// Keeps sessions for `lifetime`; a lookup ends after `deadline`.
    pub fn new(redis: Redis, secret: FleetSecret, lifetime: Duration, deadline: Duration) -> Self {
        let prefix = format!("quadrille:{}:session:", secret.namespace()).into_bytes();
        Self(Arc::new(Inner {
            redis,
            secret,
            prefix,
            lifetime,
            deadline,
            breaker: Mutex::default(),
            uses: Mutex::new(Uses::new(USES, Instant::now())),
            suspended: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }))
    }
}

impl SessionStore for RedisStore {
    fn get(&self, id: &SessionId) -> Lookup {
        let Some(turn) = Turn::take(&self.0) else { return Lookup::Miss(Miss::Unavailable) };
        let id = *id;
        Lookup::Pending(Box::pin(async move {
            let inner = &turn.0;
            let outcome = inner.under_deadline(inner.deadline, inner.read(&id)).await;
            match outcome {
                Some(Ok(Some(sealed))) => {
                    inner.secret.open(&purpose(&id), &sealed).map(Arc::new).ok_or(Miss::Damaged)
                }
                Some(Ok(None)) => Err(Miss::Unknown),
                Some(Err(_)) => Err(Miss::Unavailable),
                None => Err(Miss::Timeout),
            }
        }))
    }

    fn put(&self, id: &SessionId, session: Session) {
        let sealed = self.0.secret.seal(&purpose(id), &session);
        let (Some(sealed), Some(turn)) = (sealed, Turn::take(&self.0)) else {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let id = *id;
        tokio::spawn(async move {
            let inner = &turn.0;
            let outcome = inner.under_deadline(WRITE, inner.write(&id, sealed)).await;
            let counter = if matches!(outcome, Some(Ok(()))) { &inner.written } else { &inner.lost };
            counter.fetch_add(1, Ordering::Relaxed);
        });
    }

    fn claim(&self, id: &UseId) -> Claim {
        if self.0.uses.lock().unwrap_or_else(PoisonError::into_inner).repeats(id, Instant::now()) {
            return Claim::Now(false);
        }
        let Some(turn) = Turn::take(&self.0) else { return Claim::Now(false) };
        let id = *id;
        Claim::Pending(Box::pin(async move {
            let inner = &turn.0;
            matches!(inner.under_deadline(inner.deadline, inner.first_use(&id)).await, Some(Ok(true)))
        }))
    }

    fn warm(&self) {
        self.0.redis.warm();
    }

    fn statistics(&self) -> StoreStatistics {
        StoreStatistics {
            sessions: 0,
            written: self.0.written.load(Ordering::Relaxed),
            lost: self.0.lost.load(Ordering::Relaxed),
            suspended: self.0.suspended.load(Ordering::Relaxed),
        }
    }
}

/// Returns the purpose that a session is sealed for, which includes its id: Redis, or a client with access to it,
/// cannot pass one session off as another.
fn purpose(id: &SessionId) -> [u8; 40] {
    let mut purpose = *b"session ........ ........ ........ .....";
    purpose[8..].copy_from_slice(id);
    purpose
}

impl Inner {
    async fn read(&self, id: &SessionId) -> Result<Option<Vec<u8>>, FleetError> {
        let mut connection = self.redis.connection().await?;
        Ok(Cmd::get(self.key(id)).query_async(&mut connection).await?)
    }

    async fn write(&self, id: &SessionId, sealed: Vec<u8>) -> Result<(), FleetError> {
        let mut connection = self.redis.connection().await?;
        let milliseconds = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let mut command = Cmd::set(self.key(id), sealed);
        command.arg("PX").arg(milliseconds);
        Ok(command.query_async(&mut connection).await?)
    }

    async fn first_use(&self, id: &UseId) -> Result<bool, FleetError> {
        let name = format!("quadrille:{}:{{early-data}}:", self.secret.namespace());
        let mut connection = self.redis.connection().await?;
        let mut call = FIRST_USE.key(format!("{name}memory"));
        call.key(format!("{name}even")).key(format!("{name}odd")).arg(id).arg(REMEMBERED.as_secs());
        Ok(call.invoke_async(&mut connection).await?)
    }

    fn key(&self, id: &SessionId) -> Vec<u8> {
        [&self.prefix[..], id].concat()
    }

    /// Returns the outcome, or `None` if the deadline passed; the breaker records it.
    async fn under_deadline<T>(
        &self,
        deadline: Duration,
        question: impl Future<Output = Result<T, FleetError>>,
    ) -> Option<Result<T, FleetError>> {
        let outcome = timeout(deadline, question).await.ok();
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(outcome, Some(Ok(_))) {
            if breaker.answered() {
                tracing::info!(redis = %self.redis, "the session store responds again");
            }
        } else {
            // Errors and stalls do not imply that a new connection fails. A slow response does not fail this one.
            if outcome.is_some() || breaker.is_open() {
                self.redis.discard();
            }
            if breaker.failed(Instant::now()) {
                let error = outcome.as_ref().and_then(|outcome| outcome.as_ref().err());
                let error = error.map_or_else(|| "no response in time".to_owned(), ToString::to_string);
                tracing::warn!(redis = %self.redis, error, "the session store does not respond; clients get full handshakes");
            }
        }
        self.suspended.store(breaker.is_open(), Ordering::Relaxed);
        outcome
    }
}

/// A slot among the concurrent operations, released on drop.
struct Turn(Arc<Inner>);

impl Turn {
    fn take(inner: &Arc<Inner>) -> Option<Self> {
        let open = inner.suspended.load(Ordering::Relaxed);
        let refused = || !inner.breaker.lock().unwrap_or_else(PoisonError::into_inner).allows(Instant::now());
        if open && refused() {
            return None;
        }
        let turn = Self(Arc::clone(inner));
        let before = inner.under_way.fetch_add(1, Ordering::Relaxed);
        (before < MOST_UNDER_WAY).then_some(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
