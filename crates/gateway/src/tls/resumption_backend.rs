//! Ticket keys and session store. They outlive reloads that do not change them.

use super::pem;
use boring::sha::sha256;
use quadrille_config::{
    Diagnostic,
    model::{self, Place, RedisAddress, SessionCache, Source, TicketKeys},
};
use quadrille_resumption::{
    Fleet, FleetSecret, Layered, MemoryStore, Records, Redis, RedisOptions, RedisStore, Schedule,
    SessionStore, TicketKey, Tickets,
};
use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};
use zeroize::Zeroizing;

/// Ticket keys and session store of one process, shared by all listeners.
pub(crate) struct ResumptionBackend {
    pub(crate) tickets: Option<Arc<Tickets>>,
    pub(crate) store: Option<Arc<dyn SessionStore>>,
    fleet: Option<FleetSecret>,
    /// Lifetime of a session.
    pub(crate) lifetime: Duration,
    pub(crate) early_data: bool,
    /// Storage for ordered certificates, shared by the fleet.
    pub(crate) certificates: Option<Records>,
    /// Inputs of ticket keys and store, to detect whether a reload changes them.
    tickets_from: TicketSource,
    store_from: StoreSource,
}

/// Inputs of the ticket keys.
#[derive(Clone, PartialEq, Eq)]
enum TicketSource {
    Off,
    /// Local keys. With early data, they depend on the store, as a new store has no record of used tickets.
    Local(Duration, Option<StoreSource>),
    Fleet(Duration, Option<RedisSource>),
    /// Digests of the key files.
    Files(Vec<[u8; 32]>),
}

/// Inputs of the session store.
#[derive(Clone, PartialEq, Eq)]
struct StoreSource {
    cache: SessionCache,
    size: usize,
    lifetime: Duration,
    lookup_timeout: Duration,
    redis: Option<RedisSource>,
}

#[derive(Clone, PartialEq, Eq)]
struct RedisSource {
    address: RedisAddress,
    ca: Option<PathBuf>,
    /// Digest of the secret's file.
    secret: Option<[u8; 32]>,
    password: Option<Zeroizing<String>>,
}

impl ResumptionBackend {
    /// Reads the files named by the model. Unchanged parts of `running` are retained.
    pub(crate) fn open(
        model: &model::Resumption,
        running: Option<&Arc<Self>>,
    ) -> Result<Arc<Self>, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let files = Files::read(model, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let (tickets_from, store_from) = (files.tickets_from(model), files.store_from(model));
        let redis = files.redis(model);
        let tickets = match running {
            Some(running) if running.tickets_from == tickets_from => running.tickets.clone(),
            _ => tickets(model, &files, redis.as_ref()),
        };
        let store = match running {
            Some(running) if running.store_from == store_from => running.store.clone(),
            _ => store(model, &files, redis.as_ref()),
        };
        let same_redis = running.filter(|running| running.store_from.redis == store_from.redis);
        let certificates = match (same_redis, redis, &files.secret) {
            (Some(running), ..) => running.certificates.clone(),
            (None, Some(redis), Some((secret, _))) => {
                let records = Records::new(redis, secret.clone(), "acme");
                Some(records.map_err(|error| vec![Diagnostic::new(&Place::builtin(), error.to_string())])?)
            }
            _ => None,
        };
        let (lifetime, early_data) = (model.lifetime, model.early_data);
        // Returns the same object, so that TLS contexts that refer to it need not be rebuilt.
        if let Some(running) = running
            && (&running.tickets_from, &running.store_from) == (&tickets_from, &store_from)
            && (running.lifetime, running.early_data) == (lifetime, early_data)
        {
            return Ok(Arc::clone(running));
        }
        let fleet = files.secret.map(|(secret, _)| secret);
        Ok(Arc::new(Self {
            tickets,
            store,
            fleet,
            lifetime,
            early_data,
            certificates,
            tickets_from,
            store_from,
        }))
    }

    /// Returns the secret shared by all gateways of the fleet, if there is a fleet.
    pub(crate) fn fleet_secret(&self) -> Option<&FleetSecret> {
        self.fleet.as_ref()
    }

    /// Joins the fleet, if there is one and it responds shortly.
    pub(crate) async fn join(&self) {
        if let Some(tickets) = &self.tickets {
            tickets.join().await;
        }
    }

    /// Prepares an event-loop thread for handshakes.
    pub(crate) fn warm(&self) {
        if let Some(store) = &self.store {
            store.warm();
        }
    }

    /// Starts the task that rotates the ticket keys, unless `before` has the same keys.
    pub(crate) fn start(&self, before: Option<&Self>) {
        let Some(tickets) = &self.tickets else { return };
        let running = before.and_then(|before| before.tickets.as_ref());
        if !running.is_some_and(|running| Arc::ptr_eq(running, tickets)) {
            tokio::spawn(Tickets::run(Arc::downgrade(tickets)));
        }
    }
}

/// Contents of the files that the model names.
struct Files {
    keys: Vec<TicketKey>,
    secret: Option<(FleetSecret, [u8; 32])>,
    password: Option<Zeroizing<String>>,
}

