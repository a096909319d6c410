//! `envoy.config.listener.v3.FilterChainMatch`: the connections that a filter chain accepts.

use crate::{
    common::{Protocol, cidr_range},
    reader::{Field, ReadMessage},
    schema,
    values::{enumeration, number},
};
use quadrille_config::{
    Problem,
    model::{ChainMatch, ClientOrigin, Transport},
};

/// Listener settings needed to read the conditions.
#[derive(Clone, Copy)]
pub(crate) struct Arrivals {
    /// The only destination port of connections; `None` if they are redirected, or the address is unknown.
    pub(crate) port: Option<u16>,
    pub(crate) protocol: Protocol,
}

/// Reads the condition of a filter chain.
pub(crate) fn chain_match(field: &Field<'_>, arrivals: Arrivals) -> Option<ChainMatch> {
    const ORIGINS: &[(&str, u32, Option<ClientOrigin>)] = &[
        ("ANY", 0, None),
        ("SAME_IP_OR_LOOPBACK", 1, Some(ClientOrigin::ThisMachine)),
        ("EXTERNAL", 2, Some(ClientOrigin::Elsewhere)),
    ];
    let message = field.message(&schema::FILTER_CHAIN_MATCH)?;
    let destination_port = match message.get("destination_port") {
        Some(wanted) => Some(destination_port(&wanted, arrivals)?),
        None => None,
    };
    let transport = match message.get("transport_protocol") {
        Some(transport) => transport_protocol(&transport, arrivals.protocol)?,
        None => None,
    };
    let texts = |name| message.list(name).iter().map(Field::text).collect::<Option<Vec<_>>>();
    let networks = |name| message.list(name).iter().map(cidr_range).collect::<Option<Vec<_>>>();
    let origin = match message.get("source_type") {
        Some(origin) => origin.parse(enumeration(ORIGINS))?,
        None => None,
    };
    let client_ports = message.list("source_ports").iter().map(port).collect::<Option<Vec<_>>>()?;
    Some(ChainMatch {
        destination_port,
        destinations: networks("prefix_ranges")?,
        server_names: texts("server_names")?.into_iter().map(str::to_ascii_lowercase).collect(),
        transport,
        application_protocols: texts("application_protocols")?.into_iter().map(str::to_owned).collect(),
        peers: networks("direct_source_prefix_ranges")?,
        origin,
        clients: networks("source_prefix_ranges")?,
        client_ports,
    })
}

fn destination_port(field: &Field<'_>, arrivals: Arrivals) -> Option<u16> {
    let wanted = port(field)?;
    match arrivals.port {
        Some(own) if own != wanted => {
            field.fail(format!("refused: this listener receives no connections on port {wanted}"))
        }
        _ => Some(wanted),
    }
}

fn port(field: &Field<'_>) -> Option<u16> {
    let number = field.parse(number)?;
    match u16::try_from(number) {
        Ok(port) if port != 0 => Some(port),
        _ => field.fail(Problem::new(format!("{number} is not a port"), "ports are 1 to 65535")),
    }
}

fn transport_protocol(field: &Field<'_>, protocol: Protocol) -> Option<Option<Transport>> {
    Some(match (field.text()?, protocol) {
        ("", _) => None,
        // The protocol inside QUIC.
        ("tls", Protocol::Tcp) | ("quic", Protocol::Udp) => Some(Transport::Tls),
        ("raw_buffer", Protocol::Tcp) => Some(Transport::Plain),
        (other, protocol) => {
            let remedy = match protocol {
                Protocol::Tcp => "use `tls` or `raw_buffer`",
                Protocol::Udp => "use `quic`",
            };
            let problem = format!("{} is not a supported transport protocol", quadrille_config::quote(other));
            return field.fail(Problem::new(problem, remedy));
        }
    })
}
