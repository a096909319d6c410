//! Name resolution by DNS and by the system.

use super::{
    dns_query::{self, Answer, Failure},
    family::Families,
    service::Service,
    system_settings::{SystemSettings, candidates},
};
use hickory_resolver::{
    Hosts, TokioResolver,
    config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    lookup::Lookup,
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::Query,
        rr::{Name, RecordType, rdata::SRV},
    },
};
use quadrille_config::{model, srv_name};
use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    str::FromStr,
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
};

/// A name with the families to look up.
pub(crate) type Question = (Arc<str>, Families);

/// Result of a name's lookup.
pub(crate) type Outcome = (Arc<str>, Result<Answer, String>);

/// Maximum number of concurrent lookups.
const MOST_LOOKUPS: usize = 64;
/// Permits for system lookups, which block a thread each and have no timeout.
static SYSTEM_LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(4)));
/// TTL of system lookups, which do not report one.
const SYSTEM_TTL: Duration = Duration::from_secs(30);
/// Tries of a query within the timeout.
const TRIES: u32 = 3;

/// Looks up names, all within the timeout of the settings.
pub(crate) async fn look_up(settings: &model::Resolver, questions: Vec<Question>) -> Vec<Outcome> {
    let source = Arc::new(Source::new(settings));
    let permits = Arc::new(Semaphore::new(MOST_LOOKUPS));
    let mut lookups = JoinSet::new();
    for (host, families) in questions {
        let (source, permits, timeout) = (Arc::clone(&source), Arc::clone(&permits), settings.timeout);
        lookups.spawn(async move {
            let asked = async {
                let _permit = permits.acquire().await;
                source.ask(&host, families).await
            };
            let answer = tokio::time::timeout(timeout, asked).await;
            let answer = answer.unwrap_or_else(|_| Err("DNS timeout".to_owned()));
            (host, answer)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(done) = lookups.join_next().await {
        outcomes.extend(done);
    }
    outcomes
}

/// Looks up names, blocking the thread. It may be called where tasks run.
pub(crate) fn look_up_now(settings: &model::Resolver, questions: Vec<Question>) -> io::Result<Vec<Outcome>> {
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let settings = settings.clone();
    // A thread that runs tasks cannot block on others.
    let asking = thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(look_up(&settings, questions)))
    })?;
    asking.join().unwrap_or_else(|_| Err(io::Error::other("the lookup panicked")))
}

/// Sources of addresses.
struct Source {
    hosts: Hosts,
    dns: Result<Dns, NetError>,
    /// Whether the system resolves names that DNS does not.
    asks_system: bool,
}

/// DNS servers with their search list.
struct Dns {
    resolver: TokioResolver,
    config: ResolverConfig,
    ndots: usize,
    /// Whether names are not queried for IPv6 addresses.
    no_aaaa: bool,
}

impl Source {
    /// Creates the sources. The system's settings are read each time, so that changes apply.
    fn new(settings: &model::Resolver) -> Self {
        let hosts = Hosts::from_system().unwrap_or_default();
        Self { hosts, dns: Dns::new(settings), asks_system: settings.servers.is_empty() }
    }

    async fn ask(&self, host: &Arc<str>, families: Families) -> Result<Answer, String> {
        match srv_name::of_address(host) {
            Some(name) => self.ask_services(name, families).await,
            None => self.ask_host(host, families).await,
        }
    }

    /// Looks up the SRV records of a name, and the addresses of the hosts in them. Hosts without addresses are left
    /// out.
    async fn ask_services(&self, name: &str, families: Families) -> Result<Answer, String> {
        let dns = self.dns.as_ref().map_err(ToString::to_string)?;
        let (records, mut valid_until) = dns.ask_services(name).await?;
        let lookups = records.into_iter().map(|record| async move {
            let host: Arc<str> = record.target.to_ascii().trim_end_matches('.').into();
            let answer = self.ask_host(&host, families).await;
            (record, host, answer)
        });
        let (mut services, mut is_complete, mut last) = (Vec::new(), true, String::new());
        for (record, host, answer) in futures_util::future::join_all(lookups).await {
            match answer {
                Ok(answer) => {
                    valid_until = valid_until.min(answer.valid_until);
                    is_complete &= answer.is_complete;
                    services.push(Service {
                        priority: record.priority.into(),
                        host,
                        port: record.port,
                        weight: usize::from(record.weight).max(1),
                        addresses: answer.addresses,
                    });
                }
                Err(problem) => (is_complete, last) = (false, format!("{host}: {problem}")),
            }
        }
        match services.is_empty() {
            true => Err(last),
            false => Ok(Answer { addresses: Vec::new(), services, valid_until, is_complete }),
        }
    }

