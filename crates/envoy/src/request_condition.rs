//! Request matching of routes.

use crate::{
    common::{regex_matcher, string_matcher},
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    model::{HeaderMatch, HeaderRule, PathMatch, PathRule, QueryMatch, TextMatch, TextRule, whole},
};

pub(crate) fn path_match(condition: &Message<'_>) -> Option<PathMatch> {
    let kinds = ["prefix", "path", "safe_regex", "path_separated_prefix"];
    let rule = match condition.one_of(&kinds) {
        Some(("prefix", prefix)) => PathRule::Prefix(prefix.text()?.to_owned()),
        Some(("path", path)) => PathRule::Exact(path.text()?.to_owned()),
        Some(("safe_regex", regex)) => PathRule::Regex(regex_matcher(&regex)?),
        Some((_, prefix)) => match prefix.text()? {
            text if text.starts_with('/') && !text.ends_with('/') && !text.contains(['?', '#']) => {
                PathRule::Segments(text.to_owned())
            }
            _ => return prefix.fail("must start with a slash, not end with one, and not contain `?` or `#`"),
        },
        None => {
            return condition
                .field()
                .fail(Problem::new("no path condition is set", "write `prefix: \"/\"` for all"));
        }
    };
    // Wrapped boolean, which defaults to true.
    let ignore_case = condition.get("case_sensitive").is_some() && !condition.flag("case_sensitive");
    Some(PathMatch { rule, ignore_case })
}

pub(crate) fn header_matchers(condition: &Message<'_>) -> Option<Vec<HeaderMatch>> {
    let mut matchers = condition.list("headers").iter().map(header_matcher).collect::<Option<Vec<_>>>()?;
    if condition.get("grpc").is_some() {
        matchers.push(grpc());
    }
    Some(matchers)
}

fn grpc() -> HeaderMatch {
    // A constant expression; if it were invalid, it would match nothing rather than everything.
    let regex = whole(r"application/grpc(\+.*)?");
    let rule = regex.map_or(TextRule::Exact("application/grpc".into()), TextRule::Regex);
    HeaderMatch {
        name: "content-type".into(),
        rule: HeaderRule::Text(TextMatch { rule, ignore_case: false }),
        invert: false,
        missing_is_empty: false,
    }
}

pub(crate) fn header_matcher(field: &Field<'_>) -> Option<HeaderMatch> {
    let message = field.message(&schema::HEADER_MATCHER)?;
    let name_field = message.require("name")?;
    let name = name_field.text()?.to_ascii_lowercase();
    let known = [":method", ":path", ":authority", ":scheme"].contains(&name.as_str());
    if !known && name.starts_with(':') {
        return name_field.fail(Problem::new(
            "requests do not have this pseudo-header",
            "use `:method`, `:path`, `:authority` or `:scheme`",
        ));
    }
    let name = if name == "host" { ":authority".to_owned() } else { name };
    let kinds = [
        "exact_match",
        "safe_regex_match",
        "range_match",
        "present_match",
        "prefix_match",
        "suffix_match",
        "contains_match",
        "string_match",
    ];
    let text = |rule| HeaderRule::Text(TextMatch { rule, ignore_case: false });
    let rule = match message.one_of(&kinds) {
        None => HeaderRule::Present(true),
        Some(("present_match", _)) => HeaderRule::Present(message.flag("present_match")),
        Some(("string_match", matcher)) => HeaderRule::Text(string_matcher(&matcher)?),
        Some(("safe_regex_match", regex)) => text(TextRule::Regex(regex_matcher(&regex)?)),
        Some(("range_match", range)) => {
            let range = range.message(&schema::INT64_RANGE)?;
            let end = |name| match range.get(name) {
                Some(field) => field.parse(|text| text.parse().map_err(|_| "not a whole number".into())),
                None => Some(0),
            };
            HeaderRule::Range(end("start")?, end("end")?)
        }
        Some((kind, matcher)) => {
            let wanted = matcher.text()?.to_owned();
            text(match kind {
                "exact_match" => TextRule::Exact(wanted),
                "prefix_match" => TextRule::Prefix(wanted),
                "suffix_match" => TextRule::Suffix(wanted),
                _ => TextRule::Contains(wanted),
            })
        }
    };
    let (invert, missing_is_empty) =
        (message.flag("invert_match"), message.flag("treat_missing_header_as_empty"));
    Some(HeaderMatch { name, rule, invert, missing_is_empty })
}

pub(crate) fn query_matchers(condition: &Message<'_>) -> Option<Vec<QueryMatch>> {
    condition.list("query_parameters").iter().map(query_matcher).collect()
}

pub(crate) fn query_matcher(field: &Field<'_>) -> Option<QueryMatch> {
    let message = field.message(&schema::QUERY_MATCHER)?;
    let name = message.require("name")?.text()?.to_owned();
    let value = match message.one_of(&["string_match", "present_match"]) {
        Some(("string_match", matcher)) => Some(string_matcher(&matcher)?),
        Some((_, present)) if !message.flag("present_match") => {
            return present.fail("refused: matching the absence of a parameter is not supported");
        }
        _ => None,
    };
    Some(QueryMatch { name, value, invert: false, decode: false })
}
