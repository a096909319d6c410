//! Listeners, their filter chains, and the terminal filters.

use crate::{
    access_log::access_log,
    chain_match::{Arrivals, chain_match},
    common::{Protocol, duration, listener_address, own_address},
    filters::{self, HTTP_MANAGER},
    http::{HttpManager, http_manager},
    listener_filters::{ListenerFilters, listener_filters},
    quic::{QuicOptions, quic_options, quic_transport},
    rbac::{self, Access},
    reader::{Field, Message, ReadMessage},
    schema,
    tls::{DownstreamTls, downstream},
    values::{enumeration, number},
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{
        AccessLog, ChainMatch, Inspection, Limits, Place, Ports, ProxyProtocolIn, Redirected, Timeouts,
        Transport, Weighted,
    },
};
use std::{
    net::{Ipv6Addr, SocketAddr},
    num::NonZeroU32,
    time::Duration,
};

/// `envoy.config.listener.v3.Listener`, with unresolved secrets and routes.
#[derive(Debug)]
pub struct Listener {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Additional addresses.
    pub(crate) more_addresses: Vec<SocketAddr>,
    /// Transport protocol; over UDP only HTTP/3 is served.
    pub(crate) protocol: Protocol,
    /// Whether it has a socket; otherwise it accepts connections passed by other listeners.
    pub(crate) bound: bool,
    pub(crate) redirected: Redirected,
    /// Whether its connections are outbound requests of local processes.
    pub(crate) outbound: bool,
    pub(crate) chains: Vec<Chain>,
    pub(crate) default_chain: Option<Chain>,
    pub(crate) proxy_protocol: ProxyProtocolIn,
    pub(crate) inspection: Inspection,
    pub(crate) limits: Limits,
    pub(crate) place: Place,
}

impl Listener {
    /// Returns its addresses. `::` covers both families, which makes an additional `0.0.0.0` redundant.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let all = || std::iter::once(self.address).chain(self.more_addresses.iter().copied());
        let is_said_twice = move |address: &SocketAddr| {
            let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
            address.is_ipv4() && address.ip().is_unspecified() && all().any(|other| other == both)
        };
        all().filter(move |address| !is_said_twice(address))
    }

    /// Returns all filter chains, the default chain last.
    pub(crate) fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains.iter().chain(&self.default_chain)
    }

    /// Returns the `stat_prefix` of each chain's connection manager, the default chain last; `None` for chains
    /// without one.
    pub fn stat_prefixes(&self) -> impl Iterator<Item = Option<&str>> {
        self.chains().map(|chain| match &chain.serve {
            Serve::Http(manager) => Some(manager.stat_prefix.as_str()),
            Serve::Tcp(_) => None,
        })
    }
}

/// `envoy.config.listener.v3.FilterChain`.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) name: String,
    pub(crate) accepts: ChainMatch,
    pub(crate) tls: Option<DownstreamTls>,
    pub(crate) serve: Serve,
    /// Access rules for connections.
    pub(crate) access: Vec<Access>,
    pub(crate) timeouts: Timeouts,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) place: Place,
}

/// Terminal filter of a chain.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per filter chain, and most are HTTP")]
pub(crate) enum Serve {
    Http(HttpManager),
    Tcp(Vec<Weighted>),
}

/// Envoy's default listener filter timeout.
const INSPECTION: Duration = Duration::from_secs(15);
const HTTP_IDLE: Duration = Duration::from_secs(3600);
const TCP_IDLE: Duration = Duration::from_secs(3600);

