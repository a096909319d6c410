//! Clusters whose endpoint is the original destination of a redirected connection, and the source addresses of
//! upstream connections.

use crate::{
    common::source_address,
    reader::{Field, Message, ReadMessage},
    schema,
    values::number,
};
use quadrille_config::{Problem, model::OriginalDestination};
use std::net::IpAddr;

/// Reads the settings of a cluster of type `ORIGINAL_DST`.
pub(crate) fn original_destination(message: &Message<'_>) -> Option<OriginalDestination> {
    let refuse = |field: Field<'_>, problem: &str, remedy: &str| field.fail(Problem::new(problem, remedy));
    if message.get("lb_policy").is_none_or(|policy| !matches!(policy.text(), Some("CLUSTER_PROVIDED" | "6")))
    {
        let problem = "a cluster of type ORIGINAL_DST has one endpoint for each connection";
        return refuse(message.field().clone(), problem, "write `lb_policy: CLUSTER_PROVIDED`");
    }
    if let Some(servers) = message.get("load_assignment") {
        return refuse(servers, "the destination is determined by the connection", "remove it");
    }
    for name in ["health_checks", "outlier_detection"] {
        if let Some(field) = message.get(name) {
            field.warn(name, "ignored: endpoints of type ORIGINAL_DST are not known in advance");
        }
    }
    let Some(config) = message.get("original_dst_lb_config") else {
        return Some(OriginalDestination::default());
    };
    let config = config.message(&schema::ORIGINAL_DST_CONFIG)?;
    let port = match config.get("upstream_port_override") {
        Some(field) => {
            let port = field.parse(number)?;
            match u16::try_from(port) {
                Ok(port) if port != 0 => Some(port),
                _ => return refuse(field, &format!("{port} is not a port"), "ports are 1 to 65535"),
            }
        }
        None => None,
    };
    Some(OriginalDestination { port })
}

/// Source addresses of upstream connections: the first one of the endpoint's family is used.
pub(crate) fn source_addresses(message: &Message<'_>) -> Option<Vec<IpAddr>> {
    let Some(bind) = message.get("upstream_bind_config") else { return Some(Vec::new()) };
    let bind = bind.message(&schema::BIND_CONFIG)?;
    let mut addresses: Vec<_> =
        bind.get("source_address").map(|field| source_address(&field)).into_iter().collect::<Option<_>>()?;
    for extra in bind.list("extra_source_addresses") {
        let extra = extra.message(&schema::EXTRA_SOURCE_ADDRESS)?;
        addresses.push(source_address(&extra.require("address")?)?);
    }
    Some(addresses)
}
