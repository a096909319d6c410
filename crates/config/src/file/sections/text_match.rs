//! Conditions on text, as `/config` shows them.

use crate::{
    file::shown::{if_true, put},
    model::{TextMatch, TextRule},
};
use serde_json::{Value, json};

pub(super) fn text_match(text: &TextMatch) -> Value {
    let mut shown = match &text.rule {
        TextRule::Exact(text) => json!({ "exact": text }),
        TextRule::Prefix(text) => json!({ "prefix": text }),
        TextRule::Suffix(text) => json!({ "suffix": text }),
        TextRule::Contains(text) => json!({ "contains": text }),
        TextRule::Regex(expression) => json!({ "regex": without_frame(expression.as_str()) }),
    };
    put(&mut shown, [("ignore_case", if_true(text.ignore_case))]);
    shown
}

/// Removes the anchors that [`whole`](crate::model::whole) adds.
pub(super) fn without_frame(expression: &str) -> &str {
    let inside = expression.strip_prefix(r"\A(?:").and_then(|rest| rest.strip_suffix(r")\z"));
    inside.unwrap_or(expression)
}
