//! Locations of a server, in the order in which nginx selects them, as conditions on paths.

use super::{scope::Scope, statement::Statement, world::World};
use crate::draft::Path;
use crate::expression;

/// A location.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub(super) kind: Kind,
    /// The path or the expression.
    pub(super) text: String,
    pub(super) scope: Scope<'a>,
    pub(super) statement: &'a Statement,
}

/// Kinds of locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Exact,
    Prefix,
    /// `^~`: regular expressions are not tried.
    FirstPrefix,
    Regex {
        ignore_case: bool,
    },
    /// `@name`, and those with `internal`.
    Internal,
}

/// A location with its condition on paths.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    pub(super) location: Location<'a>,
    pub(super) path: Path,
}

/// Returns all locations of a block, nested ones too. Locations that cannot be expressed are returned separately, with the
/// reason.
pub(super) fn collect<'a>(
    block: &'a [Statement],
    scope: &Scope<'a>,
    world: &World<'_>,
) -> (Vec<Location<'a>>, Vec<(&'a Statement, String)>) {
    let mut collector = Collector { found: Vec::new(), refused: Vec::new(), world };
    collector.block(block, scope, None);
    for location in &collector.found {
        world.ledger.converted(location.statement.id);
    }
    (collector.found, collector.refused)
}

struct Collector<'w, 'a> {
    world: &'w World<'w>,
    found: Vec<Location<'a>>,
    refused: Vec<(&'a Statement, String)>,
}

impl<'a> Collector<'_, 'a> {
    fn block(&mut self, block: &'a [Statement], scope: &Scope<'a>, around: Option<&Location<'a>>) {
        for statement in block.iter().filter(|one| one.name == "location") {
            let inner = scope.within(statement.statements());
            match self.location(statement, inner, around) {
                Ok(location) => {
                    // Nested expressions precede those around them.
                    self.block(statement.statements(), &location.scope.clone(), Some(&location));
                    self.found.push(location);
                }
                Err(problem) => self.refused.push((statement, problem)),
            }
        }
    }

    fn location(
        &self,
        statement: &'a Statement,
        scope: Scope<'a>,
        around: Option<&Location<'a>>,
    ) -> Result<Location<'a>, String> {
        let (modifier, text) = modifier(statement).ok_or("the location has no path")?;
        let is_internal =
            text.starts_with('@') || statement.statements().iter().any(|one| one.name == "internal");
        let kind = match modifier {
            _ if is_internal => Kind::Internal,
            "=" => Kind::Exact,
            "" => Kind::Prefix,
            "^~" => Kind::FirstPrefix,
            "~" => Kind::Regex { ignore_case: false },
            "~*" => Kind::Regex { ignore_case: true },
            other => return Err(format!("the modifier `{other}` is not known")),
        };
        let mut location = Location { kind, text: text.to_owned(), scope, statement };
        let Kind::Regex { ignore_case } = kind else { return Ok(location) };
        let text = &usable(statement, text, ignore_case, self.world)?;
        location.text.clone_from(text);
        match around.map(|around| (around.kind, around.text.as_str())) {
            None => {}
            // An expression inside a prefix applies below it only.
            Some((Kind::Prefix | Kind::FirstPrefix, prefix)) => {
                let is_below = text.starts_with(&format!("^{}", expression::literal(prefix)))
                    || text.starts_with(&format!("^{prefix}"));
                if !is_below && text.starts_with('^') {
                    return Err("the expression is outside the location around it".to_owned());
                }
                if !is_below {
                    location.text =
                        format!("^{}.*?(?:{text})", expression::literal(prefix.trim_end_matches('/')));
                }
            }
            Some(_) => return Err("locations inside a regular expression have no equivalent".to_owned()),
        }
        Ok(location)
    }
}

