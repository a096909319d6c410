//! Names of endpoints, with their resolved addresses.

use super::{
    dns_query::Answer,
    family::{self, Families},
    resolver::{self, Outcome, Question},
    service::Service,
};
use crate::{telemetry::upstream as metrics, upstream::address::ServerAddress};
use quadrille_config::{
    Diagnostic,
    model::{self, DnsRefresh, Gateway, LookupFamily, Problem},
    srv_name,
    unix_socket::UNIX,
};
use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// All names of a configuration, with the results of their last lookups.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) settings: model::Resolver,
    known: BTreeMap<Arc<str>, Name>,
}

/// A name with the result of its last lookup.
#[derive(Clone, Debug)]
struct Name {
    refresh: DnsRefresh,
    /// Families that upstreams need.
    families: Families,
    /// Sorted addresses. They are kept while lookups fail.
    addresses: Vec<IpAddr>,
    /// Sorted servers of SRV records, likewise.
    services: Vec<Service>,
    /// Time of the next lookup; `None` leaves it to the next reload.
    due: Option<Instant>,
    /// Number of consecutive failures.
    failures: u32,
    /// Reason for the failure of the last lookup.
    problem: Option<String>,
}

/// Minimum interval of lookups, even if records have a shorter TTL.
const SHORTEST: Duration = Duration::from_secs(1);
/// Maximum interval of lookups, even if records have a longer TTL, so that mistakes are eventually corrected.
const LONGEST: Duration = Duration::from_secs(600);
/// Maximum interval of retries.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// Maximum number of addresses of a name.
const MOST_ADDRESSES: usize = 1024;

impl Names {
    /// Resolves the names of a configuration. Results in `before` that are still valid are not queried again; names
    /// that cannot be resolved keep their addresses.
    pub(crate) fn of(model: &Gateway, before: &Self) -> Self {
        let now = Instant::now();
        let mut names = Self { settings: model.resolver.clone(), known: BTreeMap::new() };
        let same_source = names.settings == before.settings;
        for (host, refresh, families) in hosts(model) {
            match names.known.get_mut(&host) {
                Some(name) => {
                    name.refresh = sooner(name.refresh, refresh);
                    name.families = name.families | families;
                }
                None => {
                    names.known.insert(host, Name::new(refresh, families));
                }
            }
        }
        for (host, name) in &mut names.known {
            let Some(known) = before.known.get(host).cloned() else { continue };
            let same = same_source && (name.refresh, name.families) == (known.refresh, known.families);
            let due = known.due.filter(|_| same);
            *name = Name { refresh: name.refresh, families: name.families, due, ..known };
        }
        let stale = names.known.iter().filter(|(_, name)| name.due.is_none_or(|due| due <= now));
        let stale: Vec<_> = stale.map(|(host, name)| (Arc::clone(host), name.families)).collect();
        match resolver::look_up_now(&names.settings, stale.clone()) {
            Ok(outcomes) => names.note(outcomes),
            Err(error) => {
                names.note(stale.into_iter().map(|(host, _)| (host, Err(error.to_string()))).collect());
            }
        }
        names
    }

    /// Returns the addresses of an endpoint: one for each address of its name, of the upstream's families.
    pub(crate) fn addresses(&self, server: &model::Server, family: LookupFamily) -> Vec<ServerAddress> {
        match host_and_port(&server.address) {
            HostAndPort::Address(address) => vec![address],
            HostAndPort::Name(host, port) => {
                let known = self.known.get(host).map_or(&[][..], |name| &name.addresses[..]);
                let used = family::used(family, known).into_iter();
                used.map(|address| ServerAddress::Ip((address, port).into())).collect()
            }
            HostAndPort::Services(..) | HostAndPort::Neither => Vec::new(),
        }
    }

    /// Returns the servers of SRV records, with their addresses of the upstream's families; `None` if the endpoint is not
    /// given by such records.
    pub(crate) fn services(&self, server: &model::Server, family: LookupFamily) -> Option<Vec<Service>> {
        let HostAndPort::Services(name) = host_and_port(&server.address) else { return None };
        let known = self.known.get(name).map_or(&[][..], |name| &name.services[..]);
        let used = |service: &Service| Service {
            addresses: family::used(family, &service.addresses),
            ..service.clone()
        };
        Some(known.iter().map(used).collect())
    }

    /// Returns whether an endpoint has an address.
    fn is_known(&self, server: &model::Server, family: LookupFamily) -> bool {
        match self.services(server, family) {
            Some(services) => services.iter().any(|service| !service.addresses.is_empty()),
            None => !self.addresses(server, family).is_empty(),
        }
    }

    /// Returns a warning for each endpoint without an address: it is unhealthy until its name resolves.
    pub(crate) fn unknown(&self, model: &Gateway) -> Vec<String> {
        let of = |upstream: &model::Upstream| {
            let family = upstream.dns_lookup_family;
            let unknown = upstream.servers.iter().filter(move |server| !self.is_known(server, family));
            unknown.map(|server| self.unresolved(server).to_string()).collect::<Vec<_>>()
        };
        model.upstreams.values().flat_map(of).collect()
    }

