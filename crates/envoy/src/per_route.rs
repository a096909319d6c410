//! What is said of filters for a part of the routes.

use crate::reader::{Field, Message, ReadMessage};
use quadrille_config::{Problem, yaml::Value};

/// Rules for a part of the routes are refused: to leave them out could let somebody in. What else is said of filters there
/// has no effect, as the filters have none.
pub(crate) fn refuse_rules(message: &Message<'_>) -> Option<()> {
    let Some(field) = message.get("typed_per_filter_config") else { return Some(()) };
    let Value::Mapping(entries) = &field.node().value else {
        return field.fail("expected a mapping of filters' names to their settings");
    };
    for entry in entries {
        let settings = field.child(entry);
        if may_be_rbac(&entry.key, &settings)? {
            return settings.fail(Problem::new(
                "refused: it may be rules of RBAC for a part of the routes, and leaving them out could let somebody in",
                "say it in the RBAC filter's own rules, by host and path",
            ));
        }
        let text = "ignored: it configures a filter that has no effect here";
        settings.warn("typed_per_filter_config", text);
    }
    Some(())
}

fn may_be_rbac(name: &str, settings: &Field<'_>) -> Option<bool> {
    let is_rbac = |name: &str| name.to_ascii_lowercase().contains("rbac");
    let (kind, config) = settings.any()?;
    if is_rbac(name) || is_rbac(kind) {
        return Some(true);
    }
    // It wraps another, or switches a filter of any kind on or off; one that stays on is asked here all the same.
    if !kind.ends_with(".FilterConfig") || kind.starts_with("istio.") {
        return Some(false);
    }
    match config.entry("config") {
        Some(inner) => inner.any().map(|(kind, _)| is_rbac(kind)),
        None => Some(config.entry("disabled").and_then(|field| field.text()) != Some("true")),
    }
}
