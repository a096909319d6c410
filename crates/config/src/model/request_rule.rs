//! Rules for requests, which precede routing and hold for all routes.

use super::{
    CookieMatch, Domain, HeaderChange, HeaderMatch, PathMatch, Place, QueryMatch, RateLimit, Redirect,
    Respond,
};
use http::Method;

/// A rule for requests. The rules of a list apply in order, up to one that responds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestRule {
    /// The conditions.
    pub when: RequestMatch,
    /// The effect on matching requests.
    pub action: RuleAction,
    /// The place of the rule in the configuration.
    pub place: Place,
}

/// Conditions on a request, all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestMatch {
    /// The hosts; empty for any host.
    pub hosts: Vec<Domain>,
    /// The methods; empty for any method.
    pub methods: Vec<Method>,
    /// The condition on the path.
    pub path: PathMatch,
    /// Conditions on headers. If lines of a header disagree, the condition holds.
    pub headers: Vec<HeaderMatch>,
    /// Conditions on query parameters. If parameters of a name disagree, the condition holds.
    pub query: Vec<QueryMatch>,
    /// Conditions on cookies. If cookies of a name disagree, the condition holds.
    pub cookies: Vec<CookieMatch>,
}

/// The effect of a rule on matching requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleAction {
    /// A response with this status, from 400 to 599.
    Deny(u16),
    /// A fixed response.
    Respond(Respond),
    /// A redirect.
    Redirect(Box<Redirect>),
    /// Changes to the request's headers, which later rules and routes see.
    Set(Vec<HeaderChange>),
    /// Rate limits that the requests must pass.
    Limit(Vec<RateLimit>),
}
