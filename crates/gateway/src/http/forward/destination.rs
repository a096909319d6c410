//! The destination of a request: the route that it matched, and the upstream that was picked.

use crate::{
    connection::Connection,
    http::{
        request::{Request, trailers::Trailers},
        route::{
            header_changes::{self, Variables},
            router::MatchedRoute,
        },
    },
    upstream::Upstream,
};
use http::HeaderMap;
use quadrille_config::model::{Forward, HeaderChange, Weighted};
use std::sync::Arc;

/// The destination of a request.
pub(crate) struct Destination<'a> {
    pub(crate) request: &'a Request,
    pub(crate) matched: &'a MatchedRoute,
    pub(crate) to: &'a Forward,
    /// Weighted upstream of the route that was picked.
    pub(crate) weighted: Option<&'a Weighted>,
    pub(crate) upstream: Arc<Upstream>,
}

impl Destination<'_> {
    /// Applies the route's header changes to the upstream request.
    pub(crate) fn change_request(&self, headers: &mut HeaderMap, connection: &Connection) {
        let weighted = self.weighted.map(|weighted| &weighted.request_headers[..]).unwrap_or_default();
        let own = &self.matched.route().request_headers[..];
        if !weighted.is_empty() || !own.is_empty() {
            let values = self.variables(connection);
            header_changes::apply(headers, false, weighted, &values);
            header_changes::apply(headers, false, own, &values);
        }
    }

    /// Returns the header changes of the weighted upstream and of the route to the client's response.
    pub(crate) fn response_changes(&self) -> [&[HeaderChange]; 2] {
        let weighted = self.weighted.map(|weighted| &weighted.response_headers[..]).unwrap_or_default();
        [weighted, &self.matched.route().response_headers]
    }

    /// Returns the trailers of the request that the upstream receives over this HTTP version. HTTP/1.1 servers often
    /// merge trailers into the header section.
    pub(crate) fn request_trailers(&self, http2: bool) -> Trailers {
        if !http2 && !self.to.request_trailers {
            return Trailers::none();
        }
        let owned = self.request.owned_headers.iter().cloned();
        Trailers::except(self.matched.changed_headers().request.as_ref(), owned)
    }

    /// Returns the trailers of the response that the client receives.
    pub(crate) fn response_trailers(&self) -> Trailers {
        let owned = self.request.response_headers.keys().cloned();
        Trailers::except(self.matched.changed_headers().response.as_ref(), owned)
    }

    fn variables<'a>(&'a self, connection: &'a Connection) -> Variables<'a> {
        Variables::new(self.request, connection, self.upstream.name())
    }
}
