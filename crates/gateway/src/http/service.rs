//! Request processing: admission, access, route, action.

use super::{
    HttpConnection, HttpSettings,
    body::client_body::{ClientBody, TooLarge},
    error::refusal::Refusal,
    exchange::Exchange,
    filter::{
        call::Call, cors::CrossOrigin, fault_injection, memory_pressure, rate_limits, request_size, rules,
        step,
    },
    forward,
    request::{
        self, Request, envoy_headers, forwarded_certificate, forwarded_for::Sender, request_id, request_view,
        upgrade,
    },
    response::{answer::Answer, informational::Informational, outcome::Outcome},
    route::router::{MatchedRoute, RouteLookup},
    trace,
};
use crate::{admission::TooMany, fraction::is_one_of, telemetry::access_denied::access_denied};
use http::Version;
use http_body::Body;
use quadrille_config::model::{Action, PathMatch, Redirect, Respond, Route};
use std::sync::{Arc, atomic::Ordering};

/// Serves a request.
///
/// The code before the `async` block does not add to the size of the future, which is moved for every request.
pub(super) fn serve<'a>(
    http: &'a Arc<HttpConnection>,
    request: http::Request<ClientBody>,
    informational: &'a Informational,
) -> impl Future<Output = Outcome> + use<'a> {
    let settings = http.chain.http();
    let (mut request, mut body, mut exchange) = receive(http, settings.as_deref(), request);
    async move {
        let admitted = admit(http, settings.as_ref(), &mut request, &body);
        let settings = match admitted {
            Ok(settings) => settings,
            Err(response) => return response.send(Answer { request: &request, route: None, exchange }),
        };
        let mut call = Call::new(&http.connection, &http.pool, &settings.router, &mut request, &mut body);
        let lookup = match step::check(&settings.access, &mut call).await {
            Ok(()) => call.into_lookup(),
            Err(refusal) => return deny(http, refusal, Answer { request: &request, route: None, exchange }),
        };
        identify(&mut request, &mut exchange);
        let matched = match &lookup {
            Some(RouteLookup::Route(matched)) => matched,
            Some(RouteLookup::NeedsTls) => {
                let answer = Answer { request: &request, route: None, exchange };
                return answer.redirect(&Redirect::https(), &PathMatch::any()).into();
            }
            None => {
                let answer = Answer { request: &request, route: None, exchange };
                return answer.text(404, "No route for this host and path.\n").into();
            }
        };
        enter(matched, settings, &mut request, &mut exchange);
        let route = matched.route();
        if let Some(cors) = &route.cors {
            match CrossOrigin::of(&request, cors) {
                CrossOrigin::Preflight(headers) => {
                    return Answer { request: &request, route: None, exchange }.preflight(headers).into();
                }
                CrossOrigin::Actual(headers) => exchange.fields.cors = Some(Box::new(headers)),
            }
        }
        if let Err(refusal) = check_route(matched, settings, http, &request, &mut body) {
            return deny(http, refusal, Answer { request: &request, route: Some(matched), exchange });
        }
        match matched.enter(request.sender.client.ip()) {
            Ok(place) => exchange.of_client = place,
            Err(TooMany) => {
                let refusal = rate_limits::too_many_active(&request);
                return deny(http, refusal, Answer { request: &request, route: Some(matched), exchange });
            }
        }
        if let Some(fault) = &route.fault
            && let Some(status) = Box::pin(fault_injection::inject(fault)).await
        {
            let answer = Answer { request: &request, route: Some(matched), exchange };
            return answer.respond(&fault_injection::aborted(status)).into();
        }
        if let Err(status) = upgrade::apply(&mut request, route, &settings.upgrades) {
            return Answer { request: &request, route: Some(matched), exchange }.status(status).into();
        }
        let answer = Answer { request: &request, route: Some(matched), exchange };
        match &route.action {
            Action::Respond(respond) => answer.respond(respond).into(),
            Action::Redirect(redirect) => answer.redirect(redirect, &route.path).into(),
            Action::Forward(to) => {
                let exchange = answer.exchange;
                let requested = forward::as_asked(&request, to);
                let to = requested.as_deref().unwrap_or(to);
                forward::forward(&request, body, matched, to, exchange, informational).await
            }
        }
    }
}

