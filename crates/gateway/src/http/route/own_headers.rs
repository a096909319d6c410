//! Request headers that get the gateway's own value before any condition reads them.

use super::header_changes::{self, Variables};
use crate::{
    connection::Connection,
    http::request::{Request, forwarded_headers, header_spelling},
};
use http::HeaderName;
use quadrille_config::model::{AccessStep, HeaderChange, Http};

/// Request headers that conditions read, and that only the gateway sets.
#[derive(Default)]
pub(crate) struct OwnHeaders {
    /// Headers with a `-` or `_`, which conditions read in this spelling only.
    spelled: Vec<HeaderName>,
    /// Whether a condition reads a header about the client.
    forwarded: bool,
    /// Headers that carry a user name, a claim or what an authorization server says, which no request has before.
    users: Vec<HeaderName>,
    changes: Vec<HeaderChange>,
}

impl OwnHeaders {
    /// Selects the headers that the conditions of a chain read. In Envoy, every condition sees the headers about the
    /// client as upstreams receive them.
    pub(crate) fn of(http: &Http) -> Self {
        let read = &http.own_headers.read;
        let is_ambiguous = |name: &&HeaderName| name.as_str().contains(['-', '_']);
        let users = http.basic_auths().filter_map(|users| users.user_header.as_ref());
        let servers = http.access.iter().flat_map(AccessStep::route_authorizations);
        let users = users.chain(servers.flat_map(|server| server.copied()));
        let steps = http.access.iter().filter(|step| matches!(step, AccessStep::RouteJwt { .. }));
        let claims = steps.flat_map(AccessStep::token_issuers).flat_map(|issuer| &issuer.claim_headers);
        let users = users.chain(claims.map(|(name, _)| name));
        Self {
            spelled: read.iter().filter(is_ambiguous).cloned().collect(),
            forwarded: http.envoy_headers.is_some() || read.iter().any(forwarded_headers::is_about_client),
            users: users.filter(|name| read.contains(name)).cloned().collect(),
            changes: http.own_headers.changes.clone(),
        }
    }

    /// Replaces the client's values, and removes the spellings that conditions do not read.
    pub(crate) fn set(&self, request: &mut Request, connection: &Connection) {
        if !self.spelled.is_empty() {
            header_spelling::keep_only(&mut request.headers, &self.spelled);
        }
        if self.forwarded {
            forwarded_headers::set_early(request, connection);
        }
        self.users.iter().for_each(|name| header_spelling::remove(&mut request.headers, name));
        if !self.changes.is_empty() {
            let mut headers = request.headers.clone();
            let values = Variables::new(request, connection, "");
            header_changes::apply(&mut headers, false, &self.changes, &values);
            request.headers = headers;
        }
    }
}
