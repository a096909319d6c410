//! Retries: `proxy-next-upstream` and its family.

use super::Annotations;
use quadrille_draft::{
    draft::Route,
    yaml::{Map, Value},
};

/// Sets the retries of a route. The default of ingress-nginx is `error timeout`, with three attempts.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let text = annotations.or_global("proxy-next-upstream").unwrap_or("error timeout");
    let tries = annotations.number("proxy-next-upstream-tries").unwrap_or(3);
    let (mut on, mut idempotent_only): (Vec<String>, bool) = (Vec::new(), true);
    for word in text.split_whitespace() {
        match word {
            "off" => {
                on.clear();
                break;
            }
            "error" => on.extend(["connect-failure".into(), "refused-stream".into(), "reset".into()]),
            "timeout" => on.push("connect-failure".into()),
            "invalid_header" => on.push("reset".into()),
            "non_idempotent" => idempotent_only = false,
            _ => match word.strip_prefix("http_").filter(|status| status.parse::<u16>().is_ok()) {
                Some(status) => on.push(status.to_owned()),
                None => {
                    annotations.refuse("proxy-next-upstream", format!("`{word}` is not known, and left out"));
                }
            },
        }
    }
    let mut unique: Vec<String> = Vec::new();
    on.into_iter().for_each(|word| {
        if !unique.contains(&word) {
            unique.push(word);
        }
    });
    if text.split_whitespace().any(|word| word == "timeout")
        && annotations.value("proxy-next-upstream").is_some()
    {
        annotations
            .differ("proxy-next-upstream", "after `proxy-read-timeout` the response is 504, without a retry");
    }
    if tries == 0 && annotations.value("proxy-next-upstream-tries").is_some() {
        annotations.differ("proxy-next-upstream-tries", "at most ten retries, not any number");
    }
    if annotations.value("proxy-next-upstream-timeout").is_some_and(|time| time == "0") {
        annotations.works("proxy-next-upstream-timeout");
    }
    if annotations.world.globals.flag("retry-non-idempotent", false) {
        idempotent_only = false;
    }
    let retries = match tries {
        0 => 10,
        tries => (tries - 1).min(10),
    };
    if unique.is_empty() || retries == 0 {
        return;
    }
    let on: Vec<Value> = unique.into_iter().map(Value::from).collect();
    let mut retry = Map::new();
    retry.set("on", Value::List(on));
    if retries != 1 {
        retry.set("retries", retries);
    }
    if !idempotent_only {
        retry.set("idempotent_only", "off");
    }
    route.keys.set("retry", retry);
}

/// Returns whether an upstream must not retry by itself.
pub(crate) fn is_off(annotations: &Annotations<'_, '_>) -> bool {
    let text = annotations.or_global("proxy-next-upstream").unwrap_or_default();
    text.split_whitespace().any(|word| word == "off")
        || annotations.number("proxy-next-upstream-tries") == Some(1)
}