/// Converts a request, applies the listener's settings for headers about the client, and begins its exchange.
fn receive(
    http: &Arc<HttpConnection>,
    settings: Option<&HttpSettings>,
    request: http::Request<ClientBody>,
) -> (Request, ClientBody, Box<Exchange>) {
    http.connection.charges.request(request.headers().len());
    let trusted = settings.map(|settings| &settings.trusted_proxies);
    let sender = Sender::of(http.connection.client, trusted, request.headers());
    let early = http.connection.early.load(Ordering::Relaxed);
    let (mut request, body) = request::split(request, early, sender);
    let Some(settings) = settings else {
        let exchange = Exchange::begin(http, &request, body.holder());
        return (request, body, exchange);
    };
    let internal = adopt_headers(settings, http, &mut request);
    settings.own_headers.set(&mut request, &http.connection);
    if let Some(ids) = settings.request_ids {
        let origin = if internal { ids.origin.of_internal_clients() } else { ids.origin };
        request_id::give(&mut request.headers, origin, sender.stance);
    }
    let trace = settings.tracer.as_ref().and_then(|tracer| {
        let outside = !internal && settings.envoy_headers.as_ref().is_some_and(|envoy| envoy.edge);
        trace::begin(tracer, &mut request, &http.connection, outside)
    });
    let mut exchange = Exchange::begin(http, &request, body.holder());
    exchange.trace = trace;
    exchange.replies = settings.local_replies.clone();
    exchange.pages = settings.error_pages.clone();
    let fields = &mut exchange.fields;
    fields.defaults = settings.response_headers.clone();
    if settings.request_ids.is_some_and(|ids| ids.in_response) {
        fields.request_id = request.headers.get(request_id::REQUEST_ID).cloned();
    }
    if request.version < Version::HTTP_3 {
        fields.alt_svc = settings.alternative(&http.connection);
    }
    (request, body, exchange)
}

/// Sets the host and the headers about the client as the listener requires, where they are compatible with Envoy. Returns
/// whether the client is internal.
fn adopt_headers(settings: &HttpSettings, http: &HttpConnection, request: &mut Request) -> bool {
    request.strip_port(settings.strip_port, http.connection.local.port());
    let Some(envoy) = &settings.envoy_headers else { return false };
    request.envoy_headers = envoy_headers::Use::of(envoy);
    request.tells_certificate = true;
    forwarded_certificate::apply(settings.forwarded_certificate, &http.connection, &mut request.headers);
    let internal_headers = &settings.router.table().internal_headers;
    envoy_headers::receive(envoy, internal_headers, &http.connection, &mut request.headers)
}

