//! Upstreams (clusters in Envoy): endpoints with settings and state.

use super::{
    address::ServerAddress,
    balance::{
        balancer::{Balancer, NoServer},
        endpoint::{self, Endpoint, Endpoints},
        hash_ring,
        outliers::{self, RequestOutcome},
        server::{Server, ServerState},
    },
    limits::{Breaker, Overloaded, WaitingLine},
    names::table::Names,
    tls::credentials::{ClientTls, Credentials},
};
use crate::{
    host_map::lower_case,
    telemetry::{
        server_warnings::ServerWarnings,
        statistics::{UpstreamCounters, UpstreamStatistics},
        upstream::{self as metrics, UpstreamTimes},
    },
};
use quadrille_config::{
    Diagnostic,
    model::{self, DnsRefresh, LookupFamily, RetryPolicy, UpstreamProtocol},
};
use std::{
    collections::BTreeMap,
    fmt::Display,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};
use tokio::sync::OwnedSemaphorePermit;

/// A group of endpoints. It outlives reloads that change only its endpoints, with the state of those that remain.
pub(crate) struct Upstream {
    name: String,
    /// The model without endpoints, which change.
    pub(super) model: model::Upstream,
    default_retry: RetryPolicy,
    pub(super) balancer: Balancer,
    pub(super) breaker: Breaker,
    pub(super) line: WaitingLine,
    /// Digests of the files that the model names.
    contents: Vec<[u8; 32]>,
    /// Transports to endpoints by index in the model: TLS, or plaintext.
    transports: Box<[Option<ClientTls>]>,
    pub(crate) counters: UpstreamCounters,
    times: UpstreamTimes,
    warnings: Arc<ServerWarnings>,
    /// Whether the last HTTP connection to an endpoint uses HTTP/2.
    pub(super) chose_http2: AtomicBool,
}

pub(crate) type Upstreams = BTreeMap<String, Arc<Upstream>>;

/// Guard that counts an active request, or a connection in TCP mode.
pub(crate) struct ActiveRequest {
    upstream: Arc<Upstream>,
    /// Held if connections are limited.
    connection: Option<OwnedSemaphorePermit>,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.upstream.counters.active.subtract();
        self.upstream.breaker.end_request();
    }
}

/// Guard that counts a request's retry.
pub(crate) struct Retry(Arc<Upstream>);

impl Drop for Retry {
    fn drop(&mut self) {
        self.0.breaker.end_retry();
    }
}

impl Upstream {
    /// Resolves the endpoints by the current addresses of their names.
    pub(crate) fn resolve(model: &model::Upstream, names: &Names) -> Endpoints {
        endpoint::resolve(&model.servers, model.dns_lookup_family, names)
    }

    /// Creates an upstream with these endpoints, and credentials for each transport. `contents` are digests of the
    /// credentials' sources.
    pub(crate) fn new(
        name: &str,
        model: &model::Upstream,
        endpoints: Endpoints,
        credentials: &[Credentials],
        contents: Vec<[u8; 32]>,
    ) -> Result<Self, Diagnostic> {
        let model = without_servers(model);
        let balancer =
            Balancer::new(model.balance, model.panic_threshold, model.outlier_detection.is_some(), endpoints)
                .with_slow_start(model.slow_start);
        let breaker = Breaker::new(&model.limits);
        let tls = |(tls, credentials): (Option<&model::UpstreamTls>, &Credentials)| {
            tls.map(|tls| ClientTls::new(tls, credentials)).transpose()
        };
        let transports: Result<_, _> = model.transports().zip(credentials).map(tls).collect();
        let transports = transports.map_err(|error| Diagnostic::new(&model.place, error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            default_retry: RetryPolicy::of_upstream(model.retries),
            model,
            balancer,
            breaker,
            line: WaitingLine::default(),
            contents,
            transports,
            counters: UpstreamCounters::default(),
            times: UpstreamTimes::default(),
            warnings: Arc::default(),
            chose_http2: AtomicBool::new(false),
        })
    }

    /// Returns whether the model, except its endpoints, and the files' contents are the same.
    pub(crate) fn has_settings(&self, model: &model::Upstream, contents: &[[u8; 32]]) -> bool {
        self.contents == contents && self.model == without_servers(model)
    }

    /// Returns whether the endpoints are the same.
    pub(crate) fn has_endpoints(&self, endpoints: &Endpoints) -> bool {
        self.balancer.has_endpoints(endpoints)
    }

    /// Replaces the endpoints; the state of those that remain is retained. Calls must not overlap.
    pub(crate) fn set_endpoints(&self, endpoints: Endpoints) {
        self.transports.iter().flatten().for_each(|tls| tls.retain(&endpoints));
        self.balancer.set(endpoints);
    }

