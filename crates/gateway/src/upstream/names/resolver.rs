//! Name resolution by DNS and by the system.

use hickory_resolver::{
    Hosts, TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig},
    lookup::Lookup,
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::Query,
        rr::{Name, RecordType},
    },
};
use quadrille_config::model;
use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    str::FromStr,
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
};

/// Resolved addresses with their expiry.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) valid_until: Instant,
}

/// Result of a name's lookup.
pub(crate) type Outcome = (Arc<str>, Result<Answer, String>);

/// Maximum number of concurrent lookups.
const MOST_LOOKUPS: usize = 64;
/// Permits for system lookups, which block a thread each and have no timeout.
static SYSTEM_LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(4)));
/// TTL of system lookups, which do not report one.
const SYSTEM_TTL: Duration = Duration::from_secs(30);

/// Looks up names, all within the timeout of the settings.
pub(crate) async fn look_up(settings: &model::Resolver, hosts: Vec<Arc<str>>) -> Vec<Outcome> {
    let source = Arc::new(Source::new(settings));
    let permits = Arc::new(Semaphore::new(MOST_LOOKUPS));
    let mut lookups = JoinSet::new();
    for host in hosts {
        let (source, permits, timeout) = (Arc::clone(&source), Arc::clone(&permits), settings.timeout);
        lookups.spawn(async move {
            let asked = async {
                let _permit = permits.acquire().await;
                source.ask(&host).await
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
pub(crate) fn look_up_now(settings: &model::Resolver, hosts: Vec<Arc<str>>) -> io::Result<Vec<Outcome>> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let settings = settings.clone();
    // A thread that runs tasks cannot block on others.
    let asking = thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(look_up(&settings, hosts)))
    })?;
    asking.join().unwrap_or_else(|_| Err(io::Error::other("the lookup panicked")))
}

/// Sources of addresses.
struct Source {
    hosts: Hosts,
    dns: Result<TokioResolver, NetError>,
    /// Whether the system resolves names that DNS does not.
    asks_system: bool,
}

impl Source {
    /// Creates the sources. The system's settings are read each time, so that changes apply.
    fn new(settings: &model::Resolver) -> Self {
        let provider = TokioRuntimeProvider::default();
        let builder = if settings.servers.is_empty() {
            TokioResolver::builder(provider)
        } else {
            let servers = settings.servers.iter().map(name_server).collect();
            let mut builder =
                TokioResolver::builder_with_config(ResolverConfig::from_name_servers(servers), provider);
            builder.options_mut().timeout = settings.timeout / 2;
            builder.options_mut().attempts = 2;
            Ok(builder)
        };
        let dns = builder.and_then(|mut builder| {
            let options = builder.options_mut();
            options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
            // Names are looked up again only when their records have expired.
            options.cache_size = 0;
            options.use_hosts_file = ResolveHosts::Never;
            builder.build()
        });
        let hosts = Hosts::from_system().unwrap_or_default();
        Self { hosts, dns, asks_system: settings.servers.is_empty() }
    }

    async fn ask(&self, host: &Arc<str>) -> Result<Answer, String> {
        if let Some(answer) = self.in_hosts_file(host) {
            return Ok(answer);
        }
        let answer = match &self.dns {
            Ok(dns) => ask_dns(dns, host).await,
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
        (!addresses.is_empty()).then(|| Answer { addresses, valid_until: Instant::now() + SYSTEM_TTL })
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection| connection.port = address.port());
    server
}

async fn ask_dns(dns: &TokioResolver, host: &str) -> Result<Answer, String> {
    match dns.lookup_ip(host).await {
        Ok(found) => {
            let addresses: Vec<_> = found.iter().collect();
            match addresses.is_empty() {
                true => Err(NO_ADDRESS.to_owned()),
                false => Ok(Answer { addresses, valid_until: found.valid_until() }),
            }
        }
        Err(error) if error.is_nx_domain() => Err("there is no such name".to_owned()),
        Err(error) if error.is_no_records_found() => Err(NO_ADDRESS.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

const NO_ADDRESS: &str = "the name has no address";

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
    Ok(Answer { addresses, valid_until: Instant::now() + SYSTEM_TTL })
}