/// Reads a listener, with its name.
pub(crate) fn listener(field: &Field<'_>) -> Option<(String, Listener)> {
    let message = field.message(&schema::LISTENER)?;
    let address = message.require("address");
    let bound = address.as_ref().and_then(listener_address);
    let binds = message.get("bind_to_port").is_none_or(|_| message.flag("bind_to_port"));
    let quic = match bound {
        Some((_, Protocol::Udp)) => Some(quic_options(&message)?),
        _ => {
            if let Some(ignored) = message.get("udp_listener_config") {
                ignored.warn("udp_listener_config", "ignored: the address is a TCP address");
            }
            None
        }
    };
    let ListenerFilters { proxy_protocol, original_destination, tls, http } = listener_filters(&message)?;
    let redirected = match (message.flag("use_original_dst"), original_destination) {
        (true, _) => Redirected::HandedOver,
        (false, true) => Redirected::Served,
        (false, false) => Redirected::Unasked,
    };
    let more_addresses = more_addresses(&message)?;
    if quic.is_some() && !(binds && redirected == Redirected::Unasked && more_addresses.is_empty()) {
        return field.fail(Problem::new(
            "refused: UDP listeners support neither redirection nor additional addresses",
            "remove `bind_to_port`, `use_original_dst`, `additional_addresses` and the filter for original destinations",
        ));
    }
    if proxy_protocol == ProxyProtocolIn::Required && redirected != Redirected::Unasked {
        return field.fail(Problem::new(
            "refused: the destination of the PROXY protocol differs from the kernel's original destination",
            "remove the listener filter, or `use_original_dst` and the filter for original destinations",
        ));
    }
    let port = bound.map(|(address, _)| address.port()).filter(|_| redirected == Redirected::Unasked);
    let surroundings = Surroundings { port, quic };
    let mut good = true;
    let mut chains = Vec::new();
    for item in message.list("filter_chains") {
        match chain(&item, surroundings) {
            Some(chain) => chains.push(chain),
            None => good = false,
        }
    }
    let default_chain = match message.get("default_filter_chain") {
        Some(field) => Some(chain(&field, surroundings)?),
        None => None,
    };
    if good && chains.is_empty() && default_chain.is_none() {
        return field.fail(Problem::new("`filter_chains` is missing", "a listener requires one"));
    }
    let timeout = match message.get("listener_filters_timeout") {
        Some(field) => duration(&field)?,
        None => INSPECTION,
    };
    if proxy_protocol == ProxyProtocolIn::Required {
        if quic.is_some() {
            return field.fail(Problem::new(
                "refused: the PROXY protocol is not supported for HTTP/3",
                "remove the listener filter",
            ));
        }
        knows_preceding_proxies(&message, chains.iter().chain(&default_chain))?;
    }
    let (address, (bound, protocol)) = (address?, bound?);
    if !good {
        return None;
    }
    let all_chains = || chains.iter().chain(&default_chain);
    let tls = tls
        .unwrap_or_else(|| if all_chains().any(needs_tls_inspector) { Ports::all() } else { Ports::none() });
    let inspection = Inspection {
        // Zero means no limit in Envoy; here a client must not hold an idle connection forever.
        timeout: if timeout.is_zero() { HTTP_IDLE } else { timeout },
        continues: message.flag("continue_on_listener_filters_timeout"),
        tls,
        http,
    };
    const DIRECTIONS: &[(&str, u32, bool)] =
        &[("UNSPECIFIED", 0, false), ("INBOUND", 1, false), ("OUTBOUND", 2, true)];
    let outbound = match message.get("traffic_direction") {
        Some(direction) => direction.parse(enumeration(DIRECTIONS))?,
        None => false,
    };
    let name = message.string("name");
    let name = if name.is_empty() { bound.to_string() } else { name };
    let listener = Listener {
        name: name.clone(),
        address: bound,
        more_addresses,
        protocol,
        bound: binds,
        redirected,
        outbound,
        chains,
        default_chain,
        proxy_protocol,
        inspection,
        limits: Limits::default(),
        place: address.place(),
    };
    Some((name, listener))
}

fn more_addresses(message: &Message<'_>) -> Option<Vec<SocketAddr>> {
    let read = |field: &Field<'_>| {
        let more = field.message(&schema::ADDITIONAL_ADDRESS)?;
        own_address(&more.require("address")?)
    };
    message.list("additional_addresses").iter().map(read).collect()
}

