//! Access rules: conditions on the client and the request that allow or deny it.

use super::call::Call;
use crate::{access, http::error::refusal::Refusal};
use bytes::Bytes;
use quadrille_config::model::{AccessCondition, AccessRules, Doubt};

/// Checks that the rules allow a request.
///
/// # Errors
/// Returns the refusal, with the policy that denies the request.
pub(super) fn check(rules: &AccessRules, call: &Call<'_>) -> Result<(), Refusal> {
    denying_policy(rules, call).map_or(Ok(()), |policy| {
        let body = Bytes::from_static(b"RBAC: access denied");
        Err(Refusal::own(policy.to_owned(), 403, body).counted_as("request"))
    })
}

/// Evaluates rules in shadow mode: stores the name of the matching policy in the request's metadata under `name`.
pub(super) fn note(rules: &AccessRules, name: &str, call: &mut Call<'_>) {
    let policy = denying_policy(rules, call).map(str::to_owned);
    if let Some(policy) = policy {
        call.request_mut().metadata.set("envoy.filters.http.rbac", name, policy.into());
    }
}

fn denying_policy<'a>(rules: &'a AccessRules, call: &Call<'_>) -> Option<&'a str> {
    let view = call.view();
    let request = call.request();
    let holds = |condition: &AccessCondition, doubt: Doubt| match condition {
        AccessCondition::Header(header) => view.header_holds(header, doubt),
        AccessCondition::Path(path) => path.matches(view.path),
        AccessCondition::Metadata(metadata) => request.metadata.matches(metadata),
        _ => false,
    };
    let rules = std::slice::from_ref(rules);
    access::admits(rules, call.connection, request.sender.client.ip(), &holds).err()
}
