//! An upstream (a cluster, in Envoy's words): servers with their settings, and what is known of them.

use super::{
    address::ServerAddress,
    balancer::Balancer,
    breaker::{Breaker, Overloaded},
    client_tls::{ClientTls, Credentials},
    endpoint::{self, Endpoints},
    names::Names,
    outliers::{self, RequestOutcome},
    ring,
    server::Server,
};
use crate::{
    host_map::lower_case,
    telemetry::{
        statistics::{UpstreamCounters, UpstreamStatistics},
        upstream::{self as metrics, UpstreamTimes},
    },
};
use quadrille_config::{
    Diagnostic,
    model::{self, DnsRefresh, UpstreamProtocol},
};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::OwnedSemaphorePermit;

/// A group of servers. Reloads that change only its servers keep it, with what is known of the servers that stay.
pub(crate) struct Upstream {
    name: String,
    /// Without the servers, which change.
    pub(super) model: model::Upstream,
    pub(super) balancer: Balancer,
    breaker: Breaker,
    /// Of the files that the model names.
    contents: Vec<[u8; 32]>,
    /// The ways to servers, as the model numbers them: TLS, or plain text.
    transports: Box<[Option<ClientTls>]>,
    pub(crate) counters: UpstreamCounters,
    times: UpstreamTimes,
}

pub(crate) type Upstreams = BTreeMap<String, Arc<Upstream>>;

/// A request that is under way, or a connection in TCP mode, counted for as long as this lives.
pub(crate) struct ActiveRequest {
    upstream: Arc<Upstream>,
    /// Held where connections are limited.
    connection: Option<OwnedSemaphorePermit>,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.upstream.counters.active.subtract();
        self.upstream.breaker.end_request();
    }
}

/// Repeated attempts of one request, counted for as long as this lives.
pub(crate) struct Retry(Arc<Upstream>);

impl Drop for Retry {
    fn drop(&mut self) {
        self.0.breaker.end_retry();
    }
}

impl Upstream {
    /// The servers, where their names lead now.
    pub(crate) fn resolve(model: &model::Upstream, names: &Names) -> Endpoints {
        endpoint::resolve(&model.servers, names)
    }

