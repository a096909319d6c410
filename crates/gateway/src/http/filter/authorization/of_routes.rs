//! Authorization servers that depend on the route of a request.

use super::{Authorization, denied};
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
use quadrille_config::model::{Authorization as Model, RouteAuthorization};
use std::{collections::HashMap, sync::Arc};

/// The access step: the servers of a chain and of its routes.
pub(crate) struct OfRoutes {
    own: Option<Arc<Authorization>>,
    of_routes: HashMap<Arc<Model>, Arc<Authorization>>,
    /// Headers that servers set; they are removed from client requests.
    headers: Vec<HeaderName>,
}

impl OfRoutes {
    #[expect(
        clippy::mutable_key_type,
        reason = "expressions are hashed by their text, not their compiled form"
    )]
    pub(crate) fn new(own: Option<&Arc<Model>>, of_routes: &[Arc<Model>], upstreams: &Upstreams) -> Self {
        let new = |model: &Arc<Model>| Arc::new(Authorization::new(model, upstreams));
        let headers = own.into_iter().chain(of_routes).flat_map(|model| model.copied()).cloned().collect();
        let of_routes = of_routes.iter().map(|model| (Arc::clone(model), new(model))).collect();
        Self { own: own.map(new), of_routes, headers }
    }

    /// Checks that the server of the request's route allows it.
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
        // The headers that a server sets may lead to another route, whose server must allow the request, too.
        for _ in 0..3 {
            match self.server(call) {
                None => return Ok(()),
                Some(server) if allowed_by.is_some_and(|by| Arc::ptr_eq(by, server)) => return Ok(()),
                Some(server) => {
                    server.check(call).await?;
                    allowed_by = Some(server);
                }
            }
        }
        Err(denied("the routes of authorized requests alternate", 403, Bytes::new()))
    }

    fn server(&self, call: &mut Call<'_>) -> Option<&Arc<Authorization>> {
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
            Some(RouteLookup::Route(matched)) => match &matched.route().authorization {
                RouteAuthorization::OfChain => self.own.as_ref(),
                RouteAuthorization::Off => None,
                RouteAuthorization::InPlace(model) => self.of_routes.get(model),
            },
        }
    }
}
