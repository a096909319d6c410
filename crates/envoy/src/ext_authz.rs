//! The external authorization filter.

use crate::{
    common::{string_matcher, time_limit},
    grpc_service::envoy_grpc,
    metadata::metadata_matcher,
    reader::{Field, Message, ReadMessage},
    schema::{self, Schema},
    status_code::status_code,
    values::{enumeration, number},
};
use ::http::{HeaderName, HeaderValue};
use quadrille_config::{
    Problem,
    model::{Authorization, AuthorizationBody, AuthorizationService, HttpAuthorization, TextMatch},
    quote,
};
use std::time::Duration;

/// Envoy's default timeout.
const TIMEOUT: Duration = Duration::from_millis(200);
const STATUS_ON_ERROR: u16 = 403;

/// Maximum number of body bytes buffered until the server has responded.
const LARGEST_BODY: usize = 16 << 20;

/// Reads `envoy.extensions.filters.http.ext_authz.v3.ExtAuthz`.
pub(crate) fn ext_authz(field: &Field<'_>) -> Option<Authorization> {
    const V3: &[(&str, u32, ())] = &[("V3", 2, ()), ("AUTO", 0, ())];
    let message = field.message(&schema::EXT_AUTHZ)?;
    if let Some(version) = message.get("transport_api_version") {
        version.parse(enumeration(V3))?;
    }
    let (upstream, timeout, service) = match message.one_of(&["grpc_service", "http_service"]) {
        Some(("grpc_service", service)) => grpc_service(&service)?,
        Some((_, service)) => http_service(&service)?,
        None => return field.fail("`grpc_service` or `http_service` is missing"),
    };
    let status_on_error = match message.get("status_on_error") {
        Some(status) => status_code(&status)?,
        None => STATUS_ON_ERROR,
    };
    let only_if = match message.get("filter_enabled_metadata") {
        Some(matcher) => Some(metadata_matcher(&matcher)?),
        None => None,
    };
    Some(Authorization {
        upstream,
        service,
        timeout,
        body: body(&message)?,
        fail_open: message.flag("failure_mode_allow"),
        tell_fail_open: message.flag("failure_mode_allow_header_add"),
        status_on_error,
        only_if,
        allowed_headers: matchers(&message, "allowed_headers")?,
        disallowed_headers: matchers(&message, "disallowed_headers")?,
        place: field.place(),
    })
}

/// Reads the settings for request bodies sent to the server.
fn body(message: &Message<'_>) -> Option<Option<AuthorizationBody>> {
    let Some(settings) = message.get("with_request_body") else { return Some(None) };
    let settings = settings.message(&schema::AUTHZ_BODY)?;
    let most_field = settings.require("max_request_bytes")?;
    let most = most_field.parse(number)? as usize;
    if !(1..=LARGEST_BODY).contains(&most) {
        return most_field.fail(Problem::new(
            format!("buffering {most} bytes of each request is not supported"),
            format!("write 1 to {LARGEST_BODY}"),
        ));
    }
    let (partial, as_bytes) = (settings.flag("allow_partial_message"), settings.flag("pack_as_bytes"));
    Some(Some(AuthorizationBody { most, partial, as_bytes }))
}

type Service = (String, Duration, AuthorizationService);

fn grpc_service(field: &Field<'_>) -> Option<Service> {
    let message = field.message(&schema::AUTHZ_GRPC_SERVICE)?;
    let (cluster, authority) = envoy_grpc(&message)?;
    Some((cluster, time_limit(&message, TIMEOUT)?, AuthorizationService::Grpc(authority)))
}

fn http_service(field: &Field<'_>) -> Option<Service> {
    let message = field.message(&schema::EXT_AUTHZ_HTTP)?;
    let uri = message.require("server_uri")?.message(&schema::HTTP_URI)?;
    let mut service = HttpAuthorization::default();
    if let Some(prefix) = message.get("path_prefix") {
        let text = prefix.text()?;
        if !text.is_empty() && (!text.starts_with('/') || text.parse::<::http::uri::PathAndQuery>().is_err())
        {
            return prefix.fail(format!("{} is not a path prefix", quote(text)));
        }
        service.path_prefix = text.to_owned();
    }
    if let Some(request) = message.get("authorization_request") {
        let request = request.message(&schema::EXT_AUTHZ_REQUEST)?;
        service.add_headers =
            request.list("headers_to_add").iter().map(header).collect::<Option<Vec<_>>>()?;
    }
    if let Some(response) = message.get("authorization_response") {
        let response = response.message(&schema::EXT_AUTHZ_RESPONSE)?;
        service.upstream_headers = matchers(&response, "allowed_upstream_headers")?;
        service.upstream_headers_to_append = matchers(&response, "allowed_upstream_headers_to_append")?;
        service.client_headers = matchers(&response, "allowed_client_headers")?;
        service.client_headers_on_success = matchers(&response, "allowed_client_headers_on_success")?;
    }
    let cluster = uri.require("cluster")?.text()?.to_owned();
    Some((cluster, time_limit(&uri, TIMEOUT)?, AuthorizationService::Http(service)))
}

fn matchers(message: &Message<'_>, name: &'static str) -> Option<Vec<TextMatch>> {
    let Some(list) = message.get(name) else { return Some(Vec::new()) };
    let schema: &'static Schema = &schema::STRING_MATCHERS;
    list.message(schema)?.list("patterns").iter().map(string_matcher).collect()
}

fn header(field: &Field<'_>) -> Option<(HeaderName, HeaderValue)> {
    let message = field.message(&schema::HEADER_VALUE)?;
    let name = message.require("key")?;
    let value = message.require("value")?;
    let text = value.text()?;
    if text.contains('%') {
        return value.fail("refused: variables are not substituted here");
    }
    let (name_text, parsed) = (name.text()?, HeaderValue::from_str(text));
    match (HeaderName::try_from(name_text), parsed) {
        (Ok(name), Ok(value)) => Some((name, value)),
        _ => field.fail("not a header"),
    }
}
