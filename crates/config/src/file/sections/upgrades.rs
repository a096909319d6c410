//! Protocols that requests may switch to.

use crate::{Field, Problem, enums::switch, model::Upgrades, suggest::quote};
use serde_json::Value;

/// Reads a list of protocols, which excludes all others, or `off`.
pub(super) fn upgrades(field: &Field<'_>) -> Upgrades {
    if field.is_scalar() {
        let none = |text: &str| match switch(text) {
            Ok(false) => Ok(()),
            _ => Err(Problem::new(format!("{} is not a list", quote(text)), "write `[websocket]`, or `off`")),
        };
        field.parse(none);
        return Upgrades::only([]);
    }
    Upgrades::only(field.items().iter().filter_map(|field| field.parse(protocol)))
}

/// Shows the protocols; null if they are decided elsewhere.
pub(super) fn show(upgrades: &Upgrades) -> Value {
    if upgrades.is_default() { Value::Null } else { upgrades.on.clone().into() }
}

/// Parses a protocol with or without a version (RFC 9110 section 7.8). HTTP itself is refused: requests in it would
/// reach the server past all rules.
fn protocol(text: &str) -> Result<String, Problem> {
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let (name, version) = text.split_once('/').map_or((text, None), |(name, version)| (name, Some(version)));
    if !is_token(name) || version.is_some_and(|version| !is_token(version)) {
        return Err(Problem::new(
            format!("{} is not a protocol", quote(text)),
            "write `websocket` or `spdy/3.1`",
        ));
    }
    if ["http", "h2c", "h2", "tls", "connect", "connect-udp", "connect-ip"]
        .iter()
        .any(|refused| name.eq_ignore_ascii_case(refused))
    {
        let problem =
            format!("{} would carry requests past the rules and routes of the gateway", quote(text));
        return Err(Problem::new(problem, "remove it"));
    }
    Ok(text.to_ascii_lowercase())
}
