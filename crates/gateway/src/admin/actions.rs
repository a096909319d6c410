//! Actions of `POST` requests: servers are taken out of service, and back into it.

use http::StatusCode;
use percent_encoding::percent_decode_str;

/// Takes the endpoint at an address of an upstream out of service (`true`), or back into it. Returns whether there is such
/// an endpoint.
pub(crate) type DrainEndpoint = Box<dyn Fn(&str, &str, bool) -> bool + Send + Sync>;

const NOT_ENABLED: &str = "actions are off; set `admin: {actions: on}` in the configuration\n";
const FORM: &str = "write ?upstream=NAME&server=ADDRESS, with an address of /status\n";

/// Returns whether a path is that of an action.
pub(super) fn is_action(path: &str) -> bool {
    draining(path).is_some()
}

/// Returns whether the action of this path takes servers out of service; `None` if it is not an action.
fn draining(path: &str) -> Option<bool> {
    match path {
        "/drain" => Some(true),
        "/undrain" => Some(false),
        _ => None,
    }
}

/// Performs the action of a path, if actions are enabled; returns the status and the text of the response, or `None` if
/// it is not the path of an action.
pub(super) fn perform(
    drain: Option<&DrainEndpoint>,
    path: &str,
    query: &str,
) -> Option<(StatusCode, &'static str)> {
    let draining = draining(path)?;
    let Some(drain) = drain else { return Some((StatusCode::FORBIDDEN, NOT_ENABLED)) };
    let (upstream, server) = (parameter(query, "upstream"), parameter(query, "server"));
    let (Some(upstream), Some(server)) = (upstream, server) else {
        return Some((StatusCode::BAD_REQUEST, FORM));
    };
    Some(match drain(&upstream, &server, draining) {
        true if draining => (StatusCode::OK, "draining\n"),
        true => (StatusCode::OK, "in service\n"),
        false => (StatusCode::NOT_FOUND, "no such upstream or server; /status lists them\n"),
    })
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