/// Returns whether Envoy would enable the TLS inspector automatically.
fn needs_tls_inspector(chain: &Chain) -> bool {
    let ChainMatch { server_names, transport, application_protocols, .. } = &chain.accepts;
    match transport {
        Some(transport) => *transport == Transport::Tls,
        None => !server_names.is_empty() || !application_protocols.is_empty(),
    }
}

/// Rejects rules on the direct peer if a load balancer announces the client's address instead.
fn knows_preceding_proxies<'a>(
    message: &Message<'_>,
    mut chains: impl Iterator<Item = &'a Chain>,
) -> Option<()> {
    let asks = |chain: &'a Chain| {
        let of_requests = match &chain.serve {
            Serve::Http(manager) => manager.direct.as_ref(),
            Serve::Tcp(_) => None,
        };
        chain.access.iter().find_map(|access| access.direct.as_ref()).or(of_requests)
    };
    match chains.find_map(asks) {
        Some(place) => {
            // Reported at the rule, whose path marks the listener as access-controlled.
            message.field().report(Diagnostic::new(
                place,
                Problem::new(
                    "`direct_remote_ip` with the PROXY protocol is refused",
                    "use `source_ip`, which is the announced client",
                ),
            ));
            None
        }
        None => Some(()),
    }
}

/// Listener settings needed to read the chains.
#[derive(Clone, Copy)]
struct Surroundings {
    /// The only destination port of connections; `None` if they are redirected.
    port: Option<u16>,
    /// QUIC options of a UDP listener.
    quic: Option<QuicOptions>,
}

impl Surroundings {
    fn arrivals(self) -> Arrivals {
        Arrivals { port: self.port, protocol: self.protocol() }
    }

    fn protocol(self) -> Protocol {
        if self.quic.is_some() { Protocol::Udp } else { Protocol::Tcp }
    }
}

fn chain(field: &Field<'_>, surroundings: Surroundings) -> Option<Chain> {
    let message = field.message(&schema::FILTER_CHAIN)?;
    let accepts = match message.get("filter_chain_match") {
        Some(condition) => chain_match(&condition, surroundings.arrivals()),
        None => Some(ChainMatch::default()),
    };
    let tls = transport_socket(&message, surroundings.protocol());
    let serve = serve(&message, field, surroundings.protocol());
    let mut timeouts = Timeouts::default();
    if let Some(quic) = surroundings.quic {
        timeouts.handshake = quic.handshake();
    }
    if let Some(connect) = message.duration("transport_socket_connect_timeout")
        && !connect.is_zero()
    {
        timeouts.handshake = connect;
    }
    let TerminalFilter { serve, access, idle, access_log } = serve?;
    timeouts.idle = idle;
    if let Some(quic) = surroundings.quic {
        quic.limit(&mut timeouts);
    }
    if let Serve::Http(manager) = &serve {
        timeouts.header = manager.header_timeout.unwrap_or(timeouts.header);
        timeouts.request = manager.request_timeout;
    }
    let name = message.string("name");
    let (accepts, mut tls, place) = (accepts?, tls?, field.place());
    if let Some(tls) = &mut tls {
        tls.speaks_to_mesh(&accepts.application_protocols);
    }
    Some(Chain { name, accepts, tls, serve, access, timeouts, access_log, place })
}

