//! Rules of a listener, which requests must pass before they are routed.

use super::{
    route_conditions,
    route_shown::{exact_path, path_regex, segments_of},
};
use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    model::{AccessStep, HeaderMatch, PathMatch, PathRule, RequestMatch, RequestRule, RuleAction, Serve},
    quote, values,
};
use http::Method;
use serde_json::Value;

pub(super) const RULE: Section<RuleDraft, RequestRule> = Section {
    path: "listeners[].rules[]",
    about: "A rule for requests with any path. Rules are evaluated in this order, after `clients` and before \
            `rate_limits`, `basic_auth` and `routes`; the first one whose conditions hold applies.",
    keys: &[
        Key::new(
            "when",
            "mapping",
            Preset::Required,
            "Conditions on the request, all of which must hold.",
            |field, draft| draft.when = when(field),
            |rule| WHEN.show(&rule.when),
        ),
        Key::new(
            "deny",
            "status",
            Preset::Required,
            "The status of the response to matching requests, 400 to 599, with the error page of this status.",
            |field, draft| draft.deny = field.parse(denial),
            |rule| match rule.action {
                RuleAction::Deny(status) => status.into(),
            },
        ),
    ],
};

pub(super) const WHEN: Section<WhenDraft, RequestMatch> = Section {
    path: "listeners[].rules[].when",
    about: "Conditions on a request, in the format of routes. One at least is needed. If a header has several lines, \
            one matching line suffices, and with `invert` one that does not match.",
    keys: &[
        Key::new(
            "methods",
            "list of methods",
            Preset::Means("any"),
            "The methods, such as `POST`; upper and lower case differ.",
            |field, draft| draft.methods = methods(field),
            |when| list(when.methods.iter().map(|method| method.as_str().into())),
        ),
        Key::new(
            "path",
            "path",
            Preset::Is("/"),
            "A prefix of whole segments, as of a route.",
            |field, draft| draft.path = field.parse(values::route_path).map(|path| segments(path.as_deref())),
            |when| segments_of(&when.path),
        ),
        Key::new(
            "path_exact",
            "path",
            Preset::Means("none"),
            "The exact path, in place of `path`.",
            |field, draft| draft.path = field.parse(values::path).map(|path| of(PathRule::Exact(path))),
            |when| exact_path(&when.path),
        ),
        Key::new(
            "path_regex",
            "regular expression",
            Preset::Means("none"),
            "An expression that matches the whole path, in place of `path`.",
            |field, draft| {
                draft.path = field.parse(values::whole_regex).map(|regex| of(PathRule::Regex(regex)));
            },
            |when| path_regex(&when.path),
        ),
        Key::new(
            "headers",
            "list of conditions",
            Preset::Means("none"),
            "Conditions on the request's headers.",
            |field, draft| draft.headers = route_conditions::headers(field),
            |when| list(when.headers.iter().map(route_conditions::show)),
        ),
    ],
};

/// Values read for a rule.
#[derive(Default)]
pub(super) struct RuleDraft {
    when: Option<RequestMatch>,
    deny: Option<u16>,
}

/// Values read for the conditions of a rule.
#[derive(Default)]
pub(super) struct WhenDraft {
    methods: Vec<Method>,
    path: Option<PathMatch>,
    headers: Vec<HeaderMatch>,
}

/// Reads the rules of a listener.
pub(super) fn rules(field: &Field<'_>) -> Vec<RequestRule> {
    field.items().iter().filter_map(rule).collect()
}

fn rule(field: &Field<'_>) -> Option<RequestRule> {
    let mut draft = RuleDraft::default();
    RULE.read(field, &mut draft)?;
    Some(RequestRule { when: draft.when?, action: RuleAction::Deny(draft.deny?), place: field.place() })
}

fn when(field: &Field<'_>) -> Option<RequestMatch> {
    const PATHS: [&str; 3] = ["path", "path_exact", "path_regex"];
    let mut draft = WhenDraft::default();
    WHEN.read(field, &mut draft)?;
    let mut paths = PATHS.iter().filter_map(|key| field.entry(key));
    let (first, second) = (paths.next(), paths.next());
    if let Some(second) = second {
        second.error(Problem::new("a rule has one path", "remove one, or write two rules"));
    }
    if first.is_none() && ["methods", "headers"].iter().all(|key| field.entry(key).is_none()) {
        field.error(Problem::new("the rule would apply to every request", "add a condition"));
    }
    let WhenDraft { methods, path, headers } = draft;
    Some(RequestMatch { methods, path: path.unwrap_or_else(|| segments(None)), headers })
}

fn methods(field: &Field<'_>) -> Vec<Method> {
    let method = |text: &str| {
        let problem =
            || Problem::new(format!("{} is not a method", quote(text)), "write `GET`, `POST` or the like");
        text.parse::<Method>().map_err(|_| problem())
    };
    field.items().iter().filter_map(|field| field.parse(method)).collect()
}

fn denial(text: &str) -> Result<u16, Problem> {
    let status = text.parse().ok().filter(|status| (400..=599).contains(status));
    status.ok_or_else(|| {
        Problem::new(format!("{} is not the status of an error", quote(text)), "use 400 to 599, such as 403")
    })
}

fn segments(path: Option<&str>) -> PathMatch {
    PathMatch::segments(path.unwrap_or_default())
}

fn of(rule: PathRule) -> PathMatch {
    PathMatch { rule, ignore_case: false }
}

/// Shows the rules of a listener.
pub(super) fn show(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => {
            let rules = http.access.iter().flat_map(AccessStep::request_rules);
            list(rules.map(|rule| RULE.show(rule)))
        }
        Serve::Tcp(_) => Value::Null,
    }
}
