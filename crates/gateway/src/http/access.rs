//! Who may ask for what: the steps that a request passes before it is routed.

use super::{
    HttpConnection, HttpSettings,
    access_step::Step,
    client_body::ClientBody,
    jwt::{Authentication, Problem},
    limited,
    refusal::Refusal,
    request::Request,
    router::MatchedRoute,
};
use crate::access;
use bytes::Bytes;
use http::{HeaderMap, header};
use quadrille_config::model::{AccessCondition, AccessRules, Doubt};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether all steps let a request in. What they find out is added to it.
///
/// # Errors
/// Says why not.
pub(super) async fn check<'a>(
    settings: &'a HttpSettings,
    http: &HttpConnection,
    request: &mut Request,
    body: &mut ClientBody,
) -> Result<(), Refusal<'a>> {
    for step in &settings.access {
        match step {
            Step::Rules(rules) => admits(rules, http, request)?,
            Step::Jwt(tokens) => {
                if !tokens.is_prepared() {
                    Box::pin(tokens.prepare(request, &http.connection, &http.pool)).await;
                }
                authenticate(tokens, http.connection.tls, request)?;
            }
            Step::Shadow(rules, name) => note(rules, name, http, request),
            Step::RateLimits(own) => {
                let matters = settings.router.has_own_limits() || limited::ask_routes(own);
                let view = || request.view(http.connection.tls);
                let route = matters.then(|| settings.router.matched(&view())).flatten();
                let in_place = route.as_ref().and_then(MatchedRoute::limits_in_place);
                limited::check(in_place.unwrap_or(own), route.as_ref(), http, request)?;
            }
            Step::RateLimitService(service) => {
                Box::pin(service.check(&settings.router, request, &http.connection, &http.pool)).await?;
            }
            Step::BasicAuth(users) => users.check(&settings.router, http.connection.tls, request).await?,
            Step::Authorization(server) => {
                let asked = Box::pin(server.check(request, body, &http.connection, &http.pool)).await;
                asked.map_err(|denied| Refusal {
                    reason: denied.reason,
                    what: Some("asked"),
                    grpc_status: None,
                    error: None,
                    status: denied.status,
                    headers: denied.headers,
                    body: denied.body,
                    is_own: false,
                })?;
            }
        }
    }
    Ok(())
}

fn admits<'a>(rules: &'a AccessRules, http: &HttpConnection, request: &Request) -> Result<(), Refusal<'a>> {
    let view = request.view(http.connection.tls);
    let holds = |condition: &AccessCondition, doubt: Doubt| match condition {
        AccessCondition::Header(header) => view.header_holds(header, doubt),
        AccessCondition::Path(path) => path.matches(view.path),
        AccessCondition::Metadata(metadata) => request.metadata.matches(metadata),
        _ => false,
    };
    let rules = std::slice::from_ref(rules);
    access::admits(rules, &http.connection, request.sender.client.ip(), &holds).map_err(|reason| Refusal {
        reason,
        what: Some("request"),
        grpc_status: None,
        error: None,
        status: 403,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"RBAC: access denied"),
        is_own: true,
    })
}

/// Leaves the name of the policy that matches: the rules deny, and say which does.
fn note(rules: &AccessRules, name: &str, http: &HttpConnection, request: &mut Request) {
    let matching = admits(rules, http, request).err().map(|refusal| refusal.reason.to_owned());
    if let Some(policy) = matching {
        request.metadata.set("envoy.filters.http.rbac", name, policy.into());
    }
}

fn authenticate<'a>(tokens: &Authentication, tls: bool, request: &mut Request) -> Result<(), Refusal<'a>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    tokens.check(request, tls, now).map_err(|problem| Refusal {
        reason: problem.text(),
        what: Some("token"),
        grpc_status: None,
        error: None,
        status: if problem == Problem::AudienceNotAllowed { 403 } else { 401 },
        headers: tokens
            .challenge(request, tls, problem)
            .map(|challenge| (header::WWW_AUTHENTICATE, challenge))
            .into_iter()
            .collect(),
        body: Bytes::from_static(if tokens.tells() { problem.text().as_bytes() } else { b"" }),
        is_own: true,
    })
}
