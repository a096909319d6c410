//! Access steps whose requirement depends on the route of a request.

use super::{call::Call, cors};
use crate::http::{error::refusal::Refusal, request::header_spelling, route::router::RouteLookup};
use http::HeaderName;
use quadrille_config::model::{Route, RouteSetting};
use std::{collections::HashMap, hash::Hash, sync::Arc};

/// The requirements of a chain and of its routes, such as tokens. `M` are their settings.
pub(super) struct PerRoute<M, R> {
    own: Option<Arc<R>>,
    of_routes: HashMap<Arc<M>, Arc<R>>,
    /// Headers that the step sets; they are removed from client requests.
    headers: Vec<HeaderName>,
    setting: fn(&Route) -> &RouteSetting<M>,
}

impl<M: Eq + Hash, R> PerRoute<M, R> {
    /// Creates a step. `setting` returns that of a route.
    pub(super) fn new(
        own: Option<Arc<R>>,
        of_routes: HashMap<Arc<M>, Arc<R>>,
        headers: Vec<HeaderName>,
        setting: fn(&Route) -> &RouteSetting<M>,
    ) -> Self {
        Self { own, of_routes, headers, setting }
    }

    /// Removes the headers that the step sets from a client's request.
    pub(super) fn remove_headers(&self, call: &mut Call<'_>) {
        for name in &self.headers {
            let request = call.request_mut();
            header_spelling::remove(&mut request.headers, name);
            request.owned_headers.push(name.clone());
        }
    }

    /// Returns the requirement of the request's route, if there is one.
    pub(super) fn of(&self, call: &mut Call<'_>) -> Option<&Arc<R>> {
        let is_preflight = cors::is_preflight(call.request());
        match call.lookup() {
            None => self.own.as_ref(),
            // The response is a redirect to TLS: a password or token is never requested without TLS.
            Some(RouteLookup::NeedsTls) => None,
            Some(RouteLookup::Route(matched))
                if is_preflight && cors::responds_to_preflights(matched.route()) =>
            {
                None
            }
            Some(RouteLookup::Route(matched)) => match (self.setting)(matched.route()) {
                RouteSetting::OfChain => self.own.as_ref(),
                RouteSetting::Off => None,
                RouteSetting::InPlace(model) => self.of_routes.get(model),
            },
        }
    }

    /// Checks the requirement with `check`, and that of the route to which the headers that it sets may lead.
    ///
    /// # Errors
    /// Returns the response to the client, `alternating` if the routes do not settle.
    pub(super) async fn check(
        &self,
        call: &mut Call<'_>,
        check: impl AsyncFn(&R, &mut Call<'_>) -> Result<(), Refusal>,
        alternating: impl FnOnce() -> Refusal,
    ) -> Result<(), Refusal> {
        self.remove_headers(call);
        let mut allowed_by = None;
        for _ in 0..3 {
            match self.of(call) {
                None => return Ok(()),
                Some(one) if allowed_by.is_some_and(|by| Arc::ptr_eq(by, one)) => return Ok(()),
                Some(one) => {
                    check(one, call).await?;
                    allowed_by = Some(one);
                }
            }
        }
        Err(alternating())
    }
}
