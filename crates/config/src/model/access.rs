//! Access control: rules on connections and requests, as in Envoy's RBAC filter.

use super::{
    Authorization, BasicAuth, HeaderMatch, JwtAuthentication, JwtProvider, MetadataMatch, Network, Place,
    RateLimit, RateLimitService, RequestRule, RuleAction, TextMatch,
};
use std::sync::Arc;

/// A step of the access check that precedes routing. The steps of a list run in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccessStep {
    /// Rules that the request must pass.
    Rules(AccessRules),
    /// Rules on the request itself, the first of which applies.
    RequestRules(Vec<RequestRule>),
    /// The rules of the request's route for client addresses, ahead of steps that require more. All rules of the route
    /// are checked once more when the request has been routed.
    RouteClients,
    /// JSON Web Tokens that the request must carry.
    Jwt(Arc<JwtAuthentication>),
    /// The tokens of the chain, or those of the request's route in their place.
    RouteJwt {
        /// The tokens of the chain; `None` for none.
        own: Option<Arc<JwtAuthentication>>,
        /// The tokens of routes.
        of_routes: Vec<Arc<JwtAuthentication>>,
    },
    /// A query to an external authorization server.
    Authorization(Arc<Authorization>),
    /// A query to the authorization server of the chain, or to that of the request's route in its place.
    RouteAuthorization {
        /// The server of the chain; `None` allows every request whose route has none.
        own: Option<Arc<Authorization>>,
        /// The servers of routes.
        of_routes: Vec<Arc<Authorization>>,
    },
    /// Shadow rules, which deny no request: the name of the policy that would deny is stored as metadata under this
    /// name, for later steps.
    Shadow(AccessRules, String),
    /// Local rate limits, or those of the request's route in their place.
    RateLimits(Vec<RateLimit>),
    /// A query to a rate limit service.
    RateLimitService(Arc<RateLimitService>),
    /// Basic authentication, or that of the request's route in its place. `None` allows every request whose route
    /// configures none.
    BasicAuth(Option<Arc<BasicAuth>>),
}

/// A set of policies with one action. A request must pass all sets of rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessRules {
    /// The effect of a matching policy.
    pub action: AccessAction,
    /// The policies, in the order of evaluation.
    pub policies: Vec<AccessPolicy>,
    /// The place of the rules in the configuration.
    pub place: Place,
}

/// The effect of a matching policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessAction {
    /// Matching requests are allowed, all others are denied.
    Allow,
    /// Matching requests are denied, all others are allowed.
    Deny,
}

/// A policy, which matches if one of the permissions and one of the principals hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessPolicy {
    /// The name, for logs.
    pub name: String,
    /// Conditions on the requested resource.
    pub permissions: Vec<AccessCondition>,
    /// Conditions on the client.
    pub principals: Vec<AccessCondition>,
}

/// A condition on a connection or a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccessCondition {
    /// Always holds.
    Always,
    /// All of these hold.
    All(Vec<AccessCondition>),
    /// One of these holds.
    Any(Vec<AccessCondition>),
    /// This does not hold.
    Not(Box<AccessCondition>),
    /// The client's address is one of these.
    Client(Network),
    /// The address that the client has reached is one of these.
    Local(Network),
    /// The port that the client has reached is one from the first to, and without, the second.
    LocalPort(u32, u32),
    /// The client's SNI; empty without SNI.
    ServerName(TextMatch),
    /// The client has presented a certificate; with a text, one of its URIs or DNS names, or its subject (RFC 2253),
    /// matches it.
    Authenticated(Option<TextMatch>),
    /// A header of the request. Never holds for connections.
    Header(HeaderMatch),
    /// The path of the request, without its query. Never holds for connections.
    Path(TextMatch),
    /// Metadata that an earlier step has stored. Never holds for connections.
    Metadata(MetadataMatch),
}

