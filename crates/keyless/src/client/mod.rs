//! The gateway's side: private-key operations that other machines compute.
//!
//! A [`Client`] is one pool for a process. Each event loop that uses it has one connection to each server, so that
//! neither an operation nor its result changes threads, and the operations of one turn of the loop leave in one frame.
//! What the event loops know of servers as a whole, that one returns wrong results for instance, they share.

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

/// One pool of connections to key servers. Clones share it; when the last is dropped, its connections close.
#[derive(Clone)]
pub struct Client(Arc<Owner>);

/// Clones are equal, and nothing else is.
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

/// A result to come. Dropping it withdraws the operation.
#[must_use = "dropping an answer withdraws its operation"]
pub struct Answer {
    pool: Arc<LocalPool>,
    id: u32,
    over: bool,
}

impl Client {
    /// A client of these servers. It connects when the first operation comes.
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

    /// Hands in an operation that [fits](Operation::check) the key. Must be called on a thread with a Tokio runtime,
    /// which then keeps the connections. An `impatient` operation fails as soon as no server can take it, because there
    /// is another way to get it done.
    ///
    /// # Errors
    /// [`Failure::Full`] if too many are open.
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

    /// Has a server make a key of this kind, and keep it under a name that begins with `reference`: the first of the
    /// servers that can be reached and does not refuse. It is asked once, so that there are not two keys of one wish.
    ///
    /// # Errors
    /// What each server has said.
    pub async fn generate(&self, key_type: KeyType, reference: &str) -> Result<RemoteKey, KeyChangeError> {
        key_change::generate(&self.0.shared, key_type, reference).await
    }

    /// Has every server remove a key that was made by [`generate`](Self::generate).
    ///
    /// # Errors
    /// What the servers have said that do not do it; that one has no such key is none.
    pub async fn remove(&self, key: Ski) -> Result<(), KeyChangeError> {
        key_change::remove(&self.0.shared, key).await
    }

    /// Connects now, on this event loop, so that the first operation need not wait for it.
    pub fn warm_up(&self) {
        let _ = self.local_pool();
    }

    /// Whether an [`Origin`] would be sent to any server: in our own mode it is not.
    pub fn wants_origin(&self) -> bool {
        self.0.shared.compatible.load(Ordering::Relaxed)
    }

    /// How many servers this process has connections to.
    pub fn servers_up(&self) -> usize {
        self.0.shared.fleet.up()
    }

    /// This event loop's connections.
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

/// Connections hold what is shared, so that its end is the end of those who use it.
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
