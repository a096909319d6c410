//! Client certificates that a route requires.

use super::text_match::{patterns, show_patterns};
use crate::{
    Diagnostic, Field, Problem,
    file::schema::{Key, Preset, Section},
    model::{AccessAction, AccessCondition, AccessPolicy, AccessRules, ClientAuth, Route, TextMatch, Tls},
    quote,
};
use serde_json::Value;

pub(super) const ROUTE_CLIENT_AUTH: Section<Vec<TextMatch>> = Section {
    path: "listeners[].routes[].client_auth",
    about: "The client certificates that a route accepts. The listener requests and verifies them, by \
            `tls.client_auth`.",
    keys: &[Key::new(
        "names",
        "list of names",
        Preset::Required,
        "Names of certificates: one of a certificate's URIs and DNS names, or its subject (RFC 2253), must be in the \
                list. One `*` in a name stands for any characters: `*.staff.example`, `spiffe://prod/*`.",
        |field, names| *names = patterns(field),
        |names| show_patterns(names),
    )],
};

/// The name of the policy, by which [`show`] recognizes it.
const NAME: &str = "client_auth";

/// Reads `required`, or the accepted names.
pub(super) fn client_auth(field: &Field<'_>) -> Option<AccessRules> {
    let mut names = Vec::new();
    if field.is_scalar() {
        field.parse(required)?;
    } else {
        ROUTE_CLIENT_AUTH.read(field, &mut names)?;
    }
    let mut principals: Vec<_> =
        names.into_iter().map(|name| AccessCondition::Authenticated(Some(name))).collect();
    if principals.is_empty() {
        principals.push(AccessCondition::Authenticated(None));
    }
    let permissions = vec![AccessCondition::Always];
    let policy = AccessPolicy { name: NAME.to_owned(), permissions, principals };
    Some(AccessRules { action: AccessAction::Allow, policies: vec![policy], place: field.place() })
}

fn required(text: &str) -> Result<(), Problem> {
    match text {
        "required" => Ok(()),
        _ => Err(Problem::new(
            format!("{} is not a requirement", quote(text)),
            "write `required`, or `{names: [...]}`",
        )),
    }
}

/// Refuses routes that require certificates, if the listener requests none. `field` is the listener.
pub(super) fn refuse_unrequested<'r>(
    field: &Field<'_>,
    routes: impl Iterator<Item = &'r Route>,
    tls: Option<&Tls>,
) {
    if tls.is_some_and(|tls| tls.policy.client_auth != ClientAuth::Off) {
        return;
    }
    for rules in routes.flat_map(|route| &route.access).filter(|rules| principals(rules).next().is_some()) {
        let problem = Problem::new(
            "the listener requests no client certificates, so that it would refuse every request",
            "add `tls: {client_auth: {mode: optional, ca: clients-ca.pem}}` to the listener",
        );
        field.report(Diagnostic::new(&rules.place, problem));
    }
}

/// Shows the requirement among the access rules of a route.
pub(super) fn show(access: &[AccessRules]) -> Value {
    let Some(rules) = access.iter().find(|rules| principals(rules).next().is_some()) else {
        return Value::Null;
    };
    let names: Vec<_> = principals(rules).flatten().cloned().collect();
    if names.is_empty() { "required".into() } else { ROUTE_CLIENT_AUTH.show(&names) }
}

/// Returns the names that rules made by [`client_auth`] accept; one without a name for any certificate.
fn principals(rules: &AccessRules) -> impl Iterator<Item = Option<&TextMatch>> {
    let own = rules.policies.iter().filter(|policy| policy.name == NAME);
    own.flat_map(|policy| &policy.principals).filter_map(|principal| match principal {
        AccessCondition::Authenticated(name) => Some(name.as_ref()),
        _ => None,
    })
}