    /// Counts a request while the guard lives. Waits for a connection permit if requests need a connection each, and
    /// connections are limited. `alone` is whether this request cannot share a connection.
    pub(crate) async fn begin(self: &Arc<Self>, alone: bool) -> Result<ActiveRequest, Overloaded> {
        let mut request = self.admit()?;
        if alone || self.has_one_request_a_connection() {
            request.connection = self.breaker.connection().await.inspect_err(|_| self.count_overflow())?;
        }
        Ok(request)
    }

    /// Counts a connection in TCP mode while the guard lives.
    pub(crate) fn begin_connection(self: &Arc<Self>) -> Result<ActiveRequest, Overloaded> {
        let mut request = self.admit()?;
        request.connection = self.breaker.connection_now().inspect_err(|_| self.count_overflow())?;
        Ok(request)
    }

    /// Records the time from a request to the start of its response.
    pub(crate) fn began_response(&self, took: Duration) {
        self.times.record(&self.name, took);
    }

    fn admit(self: &Arc<Self>) -> Result<ActiveRequest, Overloaded> {
        self.counters.requests.add();
        self.breaker.begin_request().inspect_err(|_| self.count_overflow())?;
        self.counters.active.add();
        Ok(ActiveRequest { upstream: Arc::clone(self), connection: None })
    }

    pub(super) fn count_overflow(&self) {
        self.counters.overflow.add();
        metrics::overflow(self.name());
    }

    /// Returns whether requests are known not to share connections before a connection is open.
    fn has_one_request_a_connection(&self) -> bool {
        match self.model.protocol {
            UpstreamProtocol::Http1 => true,
            UpstreamProtocol::Auto => self.transports.iter().all(Option::is_none),
            UpstreamProtocol::Http2 | UpstreamProtocol::OfRequest => false,
        }
    }

    /// Returns the endpoint for a request to this host, with HTTP/2 if the request uses it or a later version, where
    /// these depend on the request; `None` otherwise.
    pub(crate) fn as_requested(&self, server: &Server, host: &str, http2: bool) -> Option<Server> {
        let (by_host, by_version) =
            (self.model.host_from_request, self.model.protocol == UpstreamProtocol::OfRequest);
        if !by_host && !by_version {
            return None;
        }
        let server = server.clone().asked_over_http2(by_version && http2);
        Some(if by_host { server.called(&lower_case(host)) } else { server })
    }

    /// Counts a retry while the guard lives; `None` if there are too many.
    pub(crate) fn begin_retry(self: &Arc<Self>) -> Option<Retry> {
        self.breaker.begin_retry().ok().map(|()| Retry(Arc::clone(self)))
    }

    /// Records the outcome of a request, which may eject the endpoint.
    pub(crate) fn observe(&self, server: &Server, outcome: RequestOutcome) {
        let Some(settings) = &self.model.outlier_detection else { return };
        let Some(outcomes) = server.state().map(|state| &state.outcomes) else { return };
        if !outcomes.observe(outcome, settings) {
            return;
        }
        let now = Instant::now();
        let (out, servers) = self.balancer.left_out(now);
        if outliers::may_eject(settings, out, servers)
            && let Some(time) = outcomes.eject(settings, now)
        {
            self.counters.ejections.add();
            metrics::ejection(self.name());
            let (upstream, server) = (self.name(), &server.address);
            tracing::warn!(upstream, %server, last = ?outcome, ?time, "failing endpoint ejected");
        }
    }

    /// Logs a failure of a server, or counts it if the same one was logged shortly before.
    pub(crate) fn warn(&self, server: Option<&ServerAddress>, error: &dyn Display, kind: &'static str) {
        self.warnings.warn(&self.name, server.map(|server| server as _), error, kind);
    }

    /// Returns the statistics.
    pub(crate) fn statistics(&self) -> UpstreamStatistics {
        let servers = self.servers();
        UpstreamStatistics {
            name: self.name.clone(),
            servers: servers.len(),
            healthy: servers.iter().filter(|(_, healthy)| *healthy).count(),
            requests: self.counters.requests.get(),
            active: self.counters.active.get(),
            retries: self.counters.retries.get(),
            connect_failures: self.counters.connect_failures.get(),
            timeouts: self.counters.timeouts.get(),
            no_server: self.counters.no_server.get(),
            overflow: self.counters.overflow.get(),
            ejections: self.counters.ejections.get(),
            left_out: self.balancer.left_out(Instant::now()).0,
            responses: self.counters.responses.get(),
        }
    }

    /// Returns the TLS settings for this endpoint; `None` for plaintext.
    pub(super) fn tls(&self, server: &Server) -> Option<&ClientTls> {
        self.transports.get(server.transport)?.as_ref()
    }

