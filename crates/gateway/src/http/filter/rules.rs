//! Access rules: conditions on the client and the request that allow or deny it.

use super::call::Call;
use crate::{
    access,
    connection::Connection,
    http::{
        error::refusal::Refusal,
        request::{Request, envoy_headers::Use},
    },
};
use bytes::Bytes;
use quadrille_config::model::{AccessCondition, AccessRules, Doubt};

const ADDRESS_DENIED: &str = "This client address is not allowed here.\n";

/// Checks that the rules allow a request.
///
/// # Errors
/// Returns the refusal, with the policy that denies the request.
pub(super) fn check(rules: &AccessRules, call: &Call<'_>) -> Result<(), Refusal> {
    let request = call.request();
    let Some(policy) = denying_policy(rules, request, call.connection) else { return Ok(()) };
    let reason = policy.to_owned();
    let refusal = match request.envoy_headers {
        Use::Unknown => {
            Refusal { reason: reason.into(), ..Refusal::page("", 403, ADDRESS_DENIED, &request.headers) }
        }
        // Envoy's text.
        _ => Refusal::own(reason, 403, Bytes::from_static(b"RBAC: access denied")),
    };
    Err(refusal.counted_as("request"))
}

/// Evaluates rules in shadow mode: stores the name of the matching policy in the request's metadata under `name`.
pub(super) fn note(rules: &AccessRules, name: &str, call: &mut Call<'_>) {
    let policy = denying_policy(rules, call.request(), call.connection).map(str::to_owned);
    if let Some(policy) = policy {
        call.request_mut().metadata.set("envoy.filters.http.rbac", name, policy.into());
    }
}

/// Checks the rules for client addresses of the route that a request matches. Rules for certificates follow when the
/// request is routed: preflight requests, which are handled before that, carry no certificate.
///
/// # Errors
/// Returns the refusal of [`check_route`].
pub(super) fn check_clients(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(matched) = call.route() else { return Ok(()) };
    let rules = matched.route().access.iter().filter(|rules| !concern_certificates(rules));
    check_route(rules, call.request(), call.connection)
}

/// Checks that the rules of a route allow a request.
///
/// # Errors
/// Returns the refusal, which names the property of the client that was denied.
pub(crate) fn check_route<'a>(
    rules: impl IntoIterator<Item = &'a AccessRules>,
    request: &Request,
    connection: &Connection,
) -> Result<(), Refusal> {
    let denies = |rules: &&AccessRules| denying_policy(rules, request, connection).is_some();
    let Some(rules) = rules.into_iter().find(denies) else { return Ok(()) };
    let (reason, words) = match (concern_certificates(rules), &connection.certificate) {
        (false, _) => ("client address denied", ADDRESS_DENIED),
        (true, None) => ("no client certificate", "A client certificate is required.\n"),
        (true, Some(_)) => ("client certificate denied", "This client certificate is not allowed here.\n"),
    };
    Err(Refusal::page(reason, 403, words, &request.headers).counted_as("request"))
}

fn concern_certificates(rules: &AccessRules) -> bool {
    let principals = rules.policies.iter().flat_map(|policy| &policy.principals);
    principals.into_iter().any(|condition| matches!(condition, AccessCondition::Authenticated(_)))
}

fn denying_policy<'a>(rules: &'a AccessRules, request: &Request, connection: &Connection) -> Option<&'a str> {
    let view = request.view(connection.tls);
    let holds = |condition: &AccessCondition, doubt: Doubt| match condition {
        AccessCondition::Header(header) => view.header_holds(header, doubt),
        AccessCondition::Path(path) => path.matches(view.path),
        AccessCondition::Metadata(metadata) => request.metadata.matches(metadata),
        _ => false,
    };
    let rules = std::slice::from_ref(rules);
    access::admits(rules, connection, request.sender.client.ip(), &holds).err()
}
