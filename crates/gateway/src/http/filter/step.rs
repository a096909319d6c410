//! Access steps, which run before a request is routed, ready for use.

use super::{
    authorization::{Authorization, OfRoutes},
    basic_auth::{self, Authenticators},
    call::Call,
    jwt::{self, Authentication, KeyFetchers},
    rate_limit_service::RateLimitService,
    rate_limits, request_rules, rules,
};
use crate::{
    http::{
        error::refusal::Refusal,
        rate_limit::{Limiter, Limiters},
    },
    upstream::Upstreams,
};
use quadrille_config::{
    Diagnostic,
    model::{AccessRules, AccessStep},
};
use std::sync::Arc;

/// An access step, ready for use.
pub(crate) enum Step {
    Rules(AccessRules),
    RequestRules(Box<[request_rules::Rule]>),
    RouteClients,
    Jwt(Authentication),
    RouteJwt(jwt::OfRoutes),
    Authorization(Authorization),
    RouteAuthorization(OfRoutes),
    /// Rules in shadow mode: the name of the matching policy is stored in the metadata under this name.
    Shadow(AccessRules, String),
    RateLimits(Box<[Arc<Limiter>]>),
    RateLimitService(RateLimitService),
    BasicAuth(basic_auth::Step),
}

impl Step {
    /// Builds a step from its configuration.
    ///
    /// # Errors
    /// Names the part of the configuration that is not available.
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
            AccessStep::RequestRules(rules) => {
                let rule = |rule| request_rules::Rule::new(rule, limiters);
                Ok(Self::RequestRules(rules.iter().map(rule).collect()))
            }
            AccessStep::RouteClients => Ok(Self::RouteClients),
            AccessStep::Jwt(model) => {
                Authentication::new(model, upstreams, key_fetchers, warnings).map(Self::Jwt)
            }
            AccessStep::RouteJwt { own, of_routes } => {
                let tokens = jwt::OfRoutes::new(own.as_ref(), of_routes, upstreams, key_fetchers, warnings);
                tokens.map(Self::RouteJwt)
            }
            AccessStep::Authorization(model) => Ok(Self::Authorization(Authorization::new(model, upstreams))),
            AccessStep::RouteAuthorization { own, of_routes } => {
                Ok(Self::RouteAuthorization(OfRoutes::new(own.as_ref(), of_routes, upstreams)))
            }
            AccessStep::RateLimits(limits) => Ok(Self::RateLimits(limiters.of(limits))),
            AccessStep::RateLimitService(model) => {
                Ok(Self::RateLimitService(RateLimitService::new(model, upstreams)))
            }
            AccessStep::BasicAuth(own) => Ok(Self::BasicAuth(basic_auth::Step::new(own.as_ref(), users))),
            AccessStep::Shadow(rules, name) => Ok(Self::Shadow(rules.clone(), name.clone())),
        }
    }

    async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        match self {
            Self::Rules(rules) => rules::check(rules, call),
            Self::RequestRules(rules) => request_rules::check(rules, call),
            Self::RouteClients => rules::check_clients(call),
            Self::Shadow(rules, name) => {
                rules::note(rules, name, call);
                Ok(())
            }
            Self::RateLimits(own) => rate_limits::check_chain(own, call),
            Self::Jwt(tokens) => tokens.check(call).await,
            Self::RouteJwt(tokens) => Box::pin(tokens.check(call)).await,
            Self::BasicAuth(users) => users.check(call).await,
            // Seldom configured, and large futures: every request moves its future about.
            Self::RateLimitService(service) => Box::pin(service.check(call)).await,
            Self::Authorization(server) => Box::pin(server.check(call)).await,
            Self::RouteAuthorization(servers) => Box::pin(servers.check(call)).await,
        }
    }
}

/// Runs the steps in order. Each step may attach attributes to the request.
///
/// # Errors
/// Returns the refusal of the first step that rejects the request.
pub(crate) async fn check(steps: &[Step], call: &mut Call<'_>) -> Result<(), Refusal> {
    for step in steps {
        step.check(call).await?;
    }
    Ok(())
}
