//! Warnings about the active configuration, for the admin pages.

use arc_swap::ArcSwapOption;
use serde_json::Value;
use std::sync::Arc;

static WARNINGS: ArcSwapOption<Vec<String>> = ArcSwapOption::const_empty();

/// Records the warnings of the configuration that is now active.
pub(crate) fn note(warnings: Vec<String>) {
    WARNINGS.store(Some(Arc::new(warnings)));
}

/// Returns the warnings for `/status`.
pub(super) fn shown() -> Value {
    WARNINGS.load().as_ref().map_or_else(|| Value::Array(Vec::new()), |warnings| warnings.as_slice().into())
}

/// Adds the warnings, if there are any, to the content of `/config`.
pub(crate) fn add_to(configuration: &mut Value) {
    let warnings = shown();
    if let (Some(shown), false) = (configuration.as_object_mut(), warnings == Value::Array(Vec::new())) {
        shown.insert("warnings".to_owned(), warnings);
    }
}
