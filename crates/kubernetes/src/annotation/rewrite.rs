//! Paths for servers: `rewrite-target` and `x-forwarded-prefix`.

use super::{Annotations, Texts};
use quadrille_draft::{
    draft::{Path, Route},
    variables::{Piece, pieces},
    yaml::Map,
};

/// Returns whether the Ingress makes all paths of its hosts regular expressions.
pub(crate) fn makes_regex(annotations: &Annotations<'_, '_>) -> bool {
    annotations.flag("use-regex") == Some(true) || annotations.value("rewrite-target").is_some()
}

/// Sets the path that servers receive.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, texts: &Texts, path: &str, route: &mut Route) {
    let prefix = annotations.value("x-forwarded-prefix");
    let target = annotations.value("rewrite-target").filter(|target| *target != path);
    let Some(target) = target else {
        if prefix.is_some() {
            annotations
                .differ("x-forwarded-prefix", "no effect without `rewrite-target`, as in ingress-nginx");
        }
        return;
    };
    if let Some(prefix) = prefix {
        match texts.header_value(prefix) {
            Ok(value) => {
                route.keys.push("request_headers", Map::of("set", "X-Forwarded-Prefix").with("value", value));
            }
            Err(problem) => annotations.refuse("x-forwarded-prefix", problem),
        }
    }
    match rewritten(&texts.substituted(target), texts, &route.path) {
        Ok(path) => route.keys.set("rewrite", path),
        Err(problem) => {
            annotations.refuse("rewrite-target", format!("{problem}; its paths respond with 503 meanwhile"));
            route.close(503, &format!("{}: {problem}", annotations.shown("rewrite-target")));
        }
    }
}

fn rewritten(target: &str, texts: &Texts, path: &Path) -> Result<String, String> {
    if !matches!(path, Path::Regex(_)) {
        return Err("the path is not an expression".to_owned());
    }
    let target = if target.starts_with('/') || target.starts_with('$') {
        target.to_owned()
    } else {
        format!("/{target}")
    };
    let mut whole = String::new();
    for piece in pieces(&target) {
        match piece {
            Piece::Text(text) => whole.push_str(&text.replace('{', "{{")),
            Piece::Variable(name) => match name.parse::<usize>() {
                Ok(number) if (1..=texts.context.groups).contains(&number) => {
                    whole.push_str(&format!("{{{number}}}"));
                }
                // A group that the expression does not have is empty.
                Ok(_) => {}
                Err(_) => match name {
                    "uri" | "document_uri" => whole.push_str("{path}"),
                    "host" => whole.push_str("{host}"),
                    _ if texts.context.group_names.iter().any(|known| known == name) => {
                        whole.push_str(&format!("{{{name}}}"));
                    }
                    _ => return Err(format!("`${name}` has no placeholder")),
                },
            },
        }
    }
    if !whole.starts_with('/') && !whole.starts_with("{path}") {
        return Err(format!("`{target}` does not begin with `/`: put the slash in front of the group"));
    }
    match whole.contains(['?', '*', '#', ' ']) {
        true => Err(format!("the path `{target}` has a query or a character that a path cannot have")),
        false => Ok(whole),
    }
}
