//! Who may ask for what: the steps that a request passes before it is routed.

use super::{
    HttpConnection,
    access_step::Step,
    jwt::{Authentication, Problem},
    request::Request,
};
use crate::access;
use http::HeaderValue;
use quadrille_config::model::{AccessCondition, AccessRules};
use std::time::{SystemTime, UNIX_EPOCH};

/// Why a request is not let in, and how it is answered.
pub(super) struct Refusal<'a> {
    /// For the log.
    pub(super) reason: &'a str,
    /// For the metric.
    pub(super) what: &'static str,
    pub(super) status: u16,
    pub(super) body: &'static str,
    /// How it could come to be let in (RFC 9110 section 11.6.1).
    pub(super) challenge: Option<HeaderValue>,
}

/// Whether all steps let a request in. What they find out is added to it.
///
/// # Errors
/// Says why not.
pub(super) fn check<'a>(
    steps: &'a [Step],
    http: &HttpConnection,
    request: &mut Request,
) -> Result<(), Refusal<'a>> {
    steps.iter().try_for_each(|step| match step {
        Step::Rules(rules) => admits(rules, http, request),
        Step::Jwt(tokens) => authenticate(tokens, http.connection.tls, request),
    })
}

fn admits<'a>(rules: &'a AccessRules, http: &HttpConnection, request: &Request) -> Result<(), Refusal<'a>> {
    let view = request.view(http.connection.tls);
    let holds = |condition: &AccessCondition| match condition {
        AccessCondition::Header(header) => view.matches_header(header),
        AccessCondition::Path(path) => path.matches(view.path),
        AccessCondition::Metadata(metadata) => request.metadata.matches(metadata),
        _ => false,
    };
    let rules = std::slice::from_ref(rules);
    access::admits(rules, &http.connection, request.sender.client.ip(), &holds).map_err(|reason| Refusal {
        reason,
        what: "request",
        status: 403,
        body: "RBAC: access denied",
        challenge: None,
    })
}

fn authenticate<'a>(tokens: &Authentication, tls: bool, request: &mut Request) -> Result<(), Refusal<'a>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    tokens.check(request, tls, now).map_err(|problem| Refusal {
        reason: problem.text(),
        what: "token",
        status: if problem == Problem::AudienceNotAllowed { 403 } else { 401 },
        body: if tokens.tells() { problem.text() } else { "" },
        challenge: tokens.challenge(request, tls, problem),
    })
}
