//! Who is let in, by the rules of a configuration: what is asked about connections is answered here, and what is asked
//! about requests by whoever has one.

use crate::connection::{CertificateNames, Connection};
use quadrille_config::model::{AccessCondition, AccessRules, Doubt, TextMatch};
use std::net::IpAddr;

/// Whether all rules let a connection in.
///
/// # Errors
/// Says which policy does not, for the log.
pub(crate) fn admits_connection<'a>(
    rules: &'a [AccessRules],
    connection: &Connection,
) -> Result<(), &'a str> {
    admits(rules, connection, connection.client.ip(), &|_, _| false)
}

/// Whether all rules let in who comes by this connection, from this address; `of_request` says which conditions hold that
/// are not about the connection.
///
/// # Errors
/// See [`admits_connection`].
pub(crate) fn admits<'a>(
    rules: &'a [AccessRules],
    connection: &Connection,
    client: IpAddr,
    of_request: &dyn Fn(&AccessCondition, Doubt) -> bool,
) -> Result<(), &'a str> {
    const NO_POLICY: &str = "no policy allows it";
    let holds = |condition: &AccessCondition, doubt: Doubt| match condition {
        AccessCondition::Client(network) => network.contains(client),
        AccessCondition::Local(network) => network.contains(connection.local.ip()),
        AccessCondition::LocalPort(from, below) => (*from..*below).contains(&connection.local.port().into()),
        AccessCondition::ServerName(name) => name.matches(connection.sni.as_deref().unwrap_or_default()),
        AccessCondition::Authenticated(name) => is_authenticated(connection, name.as_ref()),
        other => of_request(other, doubt),
    };
    rules.iter().try_for_each(|rules| rules.admits(&holds)).map_err(|policy| policy.unwrap_or(NO_POLICY))
}

/// As Envoy asks: URIs first, then DNS names, then the subject.
fn is_authenticated(connection: &Connection, wanted: Option<&TextMatch>) -> bool {
    let Some(certificate) = &connection.certificate else { return false };
    wanted.is_none_or(|wanted| {
        let CertificateNames { uris, dns, subject } = certificate.names();
        uris.iter().chain(dns).chain([subject]).any(|name| wanted.matches(name))
    })
}
