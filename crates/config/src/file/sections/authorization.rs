//! External authorization servers.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list, time},
    },
    model::{
        Authorization, AuthorizationService, ForwardAuth, HttpAuthorization, RouteAuthorization, TextMatch,
        TextRule,
    },
    quote, values,
};
use http::HeaderName;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

pub(super) const AUTHORIZATION: Section<AuthorizationDraft, Authorization> = Section {
    path: "listeners[].authorization",
    about: "A server that decides about requests before they are routed: forward authentication of Traefik and Caddy, \
            `auth_request` of nginx, or Envoy's gRPC service. By HTTP, it receives `GET` with the headers of the request \
            and with `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Original-Method` and `X-Original-URL`; a status of 2xx \
            allows the request, 5xx is an error, and any other response is sent to the client.",
    keys: &[
        Key::new(
            "upstream",
            "name of an upstream",
            Preset::Required,
            "The upstream of the server.",
            |field, draft| draft.upstream = field.upstream_name(),
            |server| server.upstream.as_str().into(),
        ),
        Key::new(
            "protocol",
            "`http` or `grpc`",
            Preset::Is("http"),
            "The protocol: HTTP, or gRPC (`envoy.service.auth.v3.Authorization`), whose upstream needs HTTP/2.",
            |field, draft| draft.grpc = field.parse(is_grpc).unwrap_or_default(),
            |server| match server.service {
                AuthorizationService::Http(_) => "http".into(),
                AuthorizationService::Grpc(_) => "grpc".into(),
            },
        ),
        Key::new(
            "path",
            "path",
            Preset::Is("/"),
            "The path of the query by HTTP, such as `/oauth2/auth` or `/api/authz/forward-auth`.",
            |field, draft| draft.path = field.parse(query_path),
            |server| forward(server).map(|forward| forward.path.as_str()).into(),
        ),
        Key::new(
            "copy_headers",
            "list of headers",
            Preset::Means("none"),
            "Headers of its response that servers receive, such as `Remote-User`. Values from clients are removed.",
            |field, draft| draft.copied = names(field),
            |server| list(server.copied().iter().map(|name| name.as_str().into())),
        ),
        Key::new(
            "client_headers",
            "list of headers",
            Preset::Means("none"),
            "Headers of its response that the client receives if the request is allowed, such as `Set-Cookie`. If it \
                    is denied, the client receives all.",
            |field, draft| draft.client_headers = names(field),
            |server| list(client_headers(server).iter().map(|name| name.as_str().into())),
        ),
        Key::new(
            "timeout",
            "duration",
            Preset::Is("5s"),
            "Time limit of a query.",
            |field, draft| draft.timeout = field.parse(values::timeout),
            |server| time(server.timeout),
        ),
        Key::new(
            "fail_open",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether requests are allowed while the server fails. Otherwise, they receive 503.",
            |field, draft| field.set(&mut draft.fail_open, switch),
            |server| if_true(server.fail_open),
        ),
    ],
};

/// Values read for an authorization server.
#[derive(Default)]
pub(super) struct AuthorizationDraft {
    upstream: Option<String>,
    grpc: bool,
    path: Option<String>,
    copied: Vec<HeaderName>,
    client_headers: Vec<HeaderName>,
    timeout: Option<Duration>,
    fail_open: bool,
}

/// Reads a server, or `off`.
pub(super) fn authorization(field: &Field<'_>) -> RouteAuthorization {
    if field.is_scalar() && field.text().is_some_and(|text| matches!(switch(text), Ok(false))) {
        return RouteAuthorization::Off;
    }
    server(field).map_or(RouteAuthorization::Off, |server| RouteAuthorization::InPlace(Arc::new(server)))
}

fn server(field: &Field<'_>) -> Option<Authorization> {
    const BY_HTTP: [&str; 3] = ["path", "copy_headers", "client_headers"];
    let mut draft = AuthorizationDraft::default();
    AUTHORIZATION.read(field, &mut draft)?;
    let AuthorizationDraft { upstream, grpc, path, copied, client_headers, timeout, fail_open } = draft;
    let upstream = upstream?;
    let service = if grpc {
        for key in BY_HTTP.iter().filter_map(|key| field.entry(key)) {
            key.error(Problem::new("the gRPC service decides about this itself", "remove this"));
        }
        AuthorizationService::Grpc(upstream.clone())
    } else {
        let path = path.unwrap_or_else(|| "/".to_owned());
        let client_headers = client_headers.iter().map(|name| TextMatch::exact(name.as_str()));
        AuthorizationService::Http(HttpAuthorization {
            client_headers_on_success: client_headers.collect(),
            forward_auth: Some(ForwardAuth { path, copied }),
            ..HttpAuthorization::default()
        })
    };
    let all = TextMatch { rule: TextRule::Prefix(String::new()), ignore_case: false };
    Some(Authorization {
        upstream,
        service,
        timeout: timeout.unwrap_or(Duration::from_secs(5)),
        body: None,
        fail_open,
        tell_fail_open: false,
        status_on_error: 503,
        only_if: None,
        allowed_headers: vec![all],
        disallowed_headers: Vec::new(),
        place: field.place(),
    })
}

pub(super) fn show(authorization: &RouteAuthorization) -> Value {
    match authorization {
        RouteAuthorization::OfChain => Value::Null,
        RouteAuthorization::Off => "off".into(),
        RouteAuthorization::InPlace(server) => AUTHORIZATION.show(server),
    }
}

fn forward(server: &Authorization) -> Option<&ForwardAuth> {
    match &server.service {
        AuthorizationService::Http(http) => http.forward_auth.as_ref(),
        AuthorizationService::Grpc(_) => None,
    }
}

fn client_headers(server: &Authorization) -> Vec<String> {
    let texts = match &server.service {
        AuthorizationService::Http(http) => &http.client_headers_on_success[..],
        AuthorizationService::Grpc(_) => &[],
    };
    let exact = texts.iter().filter_map(|text| match &text.rule {
        TextRule::Exact(name) => Some(name.clone()),
        _ => None,
    });
    exact.collect()
}

fn names(field: &Field<'_>) -> Vec<HeaderName> {
    field.items().iter().filter_map(|field| field.parse(values::header_name)).collect()
}

fn is_grpc(text: &str) -> Result<bool, Problem> {
    match text {
        "http" => Ok(false),
        "grpc" => Ok(true),
        _ => Err(Problem::new(format!("{} is not a protocol", quote(text)), "write `http` or `grpc`")),
    }
}

/// Parses a path that may have a query.
fn query_path(text: &str) -> Result<String, Problem> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    values::path(path)?;
    if !query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err(format!("{} has a character that a URL must percent-encode", quote(text)).into());
    }
    Ok(text.to_owned())
}
