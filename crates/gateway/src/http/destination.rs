//! Where a request goes: the route that it matched, and the upstream that was picked.

use super::{
    header_changes::{self, Variables},
    request::Request,
    router::MatchedRoute,
};
use crate::{connection::Connection, upstream::Upstream};
use http::HeaderMap;
use quadrille_config::model::{Forward, Weighted};
use std::sync::Arc;

/// Where a request goes.
pub(super) struct Destination<'a> {
    pub(super) request: &'a Request,
    pub(super) matched: &'a MatchedRoute,
    pub(super) to: &'a Forward,
    /// Which of the route's weighted upstreams it is.
    pub(super) weighted: Option<&'a Weighted>,
    pub(super) upstream: Arc<Upstream>,
}

impl Destination<'_> {
    /// Makes the route's changes to the headers of the request for the server.
    pub(super) fn change_request(&self, headers: &mut HeaderMap, connection: &Connection) {
        let weighted = self.weighted.map(|weighted| &weighted.request_headers[..]).unwrap_or_default();
        let own = &self.matched.route().request_headers[..];
        if !weighted.is_empty() || !own.is_empty() {
            let values = self.variables(connection);
            header_changes::apply(headers, false, weighted, &values);
            header_changes::apply(headers, false, own, &values);
        }
    }

    /// Makes the route's changes to the headers of the response for the client.
    pub(super) fn change_response(&self, headers: &mut HeaderMap, connection: &Connection) {
        let weighted = self.weighted.map(|weighted| &weighted.response_headers[..]).unwrap_or_default();
        let own = &self.matched.route().response_headers[..];
        if !weighted.is_empty() || !own.is_empty() {
            let values = self.variables(connection);
            header_changes::apply(headers, true, weighted, &values);
            header_changes::apply(headers, true, own, &values);
        }
    }

    fn variables<'a>(&'a self, connection: &'a Connection) -> Variables<'a> {
        Variables::new(self.request, connection, self.upstream.name())
    }
}