    /// Returns whether the endpoint uses TLS.
    pub(crate) fn speaks_tls(&self, server: &Server) -> bool {
        self.tls(server).is_some()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn model(&self) -> &model::Upstream {
        &self.model
    }

    /// Returns the hash of the client's address.
    pub(crate) fn point_of(client: SocketAddr) -> u32 {
        hash_ring::point_of(client.ip())
    }

    /// Returns the retry policy of routes without their own.
    pub(crate) fn default_retry(&self) -> &RetryPolicy {
        &self.default_retry
    }

    /// Returns every endpoint, and whether it is healthy as far as is known.
    pub(crate) fn servers(&self) -> Vec<(Server, bool)> {
        self.balancer.servers()
    }

    /// Returns every endpoint with its state.
    pub(crate) fn states(&self) -> Vec<(Endpoint, Arc<ServerState>)> {
        self.balancer.states()
    }

    /// Returns whether active requests of endpoints are counted.
    pub(crate) fn counts_active(&self) -> bool {
        self.balancer.counts()
    }

    /// Returns the number of requests that wait for an endpoint.
    pub(crate) fn waiting(&self) -> usize {
        self.line.length()
    }

    /// Takes the endpoints at an address out of service, or back into it. Returns whether there is one.
    pub(crate) fn drain(&self, address: &str, draining: bool) -> bool {
        let at_address =
            |(endpoint, _): &(Endpoint, Arc<ServerState>)| endpoint.address.to_string() == address;
        let mut found = false;
        for (endpoint, state) in self.states().into_iter().filter(at_address) {
            state.drain(draining, Instant::now());
            let (upstream, server) = (self.name(), &endpoint.address);
            tracing::info!(upstream, %server, draining, "endpoint taken out of service, or back into it");
            found = true;
        }
        found
    }

    /// Returns whether there is an endpoint at this address, and it is healthy as far as is known.
    pub(super) fn has_healthy(&self, address: &ServerAddress) -> bool {
        self.model.original_destination.is_some() || self.balancer.has_healthy(address)
    }

    /// Picks an endpoint for this client, if possible not one of `tried`; `None` if none is healthy. `point` is the
    /// request's hash for hash-based balancing. `destination` is the original destination of a redirected connection.
    pub(crate) fn pick(
        &self,
        client: SocketAddr,
        destination: Option<SocketAddr>,
        point: Option<u32>,
        tried: &[ServerAddress],
    ) -> Option<Server> {
        self.try_pick(client, destination, point, tried).ok()
    }

    /// Picks an endpoint as [`Self::pick`] does, and distinguishes upstreams without a healthy endpoint from those whose
    /// endpoints have no room for the request.
    ///
    /// # Errors
    /// Returns the reason why no endpoint was picked.
    pub(crate) fn try_pick(
        &self,
        client: SocketAddr,
        destination: Option<SocketAddr>,
        point: Option<u32>,
        tried: &[ServerAddress],
    ) -> Result<Server, NoServer> {
        match &self.model.original_destination {
            Some(original) => {
                let destination = destination.ok_or(NoServer::Unhealthy)?;
                Ok(Server::at(original.server(destination)))
            }
            // Others wait already.
            None if self.line.length() > 0 => Err(NoServer::Full),
            None => self.balancer.pick(client, point, tried),
        }
    }
}

fn without_servers(model: &model::Upstream) -> model::Upstream {
    let (dns_refresh, dns_lookup_family) = (DnsRefresh::default(), LookupFamily::default());
    model::Upstream { servers: Vec::new(), dns_refresh, dns_lookup_family, ..model.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::{OriginalDestination, Place};

    #[test]
    fn a_server_where_connections_were_going_is_there_for_those_that_were_redirected() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let picked = |port, destination| {
            let mut model = model::Upstream::new(Vec::new(), Place::builtin());
            model.original_destination = Some(OriginalDestination { port });
            let upstream =
                Upstream::new("u", &model, Endpoints::new(), &[Credentials::default()], Vec::new());
            let Ok(upstream) = upstream else { panic!("an upstream") };
            let tried = [at("10.0.0.1:80").into()];
            let server = upstream.pick(at("192.0.2.1:5"), destination, None, &tried)?;
            assert!(upstream.has_healthy(&server.address), "its idle connections are retained");
            Some(server.address)
        };
        assert_eq!(
            picked(None, Some(at("10.0.0.1:80"))),
            Some(at("10.0.0.1:80").into()),
            "it may be tried again"
        );
        assert_eq!(picked(Some(81), Some(at("[fd00::1]:80"))), Some(at("[fd00::1]:81").into()));
        assert_eq!(picked(None, None), None);
    }
}
