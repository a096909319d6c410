//! Tokens that depend on the route of a request.

use super::{Authentication, KeyFetchers};
use crate::{
    http::{
        error::refusal::Refusal,
        filter::{call::Call, cors},
        request::header_spelling,
        route::router::RouteLookup,
    },
    upstream::Upstreams,
};
use bytes::Bytes;
use http::HeaderName;
use quadrille_config::{
    Diagnostic,
    model::{JwtAuthentication, RouteJwt},
};
use std::{collections::HashMap, sync::Arc};

/// The access step: the tokens of a chain and of its routes.
pub(crate) struct OfRoutes {
    own: Option<Arc<Authentication>>,
    of_routes: HashMap<Arc<JwtAuthentication>, Arc<Authentication>>,
    /// Headers that carry claims; they are removed from client requests.
    headers: Vec<HeaderName>,
}

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
        Ok(Self { own, of_routes: all, headers })
    }

    /// Checks that a request has the tokens that its route needs, and adds their claims to it.
    ///
    /// # Errors
    /// Returns the response to the client.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        for name in &self.headers {
            let request = call.request_mut();
            header_spelling::remove(&mut request.headers, name);
            request.owned_headers.push(name.clone());
        }
        let mut allowed_by = None;
        // The headers of claims may lead to another route, whose tokens the request needs, too.
        for _ in 0..3 {
            match self.tokens(call) {
                None => return Ok(()),
                Some(tokens) if allowed_by.is_some_and(|by| Arc::ptr_eq(by, tokens)) => return Ok(()),
                Some(tokens) => {
                    tokens.check(call).await?;
                    allowed_by = Some(tokens);
                }
            }
        }
        Err(Refusal::own("the routes of authenticated requests alternate", 403, Bytes::new())
            .counted_as("token"))
    }

    fn tokens(&self, call: &mut Call<'_>) -> Option<&Arc<Authentication>> {
        let is_preflight = cors::is_preflight(call.request());
        match call.lookup() {
            None => self.own.as_ref(),
            // The response is a redirect to TLS.
            Some(RouteLookup::NeedsTls) => None,
            Some(RouteLookup::Route(matched))
                if is_preflight && cors::responds_to_preflights(matched.route()) =>
            {
                None
            }
            Some(RouteLookup::Route(matched)) => match &matched.route().jwt {
                RouteJwt::OfChain => self.own.as_ref(),
                RouteJwt::Off => None,
                RouteJwt::InPlace(model) => self.of_routes.get(model),
            },
        }
    }
}
