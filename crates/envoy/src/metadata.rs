//! Conditions on dynamic metadata that filters attach to a request.

use crate::{
    common::string_matcher,
    reader::{Field, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    model::{MetadataMatch, ValueMatch},
    quote,
};

/// Filters that write metadata.
const WRITERS: &[&str] = &["envoy.filters.http.jwt_authn", "envoy.filters.http.rbac"];

/// Reads the name of a filter that writes metadata; for any other filter, `consequence` follows.
pub(crate) fn writer(field: &Field<'_>, consequence: &str) -> Option<String> {
    let filter = field.text()?;
    if !WRITERS.contains(&filter) {
        return field.fail(Problem::new(
            format!("refused: {} writes no metadata here, so that {consequence}", quote(filter)),
            format!("supported: `{}`", WRITERS.join("`, `")),
        ));
    }
    Some(filter.to_owned())
}

/// Reads `envoy.type.matcher.v3.MetadataMatcher`.
pub(crate) fn metadata_matcher(field: &Field<'_>) -> Option<MetadataMatch> {
    let message = field.message(&schema::METADATA_MATCHER)?;
    let filter = writer(&message.require("filter")?, "the rule would never match")?;
    let path = message.list("path");
    if path.is_empty() {
        return field.fail("`path` is missing");
    }
    let key = |segment: &Field<'_>| {
        let key = segment.message(&schema::METADATA_PATH)?.require("key")?;
        key.text().map(str::to_owned)
    };
    Some(MetadataMatch {
        filter,
        path: path.iter().map(key).collect::<Option<_>>()?,
        value: value_matcher(&message.require("value")?)?,
        invert: message.flag("invert"),
    })
}

/// Reads `envoy.type.matcher.v3.ValueMatcher`.
fn value_matcher(field: &Field<'_>) -> Option<ValueMatch> {
    const KINDS: &[&str] =
        &["null_match", "string_match", "bool_match", "present_match", "list_match", "or_match"];
    let message = field.message(&schema::VALUE_MATCHER)?;
    Some(match message.one_of(KINDS) {
        Some(("null_match", _)) => ValueMatch::Null,
        Some(("string_match", matcher)) => ValueMatch::Text(string_matcher(&matcher)?),
        Some(("bool_match", value)) => ValueMatch::Bool(value.parse(crate::values::boolean)?),
        Some(("present_match", value)) => match value.text()? {
            "true" => ValueMatch::Present,
            _ => return value.fail("`present_match` must be `true` or omitted"),
        },
        Some(("list_match", list)) => {
            let one = list.message(&schema::LIST_MATCHER)?.require("one_of")?;
            ValueMatch::OneOf(Box::new(value_matcher(&one)?))
        }
        Some((_, any)) => {
            let matchers = any.message(&schema::OR_MATCHER)?.list("value_matchers");
            if matchers.is_empty() {
                return any.fail("`value_matchers` is empty");
            }
            ValueMatch::Any(matchers.iter().map(value_matcher).collect::<Option<_>>()?)
        }
        None => return field.fail("no supported field is set"),
    })
}
