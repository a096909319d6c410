//! Hash policies for consistent hashing.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    model::{HashOn, HashPolicy},
    values::header_name,
};

/// Reads a route's policies; unsupported ones are skipped with a warning, since they only affect load balancing.
pub(crate) fn hash_policies(route: &Message<'_>) -> Option<Vec<HashPolicy>> {
    let mut policies = Vec::new();
    for field in route.list("hash_policy") {
        let message = field.message(&schema::HASH_POLICY)?;
        let terminal = message.flag("terminal");
        let on = match message.one_of(&["header", "cookie", "connection_properties", "query_parameter"]) {
            Some(("header", header)) => {
                let header = header.message(&schema::HASH_HEADER)?;
                Some(HashOn::Header(header.require("header_name")?.parse(header_name)?))
            }
            Some(("cookie", cookie)) => Some(cookie_policy(&cookie)?),
            Some(("connection_properties", properties)) => {
                let properties = properties.message(&schema::HASH_CONNECTION)?;
                properties.flag("source_ip").then_some(HashOn::ClientIp)
            }
            Some((_, query)) => {
                let query = query.message(&schema::HASH_QUERY)?;
                Some(HashOn::Query(query.require("name")?.text()?.to_owned()))
            }
            None => None,
        };
        match on {
            Some(on) => policies.push(HashPolicy { on, terminal }),
            None => field.warn("hash_policy", "ignored: no supported attribute is set"),
        }
    }
    Some(policies)
}

fn cookie_policy(field: &Field<'_>) -> Option<HashOn> {
    let message = field.message(&schema::HASH_COOKIE)?;
    let path = message.string("path");
    Some(HashOn::Cookie {
        name: message.require("name")?.text()?.to_owned(),
        lifetime: message.duration("ttl"),
        path: (!path.is_empty()).then_some(path),
    })
}
