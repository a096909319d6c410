//! Cross-origin requests: `enable-cors` and its family.

use super::{Annotations, text::list};
use quadrille_draft::{draft::Route, values, yaml::Map};

const METHODS: &str = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const HEADERS: &str = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization";
/// Seconds for which browsers cache the response to a preflight request.
const MAX_AGE: u64 = 1_728_000;

/// Adds the policy of a route.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    if annotations.flag("enable-cors") != Some(true) {
        return;
    }
    let mut cors = Map::new();
    let origins: Vec<_> = annotations.value("cors-allow-origin").map(list).into_iter().flatten().collect();
    let is_any = origins.is_empty() || origins.contains(&"*");
    let good: Vec<_> = origins.iter().copied().filter(|origin| is_origin(origin)).collect();
    if good.len() < origins.len() && !is_any {
        let bad: Vec<_> = origins.iter().copied().filter(|origin| !is_origin(origin)).collect();
        annotations.refuse(
            "cors-allow-origin",
            format!("`{}` is not an origin such as https://app.example: it is left out", bad.join("`, `")),
        );
    }
    if good.iter().any(|origin| origin.contains('*')) && !is_any {
        annotations.differ("cors-allow-origin", "`*` stands for several labels, not only for one");
    }
    match is_any {
        true => cors.set("origins", vec!["*"]),
        false if good.is_empty() => return,
        false => cors.set("origins", good),
    }
    let name_list = |name: &str, default: &str| {
        let items = list(annotations.value(name).unwrap_or(default)).map(str::to_owned);
        let (good, bad): (Vec<_>, Vec<_>) =
            items.partition(|item| item == "*" || quadrille_config::values::header_name(item).is_ok());
        if !bad.is_empty() {
            annotations.refuse(name, format!("`{}` is left out: not a name", bad.join("`, `")));
        }
        good
    };
    cors.set("methods", name_list("cors-allow-methods", METHODS));
    cors.set("headers", name_list("cors-allow-headers", HEADERS));
    let exposed = name_list("cors-expose-headers", "");
    if !exposed.is_empty() {
        cors.set("expose", exposed);
    }
    if annotations.flag("cors-allow-credentials").unwrap_or(true) {
        match is_any {
            true => annotations.differ(
                "cors-allow-credentials",
                "with every origin, credentials are not allowed, and browsers refuse them in this case anyway",
            ),
            false => cors.set("credentials", "on"),
        }
    }
    let age = annotations.number("cors-max-age").unwrap_or(MAX_AGE);
    if let Some(age) = values::shown(age.saturating_mul(1_000)) {
        cors.set("max_age", age);
    }
    route.keys.set("cors", cors);
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-.:[]*".contains(c);
    !scheme.is_empty() && !rest.is_empty() && rest.chars().all(is_name) && rest.matches('*').count() <= 1
}