impl Files {
    fn read(model: &model::Resumption, problems: &mut Vec<Diagnostic>) -> Self {
        let mut note = |problem| problems.push(problem);
        let keys = match &model.tickets {
            TicketKeys::Files(files, place) => {
                files.iter().filter_map(|file| ticket_key(file, place).map_err(&mut note).ok()).collect()
            }
            _ => Vec::new(),
        };
        let secret = model.fleet_secret.as_ref().and_then(|(source, place)| {
            let secret = read(source, place).and_then(|bytes| {
                let secret = FleetSecret::new(&bytes);
                let digest = sha256(&bytes);
                Ok((secret.map_err(|error| Diagnostic::new(place, format!("{source} {error}")))?, digest))
            });
            secret.map_err(&mut note).ok()
        });
        let password = model.redis_password.as_ref().and_then(|(source, place)| {
            let text = read(source, place).and_then(|bytes| {
                let text = String::from_utf8(bytes.trim_ascii().to_vec());
                text.map(Zeroizing::new)
                    .map_err(|_| Diagnostic::new(place, format!("{source} is not UTF-8 text")))
            });
            text.map_err(&mut note).ok()
        });
        Self { keys, secret, password }
    }

    fn redis(&self, model: &model::Resumption) -> Option<Redis> {
        let SessionCache::Redis(address, _) = &model.cache else { return None };
        let ca = model.redis_ca.as_ref().map(|(path, _)| path.clone());
        Some(Redis::new(address.clone(), RedisOptions { password: self.password.clone(), ca }))
    }

    fn tickets_from(&self, model: &model::Resumption) -> TicketSource {
        match &model.tickets {
            TicketKeys::Off => TicketSource::Off,
            TicketKeys::Local => {
                TicketSource::Local(model.rotation, model.early_data.then(|| self.store_from(model)))
            }
            TicketKeys::Fleet(_) => TicketSource::Fleet(model.rotation, self.redis_from(model)),
            TicketKeys::Files(..) => {
                TicketSource::Files(self.keys.iter().map(|key| sha256(&key.to_file_bytes()[..])).collect())
            }
        }
    }

    fn store_from(&self, model: &model::Resumption) -> StoreSource {
        StoreSource {
            cache: model.cache.clone(),
            size: model.cache_size,
            lifetime: model.lifetime,
            lookup_timeout: model.lookup_timeout,
            redis: self.redis_from(model),
        }
    }

    fn redis_from(&self, model: &model::Resumption) -> Option<RedisSource> {
        let SessionCache::Redis(address, _) = &model.cache else { return None };
        Some(RedisSource {
            address: address.clone(),
            ca: model.redis_ca.as_ref().map(|(path, _)| path.clone()),
            secret: self.secret.as_ref().map(|(_, digest)| *digest),
            password: self.password.clone(),
        })
    }
}

/// Reads the CAs of Redis, which are otherwise read for each connection. Without Redis, a gateway starts nevertheless.
pub(crate) fn check_ca(model: &model::Resumption) -> Option<Diagnostic> {
    let (SessionCache::Redis(..), Some((ca, place))) = (&model.cache, &model.redis_ca) else { return None };
    pem::read_chain(&Source::File(ca.clone()), place).err()
}

fn read(source: &Source, place: &Place) -> Result<Zeroizing<Vec<u8>>, Diagnostic> {
    source.read().map_err(|error| Diagnostic::new(place, format!("cannot read {source}: {error}")))
}

fn ticket_key(source: &Source, place: &Place) -> Result<TicketKey, Diagnostic> {
    let bytes = read(source, place)?;
    TicketKey::from_file_bytes(&bytes).map_err(|error| Diagnostic::new(place, format!("{source} {error}")))
}

fn tickets(model: &model::Resumption, files: &Files, redis: Option<&Redis>) -> Option<Arc<Tickets>> {
    let schedule = Schedule { rotation: model.rotation };
    match (&model.tickets, &files.secret, redis) {
        (TicketKeys::Off, ..) => None,
        (TicketKeys::Files(..), ..) => Tickets::fixed(files.keys.clone()),
        (TicketKeys::Fleet(_), Some((secret, _)), Some(redis)) => {
            Some(Tickets::fleet(Fleet::new(redis.clone(), secret.clone()), schedule))
        }
        // A fleet without Redis or secret is rejected by every front end.
        (TicketKeys::Local | TicketKeys::Fleet(_), ..) => Some(Tickets::local(schedule)),
    }
}

fn store(model: &model::Resumption, files: &Files, redis: Option<&Redis>) -> Option<Arc<dyn SessionStore>> {
    let memory = NonZeroUsize::new(model.cache_size).map(|size| MemoryStore::new(size, model.lifetime));
    match (&model.cache, &files.secret, redis) {
        (SessionCache::Off, ..) => None,
        (SessionCache::Redis(..), Some((secret, _)), Some(redis)) => {
            let far = RedisStore::new(redis.clone(), secret.clone(), model.lifetime, model.lookup_timeout);
            Some(match memory {
                Some(near) => Arc::new(Layered::new(near, far)),
                None => Arc::new(far),
            })
        }
        (SessionCache::Memory | SessionCache::Redis(..), ..) => Some(Arc::new(memory?)),
    }
}