fn transport_socket(message: &Message<'_>, protocol: Protocol) -> Option<Option<DownstreamTls>> {
    const QUIC: &str = "on UDP, write `envoy.transport_sockets.quic` with a `QuicDownstreamTransport`";
    let Some(field) = message.get("transport_socket") else {
        return match protocol {
            Protocol::Tcp => Some(None),
            Protocol::Udp => message.field().fail(Problem::new("`transport_socket` is missing", QUIC)),
        };
    };
    let socket = field.message(&schema::TRANSPORT_SOCKET)?;
    let (kind, config) = socket.require("typed_config")?.any()?;
    match (kind.rsplit('.').next(), protocol) {
        (Some("DownstreamTlsContext"), Protocol::Tcp) => downstream(&config).map(Some),
        (Some("QuicDownstreamTransport"), Protocol::Udp) => quic_transport(&config).map(Some),
        (Some("RawBuffer"), Protocol::Tcp) => Some(None),
        _ => {
            let remedy = match protocol {
                Protocol::Tcp => "TLS and raw buffer",
                Protocol::Udp => QUIC,
            };
            let problem =
                format!("refused: transport socket {kind} is not supported for clients of this listener");
            config.fail(Problem::new(problem, remedy))
        }
    }
}

/// Terminal filter of a chain, with its access rules, idle timeout and access log.
struct TerminalFilter {
    serve: Serve,
    access: Vec<Access>,
    idle: Duration,
    access_log: Option<AccessLog>,
}

fn serve(message: &Message<'_>, chain: &Field<'_>, protocol: Protocol) -> Option<TerminalFilter> {
    let filters = filters::network(message.list("filters"))?;
    let (asking, filters): (Vec<_>, Vec<_>) =
        filters.into_iter().partition(|filter| filter.kind == filters::NETWORK_RBAC);
    let mut access = Vec::new();
    for filter in &asking {
        access.extend(rbac::rbac(filter.config.as_ref()?, rbac::Of::Connections)?);
    }
    let [filter] = filters.as_slice() else {
        return match filters.get(1) {
            Some(second) => {
                second.field.fail(Problem::new("a second terminal filter", "only one can be used"))
            }
            None => chain.fail(Problem::new(
                "`filters` is missing",
                "write an HTTP connection manager or a TCP proxy",
            )),
        };
    };
    let Some(config) = &filter.config else {
        return filter.field.fail("`typed_config` is missing");
    };
    if filter.kind == HTTP_MANAGER {
        let manager = http_manager(config, protocol)?;
        let idle = manager.idle.unwrap_or(HTTP_IDLE);
        let access_log = manager.access_log.clone();
        return Some(TerminalFilter { serve: Serve::Http(manager), access, idle, access_log });
    }
    if protocol == Protocol::Udp {
        return filter.field.fail(Problem::new(
            "refused: raw UDP is not proxied",
            "write an HTTP connection manager with `codec_type: HTTP3`",
        ));
    }
    tcp_proxy(config).map(|tcp| TerminalFilter { access, ..tcp })
}

/// Reads `envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy`.
fn tcp_proxy(field: &Field<'_>) -> Option<TerminalFilter> {
    let message = field.message(&schema::TCP_PROXY)?;
    let idle = match message.get("idle_timeout") {
        Some(field) => duration(&field)?,
        None => TCP_IDLE,
    };
    let idle = if idle.is_zero() { LONGEST_IDLE } else { idle };
    let to = match message.one_of(&["cluster", "weighted_clusters"]) {
        Some(("cluster", cluster)) => vec![Weighted::all(cluster.text()?)],
        Some((_, clusters)) => {
            let clusters = clusters.message(&schema::TCP_WEIGHTED)?.list("clusters");
            let mut to = Vec::new();
            for item in clusters {
                let message = item.message(&schema::TCP_CLUSTER_WEIGHT)?;
                let weight = message.require("weight")?.parse(number)?;
                let name = message.require("name")?.text()?;
                to.extend(NonZeroU32::new(weight).map(|weight| Weighted { weight, ..Weighted::all(name) }));
            }
            to
        }
        None => return field.fail("`cluster` is missing"),
    };
    if to.is_empty() {
        return field.fail("all weights are zero, so connections cannot be forwarded");
    }
    Some(TerminalFilter {
        serve: Serve::Tcp(to),
        access: Vec::new(),
        idle,
        access_log: access_log(&message)?,
    })
}

/// Replaces an unlimited timeout.
const LONGEST_IDLE: Duration = Duration::from_secs(7 * 24 * 3600);