impl AccessStep {
    /// Returns the rules, if the step is a set of rules.
    pub fn rules(&self) -> Option<&AccessRules> {
        match self {
            Self::Rules(rules) => Some(rules),
            Self::RequestRules(_)
            | Self::RouteClients
            | Self::Jwt(_)
            | Self::RouteJwt { .. }
            | Self::Authorization(_)
            | Self::RouteAuthorization { .. }
            | Self::Shadow(..)
            | Self::RateLimits(_)
            | Self::RateLimitService(_)
            | Self::BasicAuth(_) => None,
        }
    }

    /// Returns the rules on the request itself, if the step is a list of them.
    pub fn request_rules(&self) -> &[RequestRule] {
        match self {
            Self::RequestRules(rules) => rules,
            _ => &[],
        }
    }

    /// Returns the Basic authentication, if the step has one.
    pub fn basic_auth(&self) -> Option<&Arc<BasicAuth>> {
        match self {
            Self::BasicAuth(users) => users.as_ref(),
            _ => None,
        }
    }

    /// Returns the authorization servers of a chain and its routes.
    pub fn route_authorizations(&self) -> impl Iterator<Item = &Arc<Authorization>> {
        let (own, of_routes): (_, &[Arc<Authorization>]) = match self {
            Self::RouteAuthorization { own, of_routes } => (own.as_ref(), &of_routes[..]),
            _ => (None, &[]),
        };
        own.into_iter().chain(of_routes)
    }

    /// Returns the token issuers, if the step requires tokens.
    pub fn token_issuers(&self) -> impl Iterator<Item = &JwtProvider> {
        let (own, of_routes): (_, &[Arc<JwtAuthentication>]) = match self {
            Self::Jwt(tokens) => (Some(tokens), &[]),
            Self::RouteJwt { own, of_routes } => (own.as_ref(), &of_routes[..]),
            _ => (None, &[]),
        };
        own.into_iter().chain(of_routes).flat_map(|tokens| &tokens.providers)
    }

    /// Returns the limits, if the step is a set of limits.
    pub fn rate_limits(&self) -> &[RateLimit] {
        match self {
            Self::RateLimits(limits) => limits,
            _ => &[],
        }
    }

    /// Returns the limits of rules on the request itself.
    pub fn limits_of_rules(&self) -> impl Iterator<Item = &RateLimit> {
        self.request_rules().iter().flat_map(|rule| match &rule.action {
            RuleAction::Limit(limits) => &limits[..],
            _ => &[],
        })
    }
}

impl AccessRules {
    /// Checks the rules; `holds` evaluates single conditions. A denial returns the name of the policy that denies, or
    /// `None` if no policy allows.
    ///
    /// # Errors
    /// If the rules deny access.
    pub fn admits(&self, holds: &dyn Fn(&AccessCondition, Doubt) -> bool) -> Result<(), Option<&str>> {
        let doubt = match self.action {
            AccessAction::Deny => Doubt::Holds,
            AccessAction::Allow => Doubt::Fails,
        };
        let matching = self.policies.iter().find(|policy| policy.matches(holds, doubt));
        match (self.action, matching) {
            (AccessAction::Allow, Some(_)) | (AccessAction::Deny, None) => Ok(()),
            (AccessAction::Allow, None) => Err(None),
            (AccessAction::Deny, Some(policy)) => Err(Some(&policy.name)),
        }
    }
}

impl AccessPolicy {
    fn matches(&self, holds: &dyn Fn(&AccessCondition, Doubt) -> bool, doubt: Doubt) -> bool {
        self.permissions.iter().any(|condition| condition.holds(holds, doubt))
            && self.principals.iter().any(|condition| condition.holds(holds, doubt))
    }
}

impl AccessCondition {
    /// Returns whether the condition holds; `single` evaluates conditions that are not combinations.
    fn holds(&self, single: &dyn Fn(&Self, Doubt) -> bool, doubt: Doubt) -> bool {
        match self {
            Self::Always => true,
            Self::All(all) => all.iter().all(|condition| condition.holds(single, doubt)),
            Self::Any(any) => any.iter().any(|condition| condition.holds(single, doubt)),
            Self::Not(condition) => !condition.holds(single, doubt.inverted()),
            one => single(one, doubt),
        }
    }
}

