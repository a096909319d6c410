//! The call that access steps check: a request with its body, its connection, and the route that it matches.

use crate::{
    connection::Connection,
    http::{
        body::client_body::ClientBody,
        request::{Request, request_view::RequestView, user::User},
        route::router::{MatchedRoute, RouteLookup, Router},
    },
    upstream::ConnectionPool,
};
use std::sync::Arc;

/// A request on its way through the access steps.
pub(crate) struct Call<'a> {
    pub(crate) connection: &'a Arc<Connection>,
    pub(crate) pool: &'a Arc<ConnectionPool>,
    pub(crate) body: &'a mut ClientBody,
    pub(crate) router: &'a Arc<Router>,
    request: &'a mut Request,
    /// Result of the route lookup; `None` before the first one, and after the request was changed.
    lookup: Option<Option<RouteLookup>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        connection: &'a Arc<Connection>,
        pool: &'a Arc<ConnectionPool>,
        router: &'a Arc<Router>,
        request: &'a mut Request,
        body: &'a mut ClientBody,
    ) -> Self {
        Self { connection, pool, body, router, request, lookup: None }
    }

    pub(crate) fn request(&self) -> &Request {
        self.request
    }

    /// The request, to change it. Its route is looked up again afterwards.
    pub(crate) fn request_mut(&mut self) -> &mut Request {
        self.lookup = None;
        self.request
    }

    /// The request and its body, to read both at once.
    pub(crate) fn request_and_body(&mut self) -> (&Request, &mut ClientBody) {
        (self.request, self.body)
    }

    /// Attaches the authenticated user; routes do not depend on it.
    pub(crate) fn authenticated(&mut self, user: User) {
        self.request.user = Some(user);
    }

    /// The request as routes and conditions see it.
    pub(crate) fn view(&self) -> RequestView<'_> {
        self.request.view(self.connection.tls)
    }

    /// Looks up the route, unless the result is known already.
    pub(crate) fn lookup(&mut self) -> Option<&RouteLookup> {
        let (router, request, tls) = (self.router, &*self.request, self.connection.tls);
        self.lookup.get_or_insert_with(|| router.find(&request.view(tls))).as_ref()
    }

    /// The route that the request matches, if it does and the host does not require TLS first.
    pub(crate) fn route(&mut self) -> Option<MatchedRoute> {
        match self.lookup()? {
            RouteLookup::Route(matched) => Some(matched.clone()),
            RouteLookup::NeedsTls => None,
        }
    }

    /// Ends the access steps with the result of the lookup.
    pub(crate) fn into_lookup(mut self) -> Option<RouteLookup> {
        self.lookup();
        self.lookup.flatten()
    }
}
