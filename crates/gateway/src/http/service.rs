//! What happens to a request: routed, then answered or forwarded.

use super::{
    HttpConnection, HttpSettings, access,
    answer::Answer,
    client_body::{ClientBody, TooLarge},
    cors::{self, CrossOrigin},
    envoy_forwarding, envoy_headers,
    exchange::Exchange,
    fault, forward, forwarded_certificate,
    forwarded_for::Sender,
    informational::Informational,
    limited,
    outcome::Outcome,
    request::{self, Request},
    request_id, request_size, request_view,
    router::RouteLookup,
    trace,
};
use crate::telemetry::access::access_denied;
use http::Version;
use http_body::Body;
use quadrille_config::model::{Action, PathMatch, Redirect, Respond};
use std::sync::{Arc, atomic::Ordering};

/// Serves a request.
///
/// What is done before the future begins is not part of it: every request moves its future about.
pub(super) fn serve<'a>(
    http: &'a Arc<HttpConnection>,
    request: http::Request<ClientBody>,
    informational: &'a Informational,
) -> impl Future<Output = Outcome> + use<'a> {
    let settings = http.chain.http();
    let trusted = settings.as_ref().map(|settings| &settings.trusted_proxies);
    let sender = Sender::of(http.connection.client, trusted, request.headers());
    let early = http.connection.early.load(Ordering::Relaxed);
    let (mut request, mut body) = request::split(request, early, sender);
    let internal = settings.as_ref().is_some_and(|settings| receive(settings, http, &mut request));
    let ids = settings.as_ref().and_then(|settings| settings.request_ids);
    if let Some(ids) = ids {
        let origin = if internal { ids.origin.of_internal_clients() } else { ids.origin };
        request_id::give(&mut request.headers, origin, sender.stance);
    }
    let tracer = settings.as_ref().and_then(|settings| settings.tracer.as_ref());
    let trace = tracer.and_then(|tracer| {
        let edge = settings.as_ref().and_then(|settings| settings.envoy_headers.as_ref());
        let outside = !internal && edge.is_some_and(|envoy| envoy.edge);
        trace::begin(tracer, &mut request, &http.connection, outside)
    });
    let mut exchange = Exchange::begin(http, &request);
    exchange.trace = trace;
    if ids.is_some_and(|ids| ids.in_response) {
        exchange.told_id = request.headers.get(request_id::REQUEST_ID).cloned();
    }
    if request.version < Version::HTTP_3 {
        exchange.alternative = settings.as_ref().and_then(|settings| settings.alternative(&http.connection));
    }
    exchange.replies = settings.as_ref().and_then(|settings| settings.local_replies.clone());
    exchange.pages = settings.as_ref().and_then(|settings| settings.error_pages.clone());
    async move {
        if request.early && (!request.method.is_safe() || request.websocket) {
            let late = "Too early; send it again once the handshake is complete.\n";
            return Answer { request: &request, route: None, exchange }.text(425, late).into();
        }
        if let Some((status, problem)) = request.malformed {
            return Answer { request: &request, route: None, exchange }.text(status, problem).into();
        }
        if request.websocket && !request.is_multiplexed() && !body.is_end_stream() {
            // What follows the header belongs to the new protocol, or to nobody knows what.
            let bodies = "A WebSocket handshake has no body.\n";
            return Answer { request: &request, route: None, exchange }.text(400, bodies).into();
        }
        if !http.chain.may_serve(request_view::without_port(request.host())) {
            // RFC 9110 section 15.5.20: the client comes again, by a connection of its own for this host.
            let misdirected = "This host is served on connections of its own.\n";
            return Answer { request: &request, route: None, exchange }.text(421, misdirected).into();
        }
        let Some(settings) = settings else {
            // A reload has made it something else.
            return Answer { request: &request, route: None, exchange }.status(500).into();
        };
        if let Some(proof) = name_validation(&settings, request.uri.path()) {
            let respond = Respond { content_type: "application/octet-stream".into(), ..Respond::text(proof) };
            return Answer { request: &request, route: None, exchange }.respond(&respond).into();
        }
        if let Some((status, problem)) = request_size::exceeded(&request, &settings.limits) {
            return Answer { request: &request, route: None, exchange }.text(status, problem).into();
        }
        if let Err(problem) = request.normalize(&settings.paths) {
            return Answer { request: &request, route: None, exchange }.text(400, problem).into();
        }
        if let Err(refusal) = access::check(&settings, http, &mut request, &mut body).await {
            tracing::debug!(client = %http.connection.client, reason = refusal.reason, "a request is not let in");
            if let Some(what) = refusal.what {
                access_denied(what);
            }
            return Answer { request: &request, route: None, exchange }.refuse(refusal).into();
        }
        let looked_up = settings.router.find(&request.view(http.connection.tls));
        if let Some(user) = request.user.take() {
            user.change(&mut request.headers);
            exchange.tell_user(user.name);
        }
        let route = match &looked_up {
            Some(RouteLookup::Route(matched)) => Some(matched),
            _ => None,
        };
        if let (Some(matched), Some(trace)) = (route, exchange.trace.take()) {
            exchange.trace = trace.route(matched.route(), &mut request);
        }
        if let Some(matched) = route
            && let Some(Some(pages)) = matched.of(&settings.route_pages)
        {
            exchange.pages = Some(Arc::clone(pages));
        }
        let answer = Answer { request: &request, route, exchange };
        match (&looked_up, route) {
            (Some(RouteLookup::NeedsTls), _) => answer.redirect(&Redirect::https(), &PathMatch::any()).into(),
            (_, None) => answer.text(404, "No route for this host and path.\n").into(),
            (_, Some(matched)) => {
                let route = matched.route();
                let mut allowed = None;
                match route.cors.as_ref().map(|cors| CrossOrigin::of(&request, cors)) {
                    Some(CrossOrigin::Preflight(headers)) => {
                        return Answer { route: None, ..answer }.preflight(headers).into();
                    }
                    Some(CrossOrigin::Actual(headers)) => allowed = Some(Box::new(headers)),
                    None => {}
                }
                let limit = settings.limits.body_of(route.body_limit).filter(|_| !request.websocket);
                let refusal = match limit.map(|limit| body.limit(limit)) {
                    Some(Err(TooLarge)) => Some(request_size::too_large(&request)),
                    _ if route.rate_limits.besides().is_empty() => None,
                    _ => limited::check(matched.limiters(), Some(matched), http, &request).err(),
                };
                if let Some(refusal) = refusal {
                    let mut refused = answer.refuse(refusal);
                    if let Some(allowed) = allowed {
                        cors::add(refused.headers_mut(), *allowed);
                    }
                    return refused.into();
                }
                if let Some(fault) = &route.fault
                    && let Some(status) = Box::pin(fault::inject(fault)).await
                {
                    return answer.respond(&fault::aborted(status)).into();
                }
                let mut outcome = match &route.action {
                    Action::Forward(to)
                        if request.websocket && !to.websocket.unwrap_or(settings.websocket) =>
                    {
                        answer.status(403).into()
                    }
                    Action::Respond(respond) => answer.respond(respond).into(),
                    Action::Redirect(redirect) => answer.redirect(redirect, &route.path).into(),
                    Action::Forward(to) => {
                        let exchange = answer.exchange;
                        let asked = envoy_forwarding::as_asked(&request, to);
                        let to = asked.as_deref().unwrap_or(to);
                        forward::forward(&request, body, matched, to, exchange, informational).await
                    }
                };
                if let (Some(allowed), Outcome::Response(response)) = (allowed, &mut outcome) {
                    cors::add(response.headers_mut(), *allowed);
                }
                outcome.add_headers(&request.answer_headers);
                outcome
            }
        }
    }
}

/// Makes of the host, and of the headers about a client, what its gateway knows, where they are Envoy's. Whether the client
/// is internal.
fn receive(settings: &HttpSettings, http: &HttpConnection, request: &mut Request) -> bool {
    request.strip_port(settings.strip_port, http.connection.local.port());
    let Some(envoy) = &settings.envoy_headers else { return false };
    request.envoy_headers = envoy_headers::Use::of(envoy);
    request.tells_certificate = true;
    forwarded_certificate::apply(settings.forwarded_certificate, &http.connection, &mut request.headers);
    let internal_headers = &settings.router.table().internal_headers;
    envoy_headers::receive(envoy, internal_headers, &http.connection, &mut request.headers)
}

/// What a certificate authority that validates a name is answered (RFC 8555 section 8.3). Other requests for such paths go
/// where all others go.
fn name_validation(settings: &HttpSettings, path: &str) -> Option<String> {
    let answers = settings.answers.as_ref()?;
    answers.http(path.strip_prefix("/.well-known/acme-challenge/")?)
}