/// The result of a condition on a header that some of the header's lines meet and others do not. It is unknown which
/// line the server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// One line suffices.
    One,
    /// The condition holds, inverted or not.
    Holds,
    /// The condition does not hold, inverted or not.
    Fails,
}

impl Doubt {
    /// Returns the rule for the negated condition.
    fn inverted(self) -> Self {
        match self {
            Self::One => Self::One,
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: u32) -> AccessCondition {
        AccessCondition::LocalPort(port, port + 1)
    }

    fn policy(permissions: Vec<AccessCondition>, principals: Vec<AccessCondition>) -> AccessPolicy {
        AccessPolicy { name: "one".into(), permissions, principals }
    }

    /// Checks a connection to port 1, for which no other condition holds.
    fn admitted(action: AccessAction, policies: Vec<AccessPolicy>) -> Result<(), Option<String>> {
        let rules = AccessRules { action, policies, place: Place::flag("test") };
        let holds = |condition: &AccessCondition, _: Doubt| *condition == port(1);
        rules.admits(&holds).map_err(|name| name.map(str::to_owned))
    }

    /// If lines of a header disagree, rules that deny use the line that denies, and rules that allow need all lines.
    #[test]
    fn in_doubt_it_is_denied() {
        let seen = |action, conditions| {
            let seen = std::cell::RefCell::new(Vec::new());
            let policies = vec![policy(vec![AccessCondition::Always], conditions)];
            let rules = AccessRules { action, policies, place: Place::flag("test") };
            let _ = rules.admits(&|_, doubt| {
                seen.borrow_mut().push(doubt);
                false
            });
            seen.into_inner()
        };
        let not = |condition| AccessCondition::Not(Box::new(condition));
        let conditions = || vec![port(1), not(port(1)), not(not(port(1)))];
        assert_eq!(seen(AccessAction::Deny, conditions()), [Doubt::Holds, Doubt::Fails]);
        assert_eq!(seen(AccessAction::Deny, vec![not(not(port(1)))]), [Doubt::Holds]);
        assert_eq!(seen(AccessAction::Allow, conditions()), [Doubt::Fails, Doubt::Holds]);
        assert_eq!(seen(AccessAction::Allow, vec![not(not(port(1)))]), [Doubt::Fails]);
    }

    #[test]
    fn a_policy_needs_one_permission_and_one_principal() {
        let matching = policy(vec![port(7), port(1)], vec![AccessCondition::Always]);
        assert_eq!(admitted(AccessAction::Allow, vec![matching.clone()]), Ok(()));
        assert_eq!(admitted(AccessAction::Deny, vec![matching]), Err(Some("one".into())));
        for other in [
            policy(vec![port(7)], vec![AccessCondition::Always]),
            policy(vec![port(1)], vec![port(7)]),
            policy(vec![], vec![AccessCondition::Always]),
            policy(vec![port(1)], vec![]),
        ] {
            assert_eq!(admitted(AccessAction::Allow, vec![other.clone()]), Err(None), "{other:?}");
            assert_eq!(admitted(AccessAction::Deny, vec![other]), Ok(()));
        }
    }

    #[test]
    fn without_policies_nothing_is_allowed_or_denied() {
        assert_eq!(admitted(AccessAction::Allow, vec![]), Err(None));
        assert_eq!(admitted(AccessAction::Deny, vec![]), Ok(()));
    }

    #[test]
    fn conditions_combine() {
        let holds = |condition: AccessCondition| {
            let policies = vec![policy(vec![condition], vec![AccessCondition::Always])];
            admitted(AccessAction::Allow, policies).is_ok()
        };
        let not = |condition| AccessCondition::Not(Box::new(condition));
        assert!(holds(AccessCondition::All(vec![port(1), not(port(7))])));
        assert!(!holds(AccessCondition::All(vec![port(1), port(7)])));
        assert!(holds(AccessCondition::Any(vec![port(7), port(1)])) && !holds(AccessCondition::Any(vec![])));
        assert!(holds(AccessCondition::All(vec![])) && !holds(not(AccessCondition::Always)));
    }
}
