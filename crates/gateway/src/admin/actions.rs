//! Actions of `POST` requests: draining of servers, the level of the log, reloads.

use super::page::Page;
use crate::telemetry::log_level::LogLevel;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Takes the endpoint at an address of an upstream out of service (`true`), or back into it. Returns whether there is such
/// an endpoint.
pub(crate) type DrainEndpoint = Box<dyn Fn(&str, &str, bool) -> bool + Send + Sync>;

/// Result of a reload: a text, or the problems that prevented it.
pub(crate) type ReloadResult = Result<String, Vec<String>>;

/// Parts of the process that actions change.
pub(crate) struct Actions {
    /// Takes endpoints out of service.
    pub(crate) drain: DrainEndpoint,
    /// The level of the log; `None` if the front end cannot change it.
    pub(crate) log_level: Option<Arc<dyn LogLevel>>,
    /// Requests reloads.
    pub(crate) reloads: mpsc::Sender<oneshot::Sender<ReloadResult>>,
}

/// An action, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Drain,
    Undrain,
    LogLevel,
    Reload,
}

const NOT_ENABLED: &str = "actions are off; set `admin: {actions: on}` in the configuration, or use the socket of \
     `admin: {socket: PATH}`\n";
const NO_ACTIONS: &str = "this process has no actions\n";
const SERVER_FORM: &str = "write ?upstream=NAME&server=ADDRESS, with an address of /status\n";
const LEVEL_FORM: &str = "write ?level=debug (or error, warn, info, trace), or ?level=configured\n";
const NO_LEVEL: &str = "the level of this process's log cannot be changed\n";

/// The level that stands for the configured one.
const CONFIGURED: &str = "configured";

/// Returns whether a path is that of an action.
pub(super) fn is_action(path: &str) -> bool {
    action(path).is_some()
}

fn action(path: &str) -> Option<Action> {
    Some(match path {
        "/drain" => Action::Drain,
        "/undrain" => Action::Undrain,
        "/log-level" => Action::LogLevel,
        "/reload" => Action::Reload,
        _ => return None,
    })
}

/// Performs the action of a path, if the client may; returns `None` if it is not the path of an action.
pub(super) async fn perform(
    actions: Option<&Actions>,
    may_act: bool,
    path: &str,
    query: &str,
) -> Option<Page> {
    let action = action(path)?;
    let refused = |text| Some(Page::text(StatusCode::FORBIDDEN, text));
    let Some(actions) = actions else { return refused(NO_ACTIONS) };
    if !may_act {
        return refused(NOT_ENABLED);
    }
    Some(match action {
        Action::Drain => actions.drain(query, true),
        Action::Undrain => actions.drain(query, false),
        Action::LogLevel => actions.set_level(query),
        Action::Reload => actions.reload().await,
    })
}

impl Actions {
    /// Returns the page `/log-level`.
    pub(super) fn level(&self) -> Option<Page> {
        let level = self.log_level.as_ref()?;
        let shown = json!({ "level": level.current(), "configured": level.configured() });
        Some(Page::json(&shown))
    }

    fn drain(&self, query: &str, draining: bool) -> Page {
        let (upstream, server) = (parameter(query, "upstream"), parameter(query, "server"));
        let (Some(upstream), Some(server)) = (upstream, server) else {
            return Page::text(StatusCode::BAD_REQUEST, SERVER_FORM);
        };
        if !(self.drain)(&upstream, &server, draining) {
            return Page::text(StatusCode::NOT_FOUND, "no such upstream or server; /status lists them\n");
        }
        tracing::info!(upstream, server, draining, "an operator has changed the service of a server");
        Page::text(StatusCode::OK, if draining { "draining\n" } else { "in service\n" })
    }

    fn set_level(&self, query: &str) -> Page {
        let Some(level) = &self.log_level else { return Page::text(StatusCode::NOT_FOUND, NO_LEVEL) };
        let Some(wanted) = parameter(query, "level") else {
            return Page::text(StatusCode::BAD_REQUEST, LEVEL_FORM);
        };
        // Logged before the change, which may leave out the line.
        tracing::warn!(level = wanted, before = level.current(), "an operator changes the level of the log");
        match level.set(Some(wanted.as_str()).filter(|wanted| *wanted != CONFIGURED)) {
            Ok(()) => Page::text(StatusCode::OK, &format!("{}\n", level.current())),
            Err(problem) => Page::text(StatusCode::BAD_REQUEST, &format!("{problem}\n")),
        }
    }

    async fn reload(&self) -> Page {
        let ended = || Page::text(StatusCode::SERVICE_UNAVAILABLE, "the process is shutting down\n");
        let (reply, result) = oneshot::channel();
        if self.reloads.send(reply).await.is_err() {
            return ended();
        }
        match result.await {
            Ok(Ok(text)) => Page::text(StatusCode::OK, &format!("{text}\n")),
            Ok(Err(problems)) => {
                let problems = problems.iter().map(|problem| format!("{problem}\n")).collect::<String>();
                Page::text(StatusCode::UNPROCESSABLE_ENTITY, &problems)
            }
            Err(_) => ended(),
        }
    }
}

/// Returns the decoded value of a parameter.
fn parameter(query: &str, name: &str) -> Option<String> {
    let (_, value) =
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?;
    Some(percent_decode_str(value).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn parameters_are_decoded() {
        let query = "upstream=a%20b&server=%5B::1%5D:80&flag";
        let found = ["upstream", "server", "flag", "other"].map(|name| parameter(query, name));
        assert_eq!(found, [Some("a b".into()), Some("[::1]:80".into()), None, None]);
    }
}
