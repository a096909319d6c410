//! Tokens that depend on the route of a request.

use super::{Authentication, KeyFetchers};
use crate::{
    http::{
        error::refusal::Refusal,
        filter::{call::Call, per_route::PerRoute},
    },
    upstream::Upstreams,
};
use bytes::Bytes;
use quadrille_config::{Diagnostic, model::JwtAuthentication};
use std::{collections::HashMap, sync::Arc};

/// The access step: the tokens of a chain and of its routes.
pub(crate) struct OfRoutes(PerRoute<JwtAuthentication, Authentication>);

impl OfRoutes {
    /// Reads the keys of all issuers.
    ///
    /// # Errors
    /// Names a key set that cannot be read.
    #[expect(
        clippy::mutable_key_type,
        reason = "expressions are hashed by their text, not their compiled form"
    )]
    pub(crate) fn new(
        own: Option<&Arc<JwtAuthentication>>,
        of_routes: &[Arc<JwtAuthentication>],
        upstreams: &Upstreams,
        fetchers: &KeyFetchers,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Diagnostic> {
        let mut new = |model: &Arc<JwtAuthentication>| {
            Authentication::new(model, upstreams, fetchers, warnings).map(Arc::new)
        };
        let providers = own.into_iter().chain(of_routes).flat_map(|model| &model.providers);
        let headers = providers.flat_map(|provider| &provider.claim_headers).map(|(name, _)| name.clone());
        let headers = headers.collect();
        let own = own.map(&mut new).transpose()?;
        let mut all = HashMap::new();
        for model in of_routes {
            all.insert(Arc::clone(model), new(model)?);
        }
        Ok(Self(PerRoute::new(own, all, headers, |route| &route.jwt)))
    }

    /// Checks that a request has the tokens that its route needs, and adds their claims to it.
    ///
    /// # Errors
    /// Returns the response to the client.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let alternating = || {
            Refusal::own("the routes of authenticated requests alternate", 403, Bytes::new())
                .counted_as("token")
        };
        self.0.check(call, async |tokens: &Authentication, call| tokens.check(call).await, alternating).await
    }
}
