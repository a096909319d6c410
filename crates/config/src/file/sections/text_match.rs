//! Conditions on text: patterns with `*`, and conditions as `/config` shows them.

use crate::{
    Field, Problem,
    file::shown::{if_true, list, put},
    model::{TextMatch, TextRule, whole},
    quote,
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

/// Refuses a condition on a header, parameter or cookie with more than one rule, or with a key that its rule ignores.
pub(super) fn refuse_several(field: &Field<'_>) {
    let rules = ["exact", "prefix", "suffix", "contains", "regex", "present"];
    if rules.iter().filter(|key| field.entry(key).is_some()).count() > 1 {
        field.error(Problem::new("more than one condition", "write one in each item of the list"));
    }
    if let (Some(_), Some(ignore_case)) = (field.entry("regex"), field.entry("ignore_case")) {
        let remedy = "begin the expression with `(?i)`, and remove this";
        ignore_case.error(Problem::new("not for regular expressions", remedy));
    }
}

/// Parses a text in which one `*` stands for any characters.
pub(super) fn pattern(text: &str) -> Result<TextMatch, Problem> {
    let rule = match text.split_once('*') {
        None if text.is_empty() => return Err(Problem::new("the text is empty", "write at least `*`")),
        None => TextRule::Exact(text.to_owned()),
        Some((_, rest)) if rest.contains('*') => {
            return Err(Problem::new(format!("{} has several `*`", quote(text)), "write one at most"));
        }
        Some((prefix, "")) => TextRule::Prefix(prefix.to_owned()),
        Some(("", suffix)) => TextRule::Suffix(suffix.to_owned()),
        Some((prefix, suffix)) => {
            let expression = format!("{}.*{}", regex::escape(prefix), regex::escape(suffix));
            let unusable = |_| Problem::new(format!("{} is too long", quote(text)), "write a shorter one");
            TextRule::Regex(whole(&expression).map_err(unusable)?)
        }
    };
    Ok(TextMatch { rule, ignore_case: false })
}

/// Reads a list of patterns.
pub(super) fn patterns(field: &Field<'_>) -> Vec<TextMatch> {
    field.items().iter().filter_map(|field| field.parse(pattern)).collect()
}

/// Shows patterns; conditions that are not patterns, in the form of conditions.
pub(super) fn show_patterns(texts: &[TextMatch]) -> Value {
    list(texts.iter().map(|text| {
        let written = match &text.rule {
            TextRule::Exact(text) => text.clone(),
            TextRule::Prefix(prefix) => format!("{prefix}*"),
            TextRule::Suffix(suffix) => format!("*{suffix}"),
            TextRule::Contains(_) => String::new(),
            TextRule::Regex(regex) => without_frame(regex.as_str()).replacen(".*", "*", 1).replace('\\', ""),
        };
        if pattern(&written).as_ref() == Ok(text) { written.into() } else { text_match(text) }
    }))
}

/// Removes the anchors that [`whole`](crate::model::whole) adds.
pub(in crate::file) fn without_frame(expression: &str) -> &str {
    let inside = expression.strip_prefix(r"\A(?:").and_then(|rest| rest.strip_suffix(r")\z"));
    inside.unwrap_or(expression)
}
