//! Envoy's admin pages, rendered from the gateway's state.

mod address;
mod clusters;
mod dump;
mod sample;
mod server_state;
mod statistics;
mod xds;

use crate::xds_manager::XdsManager;
use address::socket_address;
use async_trait::async_trait;
use http::StatusCode;
use quadrille_gateway::{AdminPages, AdminView, Control, ListenerDrain, Page, Statistics};
use quadrille_unix_time::{DAY, rfc3339, unix_now};
use regex::RegexBuilder;
use serde_json::{Value, json};
use server_state::ServerState;
use statistics::Format;
use std::time::{Duration, Instant};

/// Envoy's pages: `/ready`, `/stats`, `/stats/prometheus`, `/config_dump`, `/certs`, `/listeners`, `/clusters`,
/// `/server_info`; with POST: `/drain_listeners`, `/quitquitquit`.
pub struct EnvoyPages {
    control: Control,
    xds: XdsManager,
    drain: Duration,
}

impl EnvoyPages {
    /// Creates the pages of the gateway at the other end of `control`, with the resources of `xds`. `drain` is the
    /// time for which listeners still accept connections after a graceful `/drain_listeners`.
    pub fn new(control: Control, xds: XdsManager, drain: Duration) -> Self {
        Self { control, xds, drain }
    }

    fn state(&self, view: &AdminView) -> ServerState {
        if !view.ready {
            ServerState::Draining
        } else if self.xds.is_initialized(Instant::now()) {
            ServerState::Live
        } else {
            ServerState::Initializing
        }
    }
}

/// Maximum size in bytes of a compiled `filter` expression. The time to apply it grows with its size.
const LARGEST_FILTER: usize = 256 * 1024;

const TEXT: &str = "text/plain; charset=UTF-8";
const JSON: &str = "application/json";

#[async_trait]
impl AdminPages for EnvoyPages {
    async fn page(&self, path: &str, query: Option<&str>, view: &AdminView) -> Option<Page> {
        let query = query.unwrap_or_default();
        let text = |body: String| Some(Page { status: StatusCode::OK, content_type: TEXT, body });
        let json = |body: &Value| {
            Some(Page { status: StatusCode::OK, content_type: JSON, body: format!("{body:#}\n") })
        };
        let wants_json = parameter(query, "format") == Some("json");
        match path {
            "/ready" => {
                let state = self.state(view);
                let (refused, fails) = self.xds.refusals_in_ready();
                let live = state == ServerState::Live && !fails;
                Some(Page {
                    status: if live { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE },
                    content_type: TEXT,
                    body: format!("{}\n{refused}", state.name()),
                })
            }
            DRAIN_LISTENERS | QUIT => Some(Page {
                status: StatusCode::METHOD_NOT_ALLOWED,
                content_type: TEXT,
                body: "Method GET not allowed, POST required.\n".into(),
            }),
            "/stats" | "/stats/prometheus" => {
                let counted = self.control.statistics().await.unwrap_or_default();
                let format = match (path, parameter(query, "format")) {
                    ("/stats/prometheus", _) | (_, Some("prometheus")) => Format::Prometheus,
                    (_, Some("json")) => Format::Json,
                    _ => Format::Text,
                };
                Some(stats(&counted, &self.xds, (view, self.state(view)), query, format))
            }
            "/config_dump" => json(&dump::config_dump(&self.xds.active())),
            "/certs" => json(&certificates(&view.status)),
            "/server_info" => json(&server_info(view, self.state(view), &self.xds)),
            "/listeners" => {
                let counted = self.control.statistics().await.unwrap_or_default();
                if wants_json { json(&listeners(&counted)) } else { text(listeners_text(&counted)) }
            }
            "/clusters" => {
                let counted = self.control.statistics().await.unwrap_or_default();
                if wants_json {
                    json(&clusters::json(&counted, &view.status))
                } else {
                    text(clusters::text(&counted, &view.status))
                }
            }
            _ => None,
        }
    }

