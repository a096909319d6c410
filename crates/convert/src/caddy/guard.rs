//! Handlers that protect what follows: passwords, forward authentication, rate limits.

use super::{
    json::{Json, Notes},
    proxy,
};
use crate::{draft::Draft, yaml::Map};
use std::cell::RefCell;

/// Converts `forward_auth`: a request whose response of 2xx lets the handlers continue.
pub(super) fn authorization(
    handler: Json<'_>,
    notes: &Notes<'_>,
    draft: &RefCell<Draft>,
) -> Result<Map, String> {
    let mut responses = handler.at(&["handle_response"]).items();
    let success = responses
        .next()
        .filter(|one| one.at(&["match", "status_code"]).items().any(|code| code.number() == Some(2)));
    let success = success.ok_or("only responses of 2xx can let a request continue")?;
    let uri = handler.at(&["rewrite", "uri"]).text();
    let path = quadrille_config::values::path(uri).map_err(|problem| problem.to_string())?;
    let to = proxy::convert(handler, notes, draft)?;
    let mut copied = Vec::new();
    for route in success.at(&["routes"]).items() {
        for inner in route.at(&["handle"]).items() {
            for (name, _) in inner.at(&["request", "set"]).entries() {
                copied.push(name.to_owned());
            }
        }
    }
    let mut authorization = Map::of("upstream", to.upstream).with("path", path);
    copied.sort();
    copied.dedup();
    copied.retain(|name| quadrille_config::values::header_name(name).is_ok());
    if !copied.is_empty() {
        authorization.set("copy_headers", copied);
    }
    Ok(authorization)
}

/// Converts `basic_auth`.
pub(super) fn basic_auth(handler: Json<'_>) -> Result<Map, String> {
    let providers: Vec<_> = handler.at(&["providers"]).entries().collect();
    let [("http_basic", basic)] = providers[..] else {
        return Err("its provider is not `http_basic`".to_owned());
    };
    let mut users = Vec::new();
    for account in basic.at(&["accounts"]).items() {
        let (name, hash) = (account.at(&["username"]).text(), account.at(&["password"]).text());
        let is_slow = ["$2a$", "$2b$", "$2y$", "$argon2"].iter().any(|kind| hash.starts_with(kind));
        if !is_slow || name.is_empty() || name.contains(':') {
            return Err(format!(
                "the password of `{name}` is not a hash of bcrypt or Argon2 in its usual form"
            ));
        }
        users.push(format!("{name}:{hash}"));
    }
    if users.is_empty() {
        return Err("it has no accounts".to_owned());
    }
    let mut auth = Map::of("users", format!("{}\n", users.join("\n")));
    let realm = basic.at(&["realm"]).text();
    if !realm.is_empty() {
        auth.set("realm", realm);
    }
    auth.set("authorization", "forward");
    Ok(auth)
}

/// Converts the zones of the module `rate_limit`.
pub(super) fn limits(handler: Json<'_>) -> Result<Vec<Map>, String> {
    let mut limits = Vec::new();
    for (name, zone) in handler.at(&["rate_limits"]).entries() {
        let events = zone.at(&["max_events"]).number().filter(|events| *events > 0);
        let window = zone.at(&["window"]).duration();
        let (Some(events), Some(window)) = (events, window) else {
            return Err(format!("the zone `{name}` has no number of events or no window"));
        };
        let mut limit = Map::of("rate", format!("{events}/{window}"));
        match zone.at(&["key"]).text() {
            "{http.request.remote.host}" | "{http.vars.client_ip}" => {
                limit.set("ipv4_prefix", "32");
                limit.set("ipv6_prefix", "128");
            }
            key if !key.contains('{') => limit.set("by", "all"),
            key => match key.strip_prefix("{http.request.header.").and_then(|name| name.strip_suffix('}')) {
                Some(name) => limit.set("by", format!("header {name}")),
                None => return Err(format!("requests are not counted by `{key}`")),
            },
        }
        if zone.at(&["match"]).items().next().is_some() {
            return Err(format!("the zone `{name}` has matchers"));
        }
        limits.push(limit);
    }
    Ok(limits)
}
