//! What is said of filters for a part of the routes.

use crate::{
    cross_origin::cors,
    fault::fault,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    model::{Cors, Fault},
    yaml::Value,
};

/// What the filters that have an effect do on a part of the routes: nothing is said of them, or they are off, or on.
#[derive(Clone, Default)]
pub(crate) struct PerRoute {
    cors: Option<Option<Cors>>,
    fault: Option<Option<Fault>>,
}

impl PerRoute {
    /// This, and what is said above of filters that it says nothing of.
    pub(crate) fn or(self, above: &Self) -> Self {
        Self {
            cors: self.cors.or_else(|| above.cors.clone()),
            fault: self.fault.or_else(|| above.fault.clone()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cors.is_none() && self.fault.is_none()
    }

    /// What has an effect in the end: a filter of which nothing is said is off.
    pub(crate) fn into_effect(self) -> (Option<Cors>, Option<Fault>) {
        (self.cors.flatten(), self.fault.flatten())
    }
}

/// Who is let in to a part of the routes is refused: to leave it out could let somebody in. What is said of other
/// filters has no effect, as these have none.
pub(crate) fn per_route(message: &Message<'_>) -> Option<PerRoute> {
    let mut found = PerRoute::default();
    let Some(field) = message.get("typed_per_filter_config") else { return Some(found) };
    let Value::Mapping(entries) = &field.node().value else {
        return field.fail("expected a mapping of filters' names to their settings");
    };
    for entry in entries {
        let settings = field.child(entry);
        let (kind, config) = settings.any()?;
        if may_decide(&entry.key, kind, &config)? {
            return settings.fail(Problem::new(
                "refused: it may say who is let in to a part of the routes, and leaving it out could let somebody in",
                "say it in the filter's own rules, by host and path",
            ));
        }
        if kind == schema::CORS_POLICY.name {
            found.cors = Some(cors(&config)?);
        } else if kind == schema::HTTP_FAULT.name {
            found.fault = Some(fault(&config)?);
        } else {
            let text = "ignored: it configures a filter that has no effect here";
            settings.warn("typed_per_filter_config", text);
        }
    }
    Some(found)
}

/// Whether it may be about a filter that decides who is let in: RBAC, tokens, or somebody who is asked.
fn may_decide(name: &str, kind: &str, config: &Field<'_>) -> Option<bool> {
    let decides = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["rbac", "jwt", "authz"].iter().any(|part| name.contains(part))
    };
    if decides(name) || decides(kind) {
        return Some(true);
    }
    // It wraps another, or switches a filter of any kind on or off; one that stays on is asked here all the same.
    if !kind.ends_with(".FilterConfig") || kind.starts_with("istio.") {
        return Some(false);
    }
    match config.entry("config") {
        Some(inner) => inner.any().map(|(kind, _)| decides(kind)),
        None => Some(config.entry("disabled").and_then(|field| field.text()) != Some("true")),
    }
}