    fn unresolved(&self, server: &model::Server) -> Diagnostic {
        let reason = match host_and_port(&server.address) {
            HostAndPort::Name(name, _) | HostAndPort::Services(name) => {
                self.known.get(name).map(Name::problem)
            }
            HostAndPort::Address(_) | HostAndPort::Neither => None,
        };
        let message = format!("cannot resolve {}: {}", server.address, reason.unwrap_or("invalid name"));
        let remedy = "the server is unhealthy until the name resolves; check it, or use an IP address";
        Diagnostic::new(&server.place, Problem::new(message, remedy))
    }

    /// Returns the time of the first lookup.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.known.values().filter_map(|name| name.due).min()
    }

    /// Returns the names whose lookup is due now.
    pub(crate) fn due_by(&self, now: Instant) -> Vec<Question> {
        let due = self.known.iter().filter(|(_, name)| name.due.is_some_and(|due| due <= now));
        due.map(|(host, name)| (Arc::clone(host), name.families)).collect()
    }

    /// Records the results of lookups.
    pub(crate) fn note(&mut self, outcomes: Vec<Outcome>) {
        let now = Instant::now();
        for (host, outcome) in outcomes {
            metrics::lookup(outcome.is_ok());
            if let Some(name) = self.known.get_mut(&host) {
                name.note(&host, outcome, now);
            }
        }
    }
}

impl Name {
    fn new(refresh: DnsRefresh, families: Families) -> Self {
        let (addresses, services) = (Vec::new(), Vec::new());
        Self { refresh, families, addresses, services, due: None, failures: 0, problem: None }
    }

    /// Returns the reason why there are no addresses.
    fn problem(&self) -> &str {
        self.problem.as_deref().unwrap_or("the name has no address of the family in `dns_lookup_family`")
    }

    /// Returns whether the name has been resolved, now or before.
    fn is_resolved(&self) -> bool {
        !self.addresses.is_empty() || !self.services.is_empty()
    }

    fn note(&mut self, host: &str, outcome: Result<Answer, String>, now: Instant) {
        match outcome {
            Ok(answer) => {
                let mut addresses = answer.addresses;
                addresses.retain(|address| self.families.include(address));
                if !answer.is_complete {
                    // The family without a response keeps its addresses, as a name without a response does.
                    let has = |v4| addresses.iter().any(|address: &IpAddr| address.is_ipv4() == v4);
                    let answered = [has(false), has(true)];
                    let kept = |address: &&IpAddr| !answered[usize::from(address.is_ipv4())];
                    addresses.extend(self.addresses.iter().filter(kept));
                }
                addresses.sort_unstable();
                addresses.dedup();
                addresses.truncate(MOST_ADDRESSES);
                let mut services = answer.services;
                for Service { addresses, .. } in &mut services {
                    addresses.retain(|address| self.families.include(address));
                    addresses.sort_unstable();
                }
                services.sort_unstable();
                services.dedup();
                if self.addresses != addresses && !self.addresses.is_empty() {
                    tracing::info!(name = host, ?addresses, "the addresses of the name have changed");
                } else if self.services != services && !self.services.is_empty() {
                    tracing::info!(name = host, ?services, "the servers of the name have changed");
                } else if self.failures > 0 {
                    tracing::info!(name = host, "the name resolves again");
                }
                self.due = match self.refresh {
                    DnsRefresh::ByTtl => {
                        let good_for = answer.valid_until.saturating_duration_since(now);
                        let longest = if answer.is_complete { LONGEST } else { LONGEST_RETRY };
                        Some(now + good_for.clamp(SHORTEST, longest))
                    }
                    DnsRefresh::Every(interval) => Some(now + interval.max(SHORTEST)),
                    DnsRefresh::Off => None,
                };
                *self = Self { addresses, services, failures: 0, problem: None, ..*self };
            }
            Err(problem) => {
                if self.failures == 0 && self.is_resolved() {
                    tracing::warn!(name = host, problem, "cannot resolve the name; it keeps its addresses");
                }
                let wait = SHORTEST * (1 << self.failures.min(5));
                // Names that were never resolved are retried in any case.
                let again = self.refresh != DnsRefresh::Off || !self.is_resolved();
                self.due = again.then(|| now + wait.min(LONGEST_RETRY));
                self.failures += 1;
                self.problem = Some(problem);
            }
        }
    }
}

/// Host part of `host:port`, and whether it has to be resolved.
enum HostAndPort<'a> {
    Address(ServerAddress),
    Name(&'a str, u16),
    /// The name of SRV records, as it is written, with its prefix.
    Services(&'a str),
    Neither,
}

fn host_and_port(address: &str) -> HostAndPort<'_> {
    if let Some(path) = address.strip_prefix(UNIX) {
        return HostAndPort::Address(ServerAddress::Unix(Path::new(path).into()));
    }
    if let Ok(address) = address.parse() {
        return HostAndPort::Address(ServerAddress::Ip(address));
    }
    if srv_name::of_address(address).is_some() {
        return HostAndPort::Services(address);
    }
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.map_or(HostAndPort::Neither, |(host, port)| HostAndPort::Name(host, port))
}