    async fn ask_host(&self, host: &Arc<str>, families: Families) -> Result<Answer, String> {
        if let Some(answer) = self.in_hosts_file(host) {
            return Ok(answer);
        }
        let answer = match &self.dns {
            Ok(dns) => dns.ask(host, families).await,
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Err(_) if self.asks_system => ask_system(host).await,
            answer => answer,
        }
    }

    /// Looks up a name in `/etc/hosts`. A name with an IPv4 address there is not queried for IPv6.
    fn in_hosts_file(&self, host: &str) -> Option<Answer> {
        let name = Name::from_str(host).ok()?;
        let of = |kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let found: Vec<_> = [RecordType::A, RecordType::AAAA].into_iter().filter_map(of).collect();
        let records = found.iter().flat_map(Lookup::answers);
        let addresses: Vec<_> = records.filter_map(|record| record.data.ip_addr()).collect();
        (!addresses.is_empty()).then(|| Answer {
            addresses,
            services: Vec::new(),
            valid_until: Instant::now() + SYSTEM_TTL,
            is_complete: true,
        })
    }
}

impl Dns {
    fn new(settings: &model::Resolver) -> Result<Self, NetError> {
        let SystemSettings { config, mut options, no_aaaa } = match settings.servers.is_empty() {
            true => SystemSettings::read()?,
            false => Self::configured(settings),
        };
        // Names are looked up again only when their records have expired.
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        // A lost datagram is sent again before the lookup's own timeout, which may end with other sources.
        options.timeout = options.timeout.min(settings.timeout / TRIES);
        let ndots = options.ndots;
        let mut builder = TokioResolver::builder_with_config(config.clone(), TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        Ok(Self { resolver: builder.build()?, config, ndots, no_aaaa })
    }

    fn configured(settings: &model::Resolver) -> SystemSettings {
        let servers = settings.servers.iter().map(name_server).collect();
        let mut options = ResolverOpts::default();
        options.timeout = settings.timeout;
        options.attempts = 2;
        SystemSettings { config: ResolverConfig::from_name_servers(servers), options, no_aaaa: false }
    }

    async fn ask(&self, host: &str, families: Families) -> Result<Answer, String> {
        let name = Name::from_str(host).map_err(|error| error.to_string())?;
        // A name that only has addresses of the other family is looked up all the same.
        let families = if self.no_aaaa && families.v4 { Families::V4 } else { families };
        let names = candidates(name, &self.config, self.ndots);
        dns_query::query(&self.resolver, names, families)
            .await
            .map_err(|failure: Failure| failure.to_string())
    }

    async fn ask_services(&self, name: &str) -> Result<(Vec<SRV>, Instant), String> {
        let name = Name::from_str(name).map_err(|error| error.to_string())?;
        let names = candidates(name, &self.config, self.ndots);
        dns_query::services(&self.resolver, names).await.map_err(|failure| failure.to_string())
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection| connection.port = address.port());
    server
}

async fn ask_system(host: &Arc<str>) -> Result<Answer, String> {
    let failed = |error: &dyn ToString| error.to_string();
    let permit = Arc::clone(&SYSTEM_LOOKUPS).acquire_owned().await.map_err(|error| failed(&error))?;
    let (done, answer) = oneshot::channel();
    let host = Arc::clone(host);
    // A thread of the runtime would delay the end of the process until the system call returns.
    let asking = thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        let found = (&*host, 0).to_socket_addrs();
        let _ = done.send(found.map(|addresses| addresses.map(|address| address.ip()).collect::<Vec<_>>()));
        drop(permit);
    });
    asking.map_err(|error| failed(&error))?;
    let addresses = answer.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    let valid_until = Instant::now() + SYSTEM_TTL;
    Ok(Answer { addresses, services: Vec::new(), valid_until, is_complete: true })
}
