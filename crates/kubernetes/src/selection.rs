//! Paths of a host in the order in which nginx selects locations, as conditions of routes.
//!
//! If any Ingress of a host has `use-regex` or `rewrite-target`, all paths of the host are expressions, compared without
//! regard to case and from their beginning; the longest text comes first. Otherwise an exact path precedes the longest
//! prefix.

use crate::{
    annotation::rewrite,
    object::PathType,
    site::{Site, Source},
};
use quadrille_draft::{draft::Path, expression};

/// A condition on paths, with the number of its location.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) path: Path,
    pub(crate) location: usize,
    /// Why the path cannot be expressed: requests that it might match are closed.
    pub(crate) closed: Option<String>,
    /// The path without its final slash, from which nginx redirects to it.
    pub(crate) without_slash: Option<String>,
}

/// Returns whether the paths of a host are expressions.
pub(crate) fn is_regex(site: &Site<'_>, sources: &[Source<'_, '_>]) -> bool {
    site.locations.iter().any(|one| rewrite::makes_regex(&sources[one.source].annotations))
}

/// Returns the conditions of a host's locations.
pub(crate) fn steps(site: &Site<'_>, sources: &[Source<'_, '_>]) -> Vec<Step> {
    let mut order: Vec<usize> = (0..site.locations.len()).collect();
    order.sort_by(|a, b| site.locations[*b].path.cmp(site.locations[*a].path));
    order.sort_by_key(|number| std::cmp::Reverse(site.locations[*number].path.len()));
    match is_regex(site, sources) {
        true => order.into_iter().flat_map(|number| expressions(site, sources, number)).collect(),
        false => plain(site, &order),
    }
}

fn expressions(site: &Site<'_>, sources: &[Source<'_, '_>], number: usize) -> Vec<Step> {
    let location = &site.locations[number];
    let annotations = &sources[location.source].annotations;
    let is_segments =
        location.kind == PathType::Prefix && location.path != "/" && !rewrite::makes_regex(annotations);
    let mut texts = vec![location.path.to_owned()];
    if is_segments {
        texts.insert(0, format!("{}/", location.path.trim_end_matches('/')));
    }
    let step = |text: String| match expression::whole(&format!("^{text}"), true) {
        Ok(whole) => Step { path: Path::Regex(whole), location: number, closed: None, without_slash: None },
        Err(problem) => {
            Step { path: wider(&text), location: number, closed: Some(problem), without_slash: None }
        }
    };
    texts.into_iter().map(step).collect()
}

/// Returns an expression that matches at least the paths of one that cannot be expressed.
fn wider(text: &str) -> Path {
    if let Ok(whole) = expression::whole(&format!("^{}", expression::without_lookaround(text)), true) {
        return Path::Regex(whole);
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"/_-".contains(c)).unwrap_or(text.len());
    // A quantifier may apply to the last character.
    let literal = &text[..end.saturating_sub(usize::from(end < text.len()))];
    let literal = if text[..end].contains('|') { "" } else { literal };
    Path::Regex(format!("(?i){}.*", expression::literal(literal)))
}

fn plain(site: &Site<'_>, order: &[usize]) -> Vec<Step> {
    let locations = &site.locations;
    let is_exact = |path: &str| {
        locations.iter().any(|one| one.path == path && matches!(one.kind, PathType::Exact | PathType::Prefix))
    };
    let is_bytes = |number: &usize| {
        let one = &locations[*number];
        one.kind == PathType::ImplementationSpecific && one.path != "/" && !one.path.ends_with('/')
    };
    // A prefix of characters, not of segments, is an expression. Those precede prefixes of segments, so that longer
    // prefixes that extend it are expressions, too, and come first.
    let short: Vec<&str> =
        order.iter().filter(|number| is_bytes(number)).map(|number| locations[*number].path).collect();
    let mut steps = Vec::new();
    for &number in order {
        let one = &locations[number];
        let trimmed = one.path.trim_end_matches('/');
        let extends = short.iter().any(|prefix| one.path.starts_with(prefix));
        let literal = expression::literal(one.path);
        let path = match one.kind {
            PathType::Exact => Path::Exact(one.path.to_owned()),
            PathType::Prefix if extends && one.path != "/" => {
                Path::Regex(format!("{}(?:/.*)?", expression::literal(trimmed)))
            }
            _ if one.path == "/" => Path::Prefix(String::new()),
            _ if extends || is_bytes(&number) => Path::Regex(format!("{literal}.*")),
            _ => Path::Prefix(trimmed.to_owned()),
        };
        let is_redirected = one.path.len() > 1
            && one.path.ends_with('/')
            && one.kind != PathType::Exact
            && !is_exact(trimmed);
        let closed = quadrille_config::values::path(one.path).err().map(|problem| problem.to_string());
        let path = match closed {
            Some(_) => wider(&literal),
            None => path,
        };
        let without_slash = is_redirected.then(|| trimmed.to_owned());
        steps.push(Step { path, location: number, closed, without_slash });
    }
    steps
}
