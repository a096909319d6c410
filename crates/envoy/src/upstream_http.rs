//! Upstream HTTP.

use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, model::UpstreamProtocol};
use std::time::Duration;

/// `envoy.extensions.upstreams.http.v3.HttpProtocolOptions`, and the older fields of clusters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpOptions {
    pub(crate) protocol: UpstreamProtocol,
    /// Idle timeout of connections.
    pub(crate) idle: Option<Duration>,
    pub(crate) name: RequestName,
}

/// Use of a request's host in upstream TLS.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestName {
    /// Whether it is sent as SNI.
    pub(crate) sni: bool,
    /// Whether the endpoint's certificate is verified for it.
    pub(crate) verified: bool,
}

/// Reads a cluster's HTTP settings.
pub(crate) fn http_options(message: &Message<'_>) -> Option<HttpOptions> {
    let mut options =
        HttpOptions { protocol: UpstreamProtocol::Http1, idle: None, name: RequestName::default() };
    message.get("http_protocol_options");
    if message.get("http2_protocol_options").is_some() {
        options.protocol = UpstreamProtocol::Http2;
    }
    if let Some(common) = message.get("common_http_protocol_options") {
        options.idle = idle(&common)?;
    }
    if let Some(name) = message.get("upstream_http_protocol_options") {
        options.name = request_name(&name)?;
    }
    let Some(extensions) = message.get("typed_extension_protocol_options") else { return Some(options) };
    for (_, extension) in extensions.entries() {
        let (kind, field) = extension.any()?;
        if kind == schema::UPSTREAM_HTTP.name {
            extended(&field, &mut options)?;
        } else {
            field.warn("extension-options", format!("ignored: {kind} has no effect here"));
        }
    }
    Some(options)
}

fn extended(field: &Field<'_>, options: &mut HttpOptions) -> Option<()> {
    let message = field.message(&schema::UPSTREAM_HTTP)?;
    if let Some(common) = message.get("common_http_protocol_options") {
        options.idle = idle(&common)?.or(options.idle);
    }
    if let Some(name) = message.get("upstream_http_protocol_options") {
        options.name = request_name(&name)?;
    }
    let kinds = ["explicit_http_config", "use_downstream_protocol_config", "auto_config"];
    options.protocol = match message.one_of(&kinds) {
        Some(("explicit_http_config", explicit)) => {
            let explicit = explicit.message(&schema::EXPLICIT_HTTP)?;
            match explicit.one_of(&["http_protocol_options", "http2_protocol_options"]) {
                Some(("http2_protocol_options", _)) => UpstreamProtocol::Http2,
                _ => UpstreamProtocol::Http1,
            }
        }
        Some(("use_downstream_protocol_config", _)) => UpstreamProtocol::OfRequest,
        Some(_) => UpstreamProtocol::Auto,
        None => options.protocol,
    };
    Some(())
}

/// Reads the idle timeout; `Some(None)` if unset.
fn idle(field: &Field<'_>) -> Option<Option<Duration>> {
    let message = field.message(&schema::COMMON_HTTP_OPTIONS)?;
    if let Some(count) = message.get("max_headers_count") {
        count.warn("max_headers_count of a cluster", "ignored: response headers have a separate limit");
    }
    match message.get("idle_timeout") {
        Some(field) => duration(&field).map(Some),
        None => Some(None),
    }
}

fn request_name(field: &Field<'_>) -> Option<RequestName> {
    let message = field.message(&schema::UPSTREAM_HTTP_NAME)?;
    let name = RequestName { sni: message.flag("auto_sni"), verified: message.flag("auto_san_validation") };
    if name.verified && !name.sni {
        return field.fail(Problem::new(
            "refused: `auto_san_validation` without `auto_sni`",
            "the verified name is the one that is sent: set both",
        ));
    }
    Some(name)
}
