//! Response epilogue: the last changes to the header of every response, in one order.

use super::compression::{self, Encoder};
use crate::http::{
    exchange::Exchange,
    filter::cors,
    request::Request,
    route::header_changes::{self, Variables},
};
use http::{HeaderMap, HeaderValue, header, response::Parts};
use quadrille_config::model::{Compression, HeaderChange, Respond};
use std::{
    cell::RefCell,
    time::{SystemTime, UNIX_EPOCH},
};

/// The epilogue of a local response, of an upstream's response, or of a response that opens a tunnel.
pub(crate) struct Epilogue<'a> {
    pub(crate) request: &'a Request,
    /// Header changes of the route and its weighted upstream; `None` selects the listener's.
    pub(crate) changes: Option<[&'a [HeaderChange]; 2]>,
    /// Name of the upstream; may be empty.
    pub(crate) upstream: &'a str,
}

/// The body of an upstream's response.
pub(crate) struct UpstreamBody<'a> {
    pub(crate) compression: Option<&'a Compression>,
    pub(crate) is_empty: bool,
}

/// Change to the body of an upstream's response.
pub(crate) enum BodyChange {
    None,
    /// An error page replaces it.
    Page(Respond),
    Compress(Encoder),
}

impl Epilogue<'_> {
    /// Finishes the header of a local response, or of one that opens a tunnel.
    pub(crate) fn finish(&self, head: &mut Parts, exchange: &mut Exchange) {
        self.finish_with(head, exchange, |_, _| BodyChange::None);
    }

    /// Finishes the header of an upstream's response. Returns the change to its body.
    pub(crate) fn finish_upstream(
        &self,
        head: &mut Parts,
        exchange: &mut Exchange,
        body: &UpstreamBody<'_>,
    ) -> BodyChange {
        let page = exchange.pages.as_deref().and_then(|pages| pages.in_place(&self.request.headers, head));
        self.finish_with(head, exchange, |head, exchange| {
            if let Some(page) = page {
                return BodyChange::Page(page);
            }
            let client = compression::Client { request: self.request, connection: &exchange.http.connection };
            let encoder = body
                .compression
                .and_then(|compression| compression::begin(compression, &client, head, body.is_empty));
            encoder.map_or(BodyChange::None, BodyChange::Compress)
        })
    }

    fn finish_with(
        &self,
        head: &mut Parts,
        exchange: &mut Exchange,
        change_body: impl FnOnce(&mut Parts, &Exchange) -> BodyChange,
    ) -> BodyChange {
        exchange.status = head.status.as_u16();
        self.change(&mut head.headers, exchange);
        for (name, value) in &self.request.response_headers {
            head.headers.append(name, value.clone());
        }
        if let Some(cors) = exchange.fields.cors.take() {
            cors::add(&mut head.headers, *cors);
        }
        let change = change_body(head, exchange);
        if let Some(cookie) = exchange.fields.session_cookie.take() {
            head.headers.append(header::SET_COOKIE, cookie);
        }
        exchange.fields.identify(&mut head.headers);
        // hyper adds the date to HTTP/1.
        if self.request.is_multiplexed() && !head.headers.contains_key(header::DATE) {
            head.headers.insert(header::DATE, date());
        }
        if !self.request.is_multiplexed() && exchange.http.chain.is_removed() {
            head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        change
    }

    /// Applies the header changes of the configuration.
    fn change(&self, headers: &mut HeaderMap, exchange: &Exchange) {
        let default = || [exchange.fields.defaults.as_deref().unwrap_or_default(), &[]];
        let changes = self.changes.unwrap_or_else(default);
        if changes.iter().any(|changes| !changes.is_empty()) {
            let values = Variables::new(self.request, &exchange.http.connection, self.upstream);
            changes.iter().for_each(|changes| header_changes::apply(headers, true, changes, &values));
        }
    }
}

/// The current time as a `Date` header (RFC 9110 section 6.6.1).
fn date() -> HeaderValue {
    thread_local! {
        /// The value of the current second.
        static DATE: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(at, value)| {
        if *at != second
            && let Ok(formatted) = HeaderValue::try_from(httpdate::fmt_http_date(now))
        {
            (*at, *value) = (second, formatted);
        }
        value.clone()
    })
}
