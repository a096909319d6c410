//! Rules for requests, which precede routing and hold for all routes.

use super::{HeaderMatch, PathMatch, Place};
use http::Method;

/// A rule for requests. The first rule of a list whose conditions hold applies.
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
    /// The methods; empty for any method.
    pub methods: Vec<Method>,
    /// The condition on the path.
    pub path: PathMatch,
    /// Conditions on headers. If lines of a header disagree, the condition holds.
    pub headers: Vec<HeaderMatch>,
}

/// The effect of a rule on matching requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleAction {
    /// A response with this status, from 400 to 599.
    Deny(u16),
}
