//! Authorization servers that depend on the route of a request.

use super::{Authorization, denied};
use crate::{
    http::{
        error::refusal::Refusal,
        filter::{call::Call, per_route::PerRoute},
    },
    upstream::Upstreams,
};
use bytes::Bytes;
use quadrille_config::model::Authorization as Model;
use std::sync::Arc;

/// The access step: the servers of a chain and of its routes.
pub(crate) struct OfRoutes(PerRoute<Model, Authorization>);

impl OfRoutes {
    #[expect(
        clippy::mutable_key_type,
        reason = "expressions are hashed by their text, not their compiled form"
    )]
    pub(crate) fn new(own: Option<&Arc<Model>>, of_routes: &[Arc<Model>], upstreams: &Upstreams) -> Self {
        let new = |model: &Arc<Model>| Arc::new(Authorization::new(model, upstreams));
        let headers = own.into_iter().chain(of_routes).flat_map(|model| model.copied()).cloned().collect();
        let of_routes = of_routes.iter().map(|model| (Arc::clone(model), new(model))).collect();
        Self(PerRoute::new(own.map(new), of_routes, headers, |route| &route.authorization))
    }

    /// Checks that the server of the request's route allows it.
    ///
    /// # Errors
    /// Returns the response to the client.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let alternating = || denied("the routes of authorized requests alternate", 403, Bytes::new());
        self.0.check(call, async |server: &Authorization, call| server.check(call).await, alternating).await
    }
}