/// Returns the modifier of a location, empty if it has none, and the path or expression.
pub(super) fn modifier(statement: &Statement) -> Option<(&str, &str)> {
    match &statement.args[..] {
        [text] if text.starts_with('=') && text.len() > 1 => Some(("=", &text[1..])),
        [text] if text.starts_with("^~") => Some(("^~", &text[2..])),
        [text] if text.starts_with("~*") => Some(("~*", &text[2..])),
        [text] if text.starts_with('~') => Some(("~", &text[1..])),
        [text] => Some(("", text)),
        [modifier, text] => Some((modifier, text)),
        _ => None,
    }
}

/// Returns the expression of a location. A location that only denies may do so for more paths: without the look-around that
/// RE2 does not have.
fn usable(statement: &Statement, text: &str, ignore_case: bool, world: &World<'_>) -> Result<String, String> {
    let problem = match expression::whole(text, ignore_case) {
        Ok(_) => return Ok(text.to_owned()),
        Err(problem) => problem,
    };
    let denies = |one: &Statement| {
        one.name == "deny" && one.arg(0) == "all" || one.name == "return" && one.arg(0).starts_with('4')
    };
    let only_denies = statement.statements().iter().any(denies)
        && !statement.statements().iter().any(|one| one.name == "allow");
    let wider = expression::without_lookaround(text);
    if only_denies && expression::whole(&wider, ignore_case).is_ok() {
        world.ledger.differs(statement.id, "its look-around is left out, so that more paths are denied");
        return Ok(wider);
    }
    Err(problem)
}

/// Puts locations in the order of selection, each with a condition that selects the same requests as nginx. `is_proxy` tells
/// whether nginx redirects requests without the final slash, `needs_rest` whether the path after a prefix is needed.
pub(super) fn placed<'a>(
    locations: Vec<Location<'a>>,
    is_proxy: impl Fn(&Location<'_>) -> bool,
    needs_rest: impl Fn(&Location<'_>) -> bool,
) -> Vec<Placed<'a>> {
    let mut placed = Vec::new();
    let of_kind = |kind: Kind| {
        let mut found: Vec<_> = locations.iter().filter(|one| one.kind == kind).cloned().collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.text.len()));
        found
    };
    for location in of_kind(Kind::Exact) {
        let path = match quadrille_config::values::path(&location.text) {
            Ok(path) => Path::Exact(path),
            Err(_) => Path::Regex(expression::literal(&location.text)),
        };
        placed.push(Placed { location, path });
    }
    let is_segments = |one: &Location<'_>| {
        let is_whole = one.text.ends_with('/') && (is_proxy(one) || one.text == "/");
        is_whole && !needs_rest(one) && quadrille_config::values::path(&one.text).is_ok()
    };
    let first = of_kind(Kind::FirstPrefix);
    let is_plain = first.iter().all(|one| one.text.ends_with('/') && !needs_rest(one));
    for location in first {
        if is_plain && quadrille_config::values::path(&location.text).is_ok() {
            let path = Path::FirstPrefix(trimmed(&location.text));
            placed.push(Placed { location, path });
        } else {
            placed.push(as_expression(location));
        }
    }
    for location in &locations {
        if let Kind::Regex { ignore_case } = location.kind
            && let Ok(whole) = expression::whole(&location.text, ignore_case)
        {
            placed.push(Placed { location: location.clone(), path: Path::Regex(whole) });
        }
    }
    // A prefix of characters, not of segments, is an expression. Those precede prefixes of segments, so that longer
    // prefixes that extend it are expressions, too, and come first.
    let prefixes = of_kind(Kind::Prefix);
    let short: Vec<String> =
        prefixes.iter().filter(|one| !is_segments(one)).map(|one| one.text.clone()).collect();
    for location in prefixes {
        if short.iter().any(|prefix| location.text.starts_with(prefix)) {
            placed.push(as_expression(location));
        } else {
            let path = Path::Prefix(trimmed(&location.text));
            placed.push(Placed { location, path });
        }
    }
    placed
}

fn as_expression(location: Location<'_>) -> Placed<'_> {
    let path = Path::Regex(format!("{}(.*)", expression::literal(&location.text)));
    Placed { location, path }
}

fn trimmed(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}
