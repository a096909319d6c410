//! Who is let in: rules about connections and requests, as Envoy's RBAC filter has them.

use super::{
    Authorization, BasicAuth, HeaderMatch, JwtAuthentication, JwtProvider, MetadataMatch, Network, Place,
    RateLimit, RateLimitService, TextMatch,
};
use std::sync::Arc;

/// A step of what is asked about a request before it is routed, in the order of a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccessStep {
    /// Rules that it must pass.
    Rules(AccessRules),
    /// Tokens that it must bring.
    Jwt(Arc<JwtAuthentication>),
    /// A server that is asked.
    Authorization(Arc<Authorization>),
    /// Rules of which none keeps anybody out: the name of the policy that denies is left for later steps, under this
    /// name.
    Shadow(AccessRules, String),
    /// Limits that must have something left, or those that the request's route has in their place.
    RateLimits(Vec<RateLimit>),
    /// A service that is asked whether it is one too many.
    RateLimitService(Arc<RateLimitService>),
    /// A user with a password, or one of those that the request's route has in their place. None lets everybody in where
    /// the route says nothing.
    BasicAuth(Option<Arc<BasicAuth>>),
}

/// Rules that are asked together. Whoever is let in has passed all rules that there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessRules {
    /// What it means that one of the policies matches.
    pub action: AccessAction,
    /// In the order in which they are asked.
    pub policies: Vec<AccessPolicy>,
    /// Where the rules were written.
    pub place: Place,
}

/// What it means that a policy matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessAction {
    /// Those are let in, and nobody else.
    Allow,
    /// Those are not, and everybody else is.
    Deny,
}

/// Who may do what: one of the permissions and one of the principals must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessPolicy {
    /// For logs.
    pub name: String,
    /// What is asked for.
    pub permissions: Vec<AccessCondition>,
    /// Who asks.
    pub principals: Vec<AccessCondition>,
}

/// A condition on a connection or a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccessCondition {
    /// It always holds.
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
    /// The client's SNI, empty if there is none.
    ServerName(TextMatch),
    /// The client has shown a certificate; with a text, one of its URIs or DNS names is like this, or its subject (RFC
    /// 2253).
    Authenticated(Option<TextMatch>),
    /// A header of the request. Never holds for connections.
    Header(HeaderMatch),
    /// The path of the request, without its query. Never holds for connections.
    Path(TextMatch),
    /// What an earlier step has found out about the request. Never holds for connections.
    Metadata(MetadataMatch),
}

impl AccessStep {
    /// The rules, if it is rules.
    pub fn rules(&self) -> Option<&AccessRules> {
        match self {
            Self::Rules(rules) => Some(rules),
            Self::Jwt(_)
            | Self::Authorization(_)
            | Self::Shadow(..)
            | Self::RateLimits(_)
            | Self::RateLimitService(_)
            | Self::BasicAuth(_) => None,
        }
    }

    /// The users, if it asks for any.
    pub fn basic_auth(&self) -> Option<&Arc<BasicAuth>> {
        match self {
            Self::BasicAuth(users) => users.as_ref(),
            _ => None,
        }
    }

    /// The tokens' issuers, if it asks for tokens.
    pub fn token_issuers(&self) -> &[JwtProvider] {
        match self {
            Self::Jwt(tokens) => &tokens.providers,
            _ => &[],
        }
    }

    /// The limits, if it is limits.
    pub fn rate_limits(&self) -> &[RateLimit] {
        match self {
            Self::RateLimits(limits) => limits,
            _ => &[],
        }
    }
}

impl AccessRules {
    /// Whether somebody is let in of whom `holds` says which conditions hold; otherwise the name of the policy that
    /// forbids it, or none if there is no policy that allows it.
    ///
    /// # Errors
    /// See above.
    pub fn admits(&self, holds: &dyn Fn(&AccessCondition, Doubt) -> bool) -> Result<(), Option<&str>> {
        let doubt = match self.action {
            AccessAction::Deny => Doubt::Holds,
            AccessAction::Allow => Doubt::One,
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
    /// Whether it holds, if `single` says so of those that are about one thing.
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

/// Whether a condition on a header holds that some of the header's lines meet and others do not. Nobody knows which of
/// them the server takes.
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
    /// The same of a condition whose opposite is asked for.
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

    /// What becomes of whoever reaches port 1, of whom nothing else is true.
    fn admitted(action: AccessAction, policies: Vec<AccessPolicy>) -> Result<(), Option<String>> {
        let rules = AccessRules { action, policies, place: Place::flag("test") };
        let holds = |condition: &AccessCondition, _: Doubt| *condition == port(1);
        rules.admits(&holds).map_err(|name| name.map(str::to_owned))
    }

    /// Of lines of a header that disagree: rules that deny take those that deny.
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
        assert_eq!(seen(AccessAction::Allow, conditions()), [Doubt::One; 2]);
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
    fn without_policies_nobody_is_allowed_and_nobody_denied() {
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