/// Returns whether an endpoint has a name, whose addresses may change.
pub(crate) fn is_name(server: &model::Server) -> bool {
    matches!(host_and_port(&server.address), HostAndPort::Name(..) | HostAndPort::Services(..))
}

fn hosts(model: &Gateway) -> impl Iterator<Item = (Arc<str>, DnsRefresh, Families)> {
    model.upstreams.values().flat_map(|upstream| {
        let families = Families::of(upstream.dns_lookup_family);
        upstream.servers.iter().filter_map(move |server| match host_and_port(&server.address) {
            HostAndPort::Name(name, _) | HostAndPort::Services(name) => {
                Some((name.into(), upstream.dns_refresh, families))
            }
            HostAndPort::Address(_) | HostAndPort::Neither => None,
        })
    })
}

/// Returns the refresh setting that satisfies both of two upstreams with the name.
fn sooner(one: DnsRefresh, other: DnsRefresh) -> DnsRefresh {
    match (one, other) {
        (DnsRefresh::Off, other) | (other, DnsRefresh::Off) => other,
        (DnsRefresh::Every(one), DnsRefresh::Every(other)) => DnsRefresh::Every(one.min(other)),
        (DnsRefresh::ByTtl, _) | (_, DnsRefresh::ByTtl) => DnsRefresh::ByTtl,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Families = Families { v4: true, v6: true };

    fn answer(last: u8, ttl: u64, now: Instant) -> Result<Answer, String> {
        let addresses = vec![IpAddr::from([192, 0, 2, last]), IpAddr::from([192, 0, 2, 1])];
        let valid_until = now + Duration::from_secs(ttl);
        Ok(Answer { addresses, services: Vec::new(), valid_until, is_complete: true })
    }

    fn after(name: &Name, now: Instant) -> Option<u64> {
        name.due.map(|due| due.duration_since(now).as_secs())
    }

    #[test]
    fn a_name_is_due_when_its_records_have_expired() {
        let now = Instant::now();
        for (refresh, ttl, expected) in [
            (DnsRefresh::ByTtl, 60, Some(60)),
            (DnsRefresh::ByTtl, 0, Some(1)),
            (DnsRefresh::ByTtl, 86_400, Some(600)),
            (DnsRefresh::Every(Duration::from_secs(7)), 60, Some(7)),
            (DnsRefresh::Every(Duration::from_secs(3600)), 60, Some(3600)),
            (DnsRefresh::Every(Duration::ZERO), 60, Some(1)),
            (DnsRefresh::Off, 60, None),
        ] {
            let mut name = Name::new(refresh, BOTH);
            name.note("a.example", answer(2, ttl, now), now);
            assert_eq!(after(&name, now), expected, "{refresh:?} {ttl}");
            assert_eq!(name.addresses, [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])]);
        }
    }

    #[test]
    fn what_cannot_be_looked_up_keeps_its_addresses_and_is_tried_again() {
        let now = Instant::now();
        let mut name = Name::new(DnsRefresh::ByTtl, BOTH);
        name.note("a.example", answer(2, 60, now), now);
        let known = name.addresses.clone();
        let waits: Vec<_> = (0..7)
            .map(|_| {
                name.note("a.example", Err("no".to_owned()), now);
                assert_eq!(name.addresses, known);
                after(&name, now).expect("it is retried")
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        name.note("a.example", answer(3, 60, now), now);
        assert_eq!((after(&name, now), name.failures, name.addresses.len()), (Some(60), 0, 2));
        let mut unasked = Name::new(DnsRefresh::Off, BOTH);
        unasked.note("b.example", Err("no".to_owned()), now);
        assert_eq!(after(&unasked, now), Some(1), "without an address");
    }

    #[test]
    fn a_family_without_an_answer_keeps_its_addresses() {
        let now = Instant::now();
        let (v4, v6) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]));
        let mut name = Name::new(DnsRefresh::ByTtl, BOTH);
        let mut note = |addresses: &[IpAddr], is_complete| {
            let valid_until = now + Duration::from_secs(600);
            name.note(
                "a.example",
                Ok(Answer { addresses: addresses.to_vec(), services: Vec::new(), valid_until, is_complete }),
                now,
            );
            (name.addresses.clone(), after(&name, now))
        };
        assert_eq!(note(&[v4, v6], true), (vec![v4, v6], Some(600)));
        assert_eq!(note(&[v4], false), (vec![v4, v6], Some(30)), "it is looked up again soon");
        assert_eq!(note(&[v4], true), (vec![v4], Some(600)));
        assert_eq!(note(&[v6], false), (vec![v4, v6], Some(30)));
    }
}
