//! Evaluation of a configuration's access rules. Conditions on connections are evaluated here, and conditions on
//! requests by the caller.

use crate::connection::{CertificateNames, Connection};
use quadrille_config::model::{AccessCondition, AccessRules, Doubt, TextMatch};
use std::net::IpAddr;

/// Checks that all rules allow a connection.
///
/// # Errors
/// Returns the name of the policy that denies it, for the log.
pub(crate) fn admits_connection<'a>(
    rules: &'a [AccessRules],
    connection: &Connection,
) -> Result<(), &'a str> {
    admits(rules, connection, connection.client.ip(), &|_, _| false)
}

/// Checks that all rules allow a client with this address on this connection; `of_request` evaluates the conditions
/// that do not concern the connection.
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

/// Matches the names of the client certificate in Envoy's order: URIs, then DNS names, then the subject.
fn is_authenticated(connection: &Connection, wanted: Option<&TextMatch>) -> bool {
    let Some(certificate) = &connection.certificate else { return false };
    wanted.is_none_or(|wanted| {
        let CertificateNames { uris, dns, subject } = certificate.names();
        uris.iter().chain(dns).chain([subject]).any(|name| wanted.matches(name))
    })
}
