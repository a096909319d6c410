//! What is asked about a request before it is routed, ready to be asked.

use super::{
    authorization::Authorization,
    basic_auth::{self, Authenticators},
    jwt::{Authentication, KeyFetchers},
    rate_limit::{Limiter, Limiters},
    rate_limit_service::RateLimitService,
};
use crate::upstream::Upstreams;
use quadrille_config::{
    Diagnostic,
    model::{AccessRules, AccessStep},
};
use std::sync::Arc;

/// A step, ready to be asked.
pub(crate) enum Step {
    Rules(AccessRules),
    Jwt(Authentication),
    Authorization(Authorization),
    /// The name of the policy that matches is left under this name.
    Shadow(AccessRules, String),
    RateLimits(Box<[Arc<Limiter>]>),
    RateLimitService(RateLimitService),
    BasicAuth(basic_auth::Step),
}

impl Step {
    /// Makes a step of what the configuration says.
    ///
    /// # Errors
    /// Says what of it cannot be had.
    pub(crate) fn new(
        model: &AccessStep,
        upstreams: &Upstreams,
        limiters: &Limiters,
        key_fetchers: &KeyFetchers,
        users: &Authenticators,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Diagnostic> {
        match model {
            AccessStep::Rules(rules) => Ok(Self::Rules(rules.clone())),
            AccessStep::Jwt(model) => {
                Authentication::new(model, upstreams, key_fetchers, warnings).map(Self::Jwt)
            }
            AccessStep::Authorization(model) => Ok(Self::Authorization(Authorization::new(model, upstreams))),
            AccessStep::RateLimits(limits) => Ok(Self::RateLimits(limiters.of(limits))),
            AccessStep::RateLimitService(model) => {
                Ok(Self::RateLimitService(RateLimitService::new(model, upstreams)))
            }
            AccessStep::BasicAuth(own) => Ok(Self::BasicAuth(basic_auth::Step::new(own.as_ref(), users))),
            AccessStep::Shadow(rules, name) => Ok(Self::Shadow(rules.clone(), name.clone())),
        }
    }
}
