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
mod latency;
mod link;
mod local_pool;
mod metrics;
mod probe;
mod settings;

pub use connect::{ConnectError, Connected, Connector};
pub use dispatch::Failure;
pub use probe::{Pong, ping};
pub use quadrille_config::model::key_server::Protocol;
pub use settings::{Patience, Settings};

use crate::wire::{ErrorCode, Hints, KeyName, MAX_PAYLOAD, Ski, modulus_digest, opcode};
use boring::error::ErrorStack;
use fleet::Fleet;
use local_pool::LocalPool;
use quadrille_engine::{KeyType, Operation, OperationError, PublicKey, Zeroizing};
use std::{
    cell::RefCell,
    future::Future,
    net::IpAddr,
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

/// A pool that does not stay open because of this.
#[derive(Clone)]
pub struct WeakClient(Weak<Owner>);

impl WeakClient {
    /// The pool, if somebody still uses it.
    pub fn upgrade(&self) -> Option<Client> {
        self.0.upgrade().map(Client)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.0.0.settings.servers)
    }
}

/// A key whose private half is on key servers.
#[derive(Clone, Debug)]
pub struct RemoteKey {
    public: PublicKey,
    name: KeyName,
}

/// For whom an operation is, as far as key servers may want to know; sent in the compatible mode only.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The server name that the client has asked for.
    pub sni: Option<String>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The address that the client has connected to.
    pub server: Option<IpAddr>,
}

/// A result to come. Dropping it withdraws the operation.
#[must_use = "dropping an answer withdraws its operation"]
pub struct Answer {
    pool: Arc<LocalPool>,
    id: u32,
    over: bool,
}

impl RemoteKey {
    /// The private half of a certificate's public key.
    ///
    /// # Errors
    /// If BoringSSL cannot encode the key.
    pub fn new(public: PublicKey) -> Result<Self, ErrorStack> {
        let name = KeyName { ski: Some(Ski::of(public.pkey())?), modulus: modulus_digest(public.pkey()) };
        Ok(Self { public, name })
    }

    /// What results are checked with.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.public.key_type()
    }

    /// The identifier by which servers know the key.
    pub fn ski(&self) -> Ski {
        self.name.ski.unwrap_or(Ski([0; 20]))
    }
}

impl AsRef<PublicKey> for RemoteKey {
    fn as_ref(&self) -> &PublicKey {
        &self.public
    }
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
            local_pools: Mutex::default(),
        };
        Ok(Self(Arc::new(Owner(Arc::new(shared)))))
    }

    /// Hands in an operation. Must be called on a thread with a Tokio runtime, which then keeps the connections. An
    /// `impatient` operation fails as soon as no server can take it, because there is another way to get it done.
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
        if opcode::of(&operation).1.len() > MAX_PAYLOAD {
            return Err(Failure::Refused(ErrorCode::Format));
        }
        let job = Job { key: key.clone(), operation, origin };
        let pool = self.local_pool();
        let submitted = pool.submit(Arc::new(job), impatient);
        submitted.inspect_err(|failure| metrics::failed(*failure)).map(|id| Answer { pool, id, over: false })
    }

    /// For keeping it in a register of those in use.
    pub fn downgrade(&self) -> WeakClient {
        WeakClient(Arc::downgrade(&self.0))
    }

    /// Connects now, on this event loop, so that the first operation need not wait for it.
    pub fn warm_up(&self) {
        let _ = self.local_pool();
    }

    /// Whether an [`Origin`] would be sent to any server: in our own mode it is not.
    pub fn wants_origin(&self) -> bool {
        self.0.0.compatible.load(Ordering::Relaxed)
    }

    /// How many servers this process has connections to.
    pub fn servers_up(&self) -> usize {
        self.0.0.fleet.up()
    }

    /// This event loop's connections.
    fn local_pool(&self) -> Arc<LocalPool> {
        thread_local! {
            static LOCAL_POOLS: RefCell<Vec<(u64, Weak<LocalPool>)>> = const { RefCell::new(Vec::new()) };
        }
        let shared = &self.0.0;
        LOCAL_POOLS.with_borrow_mut(|local_pools| {
            let known =
                local_pools.iter().find(|(id, _)| *id == shared.id).and_then(|(_, pool)| pool.upgrade());
            known.filter(|pool| pool.is_alive()).unwrap_or_else(|| {
                local_pools.retain(|(id, pool)| *id != shared.id && pool.strong_count() > 0);
                let pool = LocalPool::start(shared);
                local_pools.push((shared.id, Arc::downgrade(&pool)));
                shared.local_pools.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&pool));
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

/// What all event loops share.
struct Shared {
    id: u64,
    settings: Settings,
    connector: Connector,
    fleet: Fleet,
    closed: AtomicBool,
    /// Some server speaks the compatible mode.
    compatible: AtomicBool,
    local_pools: Mutex<Vec<Weak<LocalPool>>>,
}

/// Connections hold what is shared, so that its end is the end of those who use it.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Relaxed);
        let local_pools =
            std::mem::take(&mut *self.0.local_pools.lock().unwrap_or_else(PoisonError::into_inner));
        local_pools.iter().filter_map(Weak::upgrade).for_each(|pool| pool.close());
    }
}

/// An operation on its way.
struct Job {
    key: RemoteKey,
    operation: Operation,
    origin: Origin,
}

impl Job {
    fn is_secret(&self) -> bool {
        matches!(self.operation, Operation::Decrypt { .. })
    }

    fn request(&self, id: u32) -> crate::wire::Request<'_> {
        let (opcode, payload) = opcode::of(&self.operation);
        let Origin { sni, client, server } = &self.origin;
        let hints = Hints { sni: sni.as_deref(), client: *client, server: *server };
        crate::wire::Request { id, key: self.key.name, opcode, payload, hints }
    }

    fn holds(&self, result: &[u8]) -> bool {
        self.operation.verify(&self.key.public, result)
    }
}

/// Operations that fit no key servers could compute fail before they are sent.
impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::QueueFull => Self::Full,
            OperationError::Stopped => Self::Closed,
            OperationError::WrongKeyType => Self::Refused(ErrorCode::UnexpectedOpcode),
            OperationError::InvalidInput => Self::Refused(ErrorCode::Format),
            OperationError::Failed => Self::Refused(ErrorCode::Crypto),
        }
    }
}