/// A response to a request before the access steps.
enum EarlyResponse {
    /// An error with a short text.
    Text(u16, &'static str),
    /// An error whose text is the name of its status.
    Status(u16),
    /// The proof that a certificate authority requested (RFC 8555 section 8.3).
    Proof(String),
    /// A refusal because memory is short.
    Refused(Box<Refusal>),
}

impl EarlyResponse {
    fn send(self, answer: Answer<'_>) -> Outcome {
        match self {
            Self::Text(status, text) => answer.text(status, text).into(),
            Self::Status(status) => answer.status(status).into(),
            Self::Refused(refusal) => answer.refuse(*refusal).into(),
            Self::Proof(proof) => {
                let content_type = "application/octet-stream".into();
                answer.respond(&Respond { content_type, ..Respond::text(proof) }).into()
            }
        }
    }
}

/// Checks that the request has a valid form and may use this connection, and normalizes its path.
///
/// # Errors
/// Returns the response otherwise.
fn admit<'a>(
    http: &HttpConnection,
    settings: Option<&'a Arc<HttpSettings>>,
    request: &mut Request,
    body: &ClientBody,
) -> Result<&'a Arc<HttpSettings>, EarlyResponse> {
    if request.early && (!request.method.is_safe() || request.is_upgrade()) {
        let text = "Too early; send it again once the handshake is complete.\n";
        return Err(EarlyResponse::Text(425, text));
    }
    if let Some((status, problem)) = request.malformed {
        return Err(EarlyResponse::Text(status, problem));
    }
    if request.websocket && !request.is_multiplexed() && !body.is_end_stream() {
        // The bytes after the header would belong to the new protocol, or their meaning is undefined.
        return Err(EarlyResponse::Text(400, "A WebSocket handshake has no body.\n"));
    }
    let host = request_view::without_port(request.host());
    if !http.chain.may_serve(host, http.connection.sni.as_deref()) {
        // The client retries on a separate connection for this host (RFC 9110 section 15.5.20).
        let lacks_certificate =
            http.connection.certificate.is_none() && http.chain.asks_for_certificates(host);
        return Err(EarlyResponse::Text(
            421,
            match lacks_certificate {
                true => {
                    "This host requires a separate connection, for which it requests a client certificate.\n"
                }
                false => "This host requires a separate connection.\n",
            },
        ));
    }
    // Without settings, a reload changed the protocol of the chain.
    let settings = settings.ok_or(EarlyResponse::Status(500))?;
    if let Some(proof) = name_validation(settings, request.uri.path()) {
        return Err(EarlyResponse::Proof(proof));
    }
    if let Some(refusal) = memory_pressure::refusal(request, body) {
        return Err(EarlyResponse::Refused(Box::new(refusal)));
    }
    if let Some((status, problem)) = request_size::exceeded(request, &settings.limits) {
        return Err(EarlyResponse::Text(status, problem));
    }
    request.normalize(&settings.paths).map_err(|problem| EarlyResponse::Text(400, problem))?;
    Ok(settings)
}

/// Returns the response to a certificate authority that validates a name (RFC 8555 section 8.3); `None` for all other
/// requests, also those for unknown tokens.
fn name_validation(settings: &HttpSettings, path: &str) -> Option<String> {
    let answers = settings.answers.as_ref()?;
    answers.http(path.strip_prefix("/.well-known/acme-challenge/")?)
}

/// Responds to a request that an access step or its route rejected.
fn deny(http: &HttpConnection, refusal: Refusal, answer: Answer<'_>) -> Outcome {
    tracing::debug!(client = %http.connection.client, reason = &*refusal.reason, "request denied");
    if let Some(label) = refusal.counted_as {
        access_denied(label);
    }
    answer.refuse(refusal).into()
}

/// Applies the authenticated user to the request and its exchange.
fn identify(request: &mut Request, exchange: &mut Exchange) {
    if let Some(user) = request.user.take() {
        user.change(&mut request.headers);
        exchange.tell_user(user.name);
    }
}

/// Applies a matched route to the request and its exchange.
fn enter(matched: &MatchedRoute, settings: &HttpSettings, request: &mut Request, exchange: &mut Exchange) {
    if let Some(trace) = exchange.trace.take() {
        exchange.trace = trace.route(matched.route(), request);
    }
    if matched.route().logged_parts.is_some_and(|parts| !is_one_of(parts)) {
        exchange.omit_from_log();
    }
    if let Some(Some(pages)) = matched.of(&settings.route_pages) {
        exchange.pages = Some(Arc::clone(pages));
    }
}

/// Checks the access rules and limits of the route.
fn check_route(
    matched: &MatchedRoute,
    settings: &HttpSettings,
    http: &HttpConnection,
    request: &Request,
    body: &mut ClientBody,
) -> Result<(), Refusal> {
    let route: &Route = matched.route();
    if !route.access.is_empty() {
        rules::check_route(&route.access, request, &http.connection)?;
    }
    let limit = settings.limits.body_of(route.body_limit).filter(|_| !request.body_is_tunnel());
    if let Some(Err(TooLarge)) = limit.map(|limit| body.limit(limit)) {
        return Err(request_size::too_large(request));
    }
    if route.rate_limits.besides().is_empty() {
        return Ok(());
    }
    rate_limits::check(matched.limiters(), Some(matched), &http.connection, request)
}