    /// The upstream with these servers, and credentials for each way to them. `contents` are digests of the
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
            Balancer::new(model.balance, model.panic_threshold, model.outlier_detection.is_some(), endpoints);
        let breaker = Breaker::new(&model.limits);
        let tls = |(tls, credentials): (Option<&model::UpstreamTls>, &Credentials)| {
            tls.map(|tls| ClientTls::new(tls, credentials)).transpose()
        };
        let transports: Result<_, _> = model.transports().zip(credentials).map(tls).collect();
        let transports = transports.map_err(|error| Diagnostic::new(&model.place, error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            model,
            balancer,
            breaker,
            contents,
            transports,
            counters: UpstreamCounters::default(),
            times: UpstreamTimes::default(),
        })
    }

    /// Whether the same model with these files' contents, but for its servers, would be the same.
    pub(crate) fn has_settings(&self, model: &model::Upstream, contents: &[[u8; 32]]) -> bool {
        self.contents == contents && self.model == without_servers(model)
    }

    /// Whether its servers are these.
    pub(crate) fn has_endpoints(&self, endpoints: &Endpoints) -> bool {
        self.balancer.has_endpoints(endpoints)
    }

    /// From now on these servers; what is known of those that stay remains. One call at a time.
    pub(crate) fn set_endpoints(&self, endpoints: Endpoints) {
        self.transports.iter().flatten().for_each(|tls| tls.retain(&endpoints));
        self.balancer.set(endpoints);
    }

    /// Counts a request, for as long as the value lives, and waits for its turn where requests need a connection each
    /// and these are limited. `alone` says that this one cannot share a connection.
    pub(crate) async fn begin(self: &Arc<Self>, alone: bool) -> Result<ActiveRequest, Overloaded> {
        let mut request = self.admit()?;
        if alone || self.has_one_request_a_connection() {
            request.connection = self.breaker.connection().await.inspect_err(|_| self.count_overflow())?;
        }
        Ok(request)
    }

    /// Counts a connection in TCP mode, for as long as the value lives.
    pub(crate) fn begin_connection(self: &Arc<Self>) -> Result<ActiveRequest, Overloaded> {
        let mut request = self.admit()?;
        request.connection = self.breaker.connection_now().inspect_err(|_| self.count_overflow())?;
        Ok(request)
    }

    /// A server has begun its response, so long after it was asked.
    pub(crate) fn began_response(&self, took: Duration) {
        self.times.record(&self.name, took);
    }

    fn admit(self: &Arc<Self>) -> Result<ActiveRequest, Overloaded> {
        self.counters.requests.add();
        self.breaker.begin_request().inspect_err(|_| self.count_overflow())?;
        self.counters.active.add();
        Ok(ActiveRequest { upstream: Arc::clone(self), connection: None })
    }

    fn count_overflow(&self) {
        self.counters.overflow.add();
        metrics::overflow(self.name());
    }

    /// Whether it is known before a connection is there that requests do not share one.
    fn has_one_request_a_connection(&self) -> bool {
        match self.model.protocol {
            UpstreamProtocol::Http1 => true,
            UpstreamProtocol::Auto => self.transports.iter().all(Option::is_none),
            UpstreamProtocol::Http2 | UpstreamProtocol::OfRequest => false,
        }
    }

    /// The server as it is asked by a request for this host, over HTTP/2 if the request came over that or later, where
    /// requests decide about either; `None` if they do not.
    pub(crate) fn as_requested(&self, server: &Server, host: &str, http2: bool) -> Option<Server> {
        let (by_host, by_version) =
            (self.model.host_from_request, self.model.protocol == UpstreamProtocol::OfRequest);
        if !by_host && !by_version {
            return None;
        }
        let server = server.clone().asked_over_http2(by_version && http2);
        Some(if by_host { server.called(&lower_case(host)) } else { server })
    }

    /// Counts a repeated attempt, for as long as the value lives; `None` if there are too many.
    pub(crate) fn begin_retry(self: &Arc<Self>) -> Option<Retry> {
        self.breaker.begin_retry().ok().map(|()| Retry(Arc::clone(self)))
    }

    /// Takes note of what became of a request at a server, which may be left out for it.
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
            tracing::warn!(upstream, %server, last = ?outcome, ?time, "the server fails, and is left out");
        }
    }

    /// What has been counted.
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

    /// TLS to this server; `None` is plain text.
    pub(super) fn tls(&self, server: &Server) -> Option<&ClientTls> {
        self.transports.get(server.transport)?.as_ref()
    }

    /// Whether TLS is spoken to this server.
    pub(crate) fn speaks_tls(&self, server: &Server) -> bool {
        self.tls(server).is_some()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn model(&self) -> &model::Upstream {
        &self.model
    }

    /// Where this client leads, if nothing else is looked at.
    pub(crate) fn point_of(client: SocketAddr) -> u32 {
        ring::point_of(client.ip())
    }

    pub(crate) fn retries(&self) -> usize {
        self.model.retries
    }

    /// Every server, and whether it is healthy as far as is known.
    pub(crate) fn servers(&self) -> Vec<(Server, bool)> {
        self.balancer.servers()
    }

    /// Whether there is a server at this address, and it is healthy as far as is known.
    pub(super) fn has_healthy(&self, address: &ServerAddress) -> bool {
        self.model.original_destination.is_some() || self.balancer.has_healthy(address)
    }

    /// The server for this client, if possible not one of those that were `tried`; `None` if none is healthy. Where
    /// requests keep to servers by what they say, `point` is where that leads. `destination` is where the client's
    /// connection was going before it was redirected here, if it was.
    pub(crate) fn pick(
        &self,
        client: SocketAddr,
        destination: Option<SocketAddr>,
        point: Option<u32>,
        tried: &[ServerAddress],
    ) -> Option<Server> {
        match &self.model.original_destination {
            Some(original) => Some(Server::at(original.server(destination?))),
            None => self.balancer.pick(client, point, tried),
        }
    }
}

fn without_servers(model: &model::Upstream) -> model::Upstream {
    model::Upstream { servers: Vec::new(), dns_refresh: DnsRefresh::default(), ..model.clone() }
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
            assert!(upstream.has_healthy(&server.address), "its connections are kept");
            Some(server.address)
        };
        assert_eq!(
            picked(None, Some(at("10.0.0.1:80"))),
            Some(at("10.0.0.1:80").into()),
            "it may be asked again"
        );
        assert_eq!(picked(Some(81), Some(at("[fd00::1]:80"))), Some(at("[fd00::1]:81").into()));
        assert_eq!(picked(None, None), None);
    }
}
