//! HTTP towards the servers of a cluster.

use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, model::UpstreamProtocol};
use std::time::Duration;

/// `envoy.extensions.upstreams.http.v3.HttpProtocolOptions`, and the fields of clusters that came before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpOptions {
    pub(crate) protocol: UpstreamProtocol,
    /// How long an idle connection is kept.
    pub(crate) idle: Option<Duration>,
    pub(crate) name: RequestName,
}

/// What the host of a request is to servers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestName {
    /// It is sent as SNI.
    pub(crate) sni: bool,
    /// The server's certificate must be for it.
    pub(crate) verified: bool,
}

/// What a cluster says of HTTP.
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

/// `None` in `Some` if nothing is said.
fn idle(field: &Field<'_>) -> Option<Option<Duration>> {
    let message = field.message(&schema::COMMON_HTTP_OPTIONS)?;
    if let Some(count) = message.get("max_headers_count") {
        count.warn("max_headers_count of a cluster", "ignored: headers of answers have a limit of their own");
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
            "the name that is verified is the one that is sent: say both",
        ));
    }
    Some(name)
}