    fn act(&self, path: &str, query: Option<&str>) -> Option<Page> {
        let query = query.unwrap_or_default();
        let text = |status, body: &str| Some(Page { status, content_type: TEXT, body: body.to_owned() });
        match path {
            DRAIN_LISTENERS => {
                let graceful = has_parameter(query, "graceful");
                self.control.drain_listeners(match has_parameter(query, "skip_exit") {
                    true if graceful => ListenerDrain::Discourage,
                    true => return text(StatusCode::BAD_REQUEST, "skip_exit requires graceful\n"),
                    false if graceful => ListenerDrain::After(self.drain),
                    false => ListenerDrain::Now,
                });
                text(StatusCode::OK, "OK\n")
            }
            QUIT => {
                self.control.end();
                text(StatusCode::OK, "OK\n")
            }
            _ => None,
        }
    }
}

const DRAIN_LISTENERS: &str = "/drain_listeners";
const QUIT: &str = "/quitquitquit";

fn stats(
    counted: &Statistics,
    xds: &XdsManager,
    view: (&AdminView, ServerState),
    query: &str,
    format: Format,
) -> Page {
    let pattern = parameter(query, "filter").map(decoded).unwrap_or_default();
    match RegexBuilder::new(&pattern).size_limit(LARGEST_FILTER).build() {
        Ok(filter) => {
            let used_only = has_parameter(query, "usedonly");
            let body = statistics::page(counted, xds, view, &filter, used_only, format);
            let content_type = if format == Format::Json { JSON } else { TEXT };
            Page { status: StatusCode::OK, content_type, body }
        }
        Err(error) => {
            let body = match error {
                regex::Error::CompiledTooBig(_) => "the filter is too large\n",
                _ => "the filter is not a regular expression\n",
            };
            Page { status: StatusCode::BAD_REQUEST, content_type: TEXT, body: body.into() }
        }
    }
}

fn listeners_text(counted: &Statistics) -> String {
    counted.listeners.iter().map(|listener| format!("{}::{}\n", listener.name, listener.address)).collect()
}

fn listeners(counted: &Statistics) -> Value {
    let status = |listener: &quadrille_gateway::ListenerStatistics| json!({ "name": listener.name, "local_address": socket_address(&listener.address) });
    json!({ "listener_statuses": counted.listeners.iter().map(status).collect::<Vec<_>>() })
}

fn certificates(status: &Value) -> Value {
    let now = unix_now();
    let one = |served: &Value| {
        let names = served["names"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> = names.iter().map(|name| json!({ "dns": name })).collect();
        let seconds = |key: &str| served[key].as_i64().unwrap_or_default();
        let left = (seconds("not_after") - now).max(0) / DAY;
        json!({
            "ca_cert": [],
            "cert_chain": [{
                "subject_alt_names": names,
                "days_until_expiration": left.to_string(),
                "valid_from": rfc3339(seconds("not_before")),
                "expiration_time": rfc3339(seconds("not_after")),
            }],
        })
    };
    let served = status["certificates"].as_array().cloned().unwrap_or_default();
    json!({ "certificates": served.iter().map(one).collect::<Vec<_>>() })
}

fn server_info(view: &AdminView, state: ServerState, xds: &XdsManager) -> Value {
    let uptime = view.status["uptime_seconds"].as_f64().unwrap_or_default();
    json!({
        "version": format!("quadrille/{}", view.status["version"].as_str().unwrap_or_default()),
        "state": state.name(),
        "node": xds.bootstrap().dump.get("node"),
        "uptime_current_epoch": format!("{}s", uptime as u64),
        "uptime_all_epochs": format!("{}s", uptime as u64),
    })
}

/// Returns the raw value of a query parameter.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn has_parameter(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some(name))
}

/// Percent-decodes a value; invalid UTF-8 is replaced.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        assert_eq!(parameter("usedonly&filter=a%7Cb", "filter").map(decoded).as_deref(), Some("a|b"));
        assert!(
            has_parameter("usedonly&filter=x", "usedonly") && !has_parameter("filter=usedonly", "usedonly")
        );
        assert_eq!(decoded("100%"), "100%");
    }
}
