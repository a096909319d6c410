//! Client side: private-key operations computed by other machines.
//!
//! A [`Client`] is one pool for a process. Each event loop that uses it has one connection to each server: operations
//! and results do not change threads, and the operations of one turn of the loop share a frame. Process-wide
//! knowledge about servers, such as a wrong result, is shared.
//!
//! - `dispatch`: the server for each operation, and failover; no I/O. `link`, `latency`: its knowledge of servers.
//! - `connect`, `connection`: drive `session` on tokio; `local_pool`: the connections of one event loop.
//! - `fleet`, `shared`: state of the process; `job`: an operation.
//! - `key_change`: generation and removal of keys; `probe`: availability, for operators.

mod connect;
mod connection;
mod dispatch;
#[cfg(test)]
mod dispatch_tests;
mod fleet;
mod job;
mod key_change;
mod latency;
mod link;
mod local_pool;
mod metrics;
mod probe;
mod settings;
mod shared;

pub use connect::{ConnectError, Connected, Connector};
pub use dispatch::Failure;
pub use job::{Origin, RemoteKey};
pub use key_change::{KeyChangeError, Refusal};
pub use probe::{Pong, ping};
pub use quadrille_config::model::key_server::Protocol;
pub use settings::{FailoverPolicy, Settings};

use crate::wire::{ErrorCode, MAX_PAYLOAD, Ski, opcode};
use boring::error::ErrorStack;
use fleet::Fleet;
use job::Job;
use local_pool::LocalPool;
use quadrille_engine::{KeyType, Operation, Zeroizing};
use shared::Shared;
use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

/// Pool of connections to key servers. Clones share it; when the last is dropped, its connections close.
#[derive(Clone)]
pub struct Client(Arc<Owner>);

/// Only clones are equal.
impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Client {}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.0.shared.settings.servers)
    }
}

/// Future of a result. Dropping it withdraws the operation.
#[must_use = "dropping the future withdraws its operation"]
pub struct Answer {
    pool: Arc<LocalPool>,
    id: u32,
    over: bool,
}

impl Client {
    /// Creates a client of these servers. It connects at the first operation.
    ///
    /// # Errors
    /// If BoringSSL does not accept the certificate or the key.
    pub fn new(settings: Settings) -> Result<Self, ErrorStack> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let connector = Connector::new(&settings)?;
        let fleet = Fleet::new(&settings.servers);
        let shared = Shared {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            settings,
            connector,
            fleet,
            closed: AtomicBool::new(false),
            compatible: AtomicBool::new(false),
        };
        Ok(Self(Arc::new(Owner { shared: Arc::new(shared), local_pools: Mutex::default() })))
    }

    /// Submits an operation that [fits](Operation::check) the key. Must be called on a thread with a Tokio runtime,
    /// which then drives the connections. An `impatient` operation fails as soon as no server is available, because
    /// the caller has an alternative.
    ///
    /// # Errors
    /// [`Failure::Full`] if too many operations are open.
    pub fn submit(
        &self,
        key: &RemoteKey,
        operation: Operation,
        origin: Origin,
        impatient: bool,
    ) -> Result<Answer, Failure> {
        if opcode::from_operation(&operation).1.len() > MAX_PAYLOAD {
            return Err(Failure::Refused(ErrorCode::Format));
        }
        let job = Job { key: key.clone(), operation, origin };
        let pool = self.local_pool();
        let submitted = pool.submit(Arc::new(job), impatient);
        submitted.inspect_err(|failure| metrics::failed(*failure)).map(|id| Answer { pool, id, over: false })
    }

    /// Generates a key of this type on a server, which stores it under a name that begins with `reference`: the first
    /// server that is reachable and does not reject the request. The request is sent once, so that it cannot create
    /// two keys.
    ///
    /// # Errors
    /// The refusals of all servers.
    pub async fn generate(&self, key_type: KeyType, reference: &str) -> Result<RemoteKey, KeyChangeError> {
        key_change::generate(&self.0.shared, key_type, reference).await
    }

    /// Removes a key that [`generate`](Self::generate) created from every server.
    ///
    /// # Errors
    /// The refusals of servers that failed; a server without such a key succeeds.
    pub async fn remove(&self, key: Ski) -> Result<(), KeyChangeError> {
        key_change::remove(&self.0.shared, key).await
    }

    /// Connects now, on this event loop, to avoid the delay at the first operation.
    pub fn warm_up(&self) {
        let _ = self.local_pool();
    }

    /// Returns whether an [`Origin`] would be sent to any server: the batched mode does not send it.
    pub fn wants_origin(&self) -> bool {
        self.0.shared.compatible.load(Ordering::Relaxed)
    }

    /// Number of servers to which this process is connected.
    pub fn servers_up(&self) -> usize {
        self.0.shared.fleet.up()
    }

    /// Connections of this event loop.
    fn local_pool(&self) -> Arc<LocalPool> {
        thread_local! {
            static LOCAL_POOLS: RefCell<Vec<(u64, Weak<LocalPool>)>> = const { RefCell::new(Vec::new()) };
        }
        let shared = &self.0.shared;
        LOCAL_POOLS.with_borrow_mut(|local_pools| {
            let known =
                local_pools.iter().find(|(id, _)| *id == shared.id).and_then(|(_, pool)| pool.upgrade());
            known.filter(|pool| pool.is_alive()).unwrap_or_else(|| {
                local_pools.retain(|(id, pool)| *id != shared.id && pool.strong_count() > 0);
                let pool = connection::start_pool(shared);
                local_pools.push((shared.id, Arc::downgrade(&pool)));
                self.0.local_pools.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&pool));
                pool
            })
        })
    }
}

impl Future for Answer {
    type Output = Result<Zeroizing<Vec<u8>>, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.pool.poll(self.id, context.waker());
        if let Poll::Ready(result) = &polled {
            self.over = true;
            if let Err(failure) = result {
                metrics::failed(*failure);
            }
        }
        polled
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.over {
            self.pool.withdraw(self.id);
        }
    }
}

/// Connections hold the shared state, so this owner's end is the end of its users.
struct Owner {
    shared: Arc<Shared>,
    local_pools: Mutex<Vec<Weak<LocalPool>>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        let local_pools =
            std::mem::take(&mut *self.local_pools.lock().unwrap_or_else(PoisonError::into_inner));
        local_pools.iter().filter_map(Weak::upgrade).for_each(|pool| pool.close());
    }
}
