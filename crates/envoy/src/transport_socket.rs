//! Upstream transport sockets: plain text and TLS, and their selection per endpoint.

use crate::{
    endpoints::{Labels, labels},
    reader::{Field, Message, ReadMessage},
    schema,
    tls::{ClusterTls, upstream},
    values::enumeration,
};
use quadrille_config::{Problem, model::ProxyProtocolOut};

/// `envoy.config.core.v3.TransportSocket` of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransportSocket {
    /// TLS settings; `None` for plain text.
    pub(crate) tls: Option<ClusterTls>,
    pub(crate) proxy_protocol: ProxyProtocolOut,
}

/// An item of `transport_socket_matches`.
#[derive(Clone, Debug)]
pub(crate) struct SocketMatch {
    condition: Labels,
    pub(crate) socket: TransportSocket,
}

impl SocketMatch {
    /// Returns whether it matches an endpoint with these labels.
    pub(crate) fn accepts(&self, labels: &Labels) -> bool {
        self.condition.iter().all(|(name, value)| labels.get(name) == Some(value))
    }

    /// Returns whether it matches every endpoint not matched before.
    pub(crate) fn accepts_all(&self) -> bool {
        self.condition.is_empty()
    }
}

/// Reads the cluster's default transport socket.
pub(crate) fn transport_socket(message: &Message<'_>) -> Option<TransportSocket> {
    match message.get("transport_socket") {
        Some(field) => socket(&field),
        None => Some(TransportSocket::default()),
    }
}

/// Reads `transport_socket_matches`; the first that matches an endpoint's labels is used.
pub(crate) fn transport_socket_matches(message: &Message<'_>) -> Option<Vec<SocketMatch>> {
    let matches = message.list("transport_socket_matches");
    matches.iter().map(socket_match).collect()
}

fn socket_match(field: &Field<'_>) -> Option<SocketMatch> {
    let message = field.message(&schema::SOCKET_MATCH)?;
    let condition = match message.get("match") {
        Some(condition) => {
            let read = labels(condition.node());
            // A partially understood condition could match unrelated endpoints.
            if read.len() != condition.entries().len() {
                return condition.fail("refused: only scalar values are matched, not lists and mappings");
            }
            read
        }
        None => Labels::new(),
    };
    let socket = match message.get("transport_socket") {
        Some(field) => socket(&field)?,
        None => TransportSocket::default(),
    };
    Some(SocketMatch { condition, socket })
}

fn socket(field: &Field<'_>) -> Option<TransportSocket> {
    let socket = field.message(&schema::TRANSPORT_SOCKET)?;
    let config = socket.require("typed_config")?;
    let (kind, config) = config.any()?;
    match kind.rsplit('.').next() {
        Some("UpstreamTlsContext") => {
            Some(TransportSocket { tls: Some(upstream(&config)?), ..TransportSocket::default() })
        }
        Some("RawBuffer") => Some(TransportSocket::default()),
        Some("ProxyProtocolUpstreamTransport") => proxy_protocol(&config),
        _ => config.fail(Problem::new(
            format!("refused: transport socket {kind} is not supported for upstreams"),
            "TLS, raw buffer, and the PROXY protocol in front of them",
        )),
    }
}

fn proxy_protocol(field: &Field<'_>) -> Option<TransportSocket> {
    const VERSIONS: &[(&str, u32, ProxyProtocolOut)] =
        &[("V1", 0, ProxyProtocolOut::V1), ("V2", 1, ProxyProtocolOut::V2)];
    let message = field.message(&schema::PROXY_PROTOCOL_UPSTREAM)?;
    let mut version = ProxyProtocolOut::V1;
    if let Some(config) = message.get("config") {
        let config = config.message(&schema::PROXY_PROTOCOL_CONFIG)?;
        version = match config.get("version") {
            Some(field) => field.parse(enumeration(VERSIONS))?,
            None => version,
        };
    }
    let inner = message.require("transport_socket")?;
    let inside = socket(&inner)?;
    if inside.proxy_protocol != ProxyProtocolOut::Off {
        return inner.fail(Problem::new("nested PROXY protocol", "remove one"));
    }
    Some(TransportSocket { proxy_protocol: version, ..inside })
}
