//! Local responses: responses that the gateway generates itself.

use super::{
    body::ResponseBody,
    epilogue::Epilogue,
    local_reply::{self, Known, Reply},
};
use crate::http::{
    error::{error_page, grpc_error, refusal::Refusal},
    exchange::Exchange,
    request::Request,
    route::{header_changes::Variables, rewrite, router::MatchedRoute},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use quadrille_config::model::{PathMatch, Redirect, Respond};
use std::sync::Arc;

/// A local response under construction, with its request.
pub(crate) struct Answer<'a> {
    pub(crate) request: &'a Request,
    /// Route whose header changes apply.
    pub(crate) route: Option<&'a MatchedRoute>,
    pub(crate) exchange: Box<Exchange>,
}

impl Answer<'_> {
    /// An error response with a short text.
    pub(crate) fn text(self, status: u16, words: &'static str) -> Response<ResponseBody> {
        let headers = &self.request.headers;
        if let Some(headers) = grpc_error::answer(headers, status, words, self.exchange.began.elapsed()) {
            return self.finish_call(status, headers);
        }
        if self.exchange.replies.is_some() {
            return self.respond(&error_page::plain(status, words));
        }
        let own = self.exchange.pages.as_ref().and_then(|pages| pages.of_gateway(status, headers));
        let error = own.unwrap_or_else(|| error_page::of(status, words, headers));
        self.error(&error)
    }

    /// Ends a failed gRPC call: the HTTP status on the wire is 200, and the failure is counted under `status`.
    fn finish_call(self, status: u16, headers: HeaderMap) -> Response<ResponseBody> {
        let mut response = self.finish(status, headers, Bytes::new());
        *response.status_mut() = StatusCode::OK;
        response
    }

    /// An error page in one of the error formats.
    fn error(self, page: &Respond) -> Response<ResponseBody> {
        self.respond_with(page, HeaderMap::from_iter([error_page::VARY]))
    }

    /// An error response whose text is the name of its status.
    pub(crate) fn status(self, status: u16) -> Response<ResponseBody> {
        self.text(status, "")
    }

    /// The response that the configuration defines.
    pub(crate) fn respond(self, respond: &Respond) -> Response<ResponseBody> {
        self.respond_with(respond, HeaderMap::with_capacity(4))
    }

    fn respond_with(self, respond: &Respond, mut headers: HeaderMap) -> Response<ResponseBody> {
        if !respond.body.is_empty()
            && let Ok(content_type) = HeaderValue::from_str(&respond.content_type)
        {
            headers.insert(header::CONTENT_TYPE, content_type);
        }
        if !matches!(respond.status, 204 | 304) {
            headers.insert(header::CONTENT_LENGTH, respond.body.len().into());
        }
        self.send(Reply { status: respond.status, headers, body: respond.body.clone() })
    }

    /// Sends a local response, rewritten by the configuration's rules if there are any.
    fn send(self, mut reply: Reply) -> Response<ResponseBody> {
        if let Some(replies) = &self.exchange.replies {
            let known = Known {
                request: &self.request.view(self.exchange.http.connection.tls),
                values: &self.values(),
            };
            local_reply::rewrite(&mut reply, replies, &known);
        }
        self.finish(reply.status, reply.headers, reply.body)
    }

    /// Responds to a request that was denied.
    pub(crate) fn refuse(mut self, mut refusal: Refusal) -> Response<ResponseBody> {
        self.exchange.error = refusal.error;
        let headers = &self.request.headers;
        let call = grpc_error::answer(headers, refusal.status, "", self.exchange.began.elapsed());
        if let Some(mut call) = call {
            let words: &[u8] = if refusal.is_own { b"" } else { &refusal.body };
            grpc_error::explain(&mut call, refusal.grpc_status, words);
            refusal.headers.extend(call);
            return self.finish_call(refusal.status, refusal.headers);
        }
        let own = self.exchange.pages.as_ref().and_then(|pages| pages.of_gateway(refusal.status, headers));
        if let Some(page) = own.filter(|_| refusal.is_own) {
            refusal.headers.remove(header::CONTENT_TYPE);
            let mut response = self.error(&page);
            response.headers_mut().extend(refusal.headers);
            return response;
        }
        if self.exchange.replies.is_some() {
            let length = (header::CONTENT_LENGTH, refusal.body.len().into());
            refusal.headers.extend([length]);
            return self.send(Reply { status: refusal.status, headers: refusal.headers, body: refusal.body });
        }
        let respond = Respond { status: refusal.status, body: refusal.body, ..Respond::text("") };
        let mut response = if refusal.is_own { self.error(&respond) } else { self.respond(&respond) };
        // The refusal's own body headers take precedence over the defaults.
        let headers = response.headers_mut();
        refusal.headers.keys().for_each(|name| _ = headers.remove(name));
        for (name, value) in &refusal.headers {
            headers.append(name, value.clone());
        }
        response
    }

    /// Responds to a preflight request (Fetch standard, section 3.3.6).
    pub(crate) fn preflight(self, mut headers: HeaderMap) -> Response<ResponseBody> {
        headers.insert(header::CONTENT_LENGTH, 0.into());
        self.finish(200, headers, Bytes::new())
    }

    /// Responds with a redirect.
    pub(crate) fn redirect(self, redirect: &Redirect, matched: &PathMatch) -> Response<ResponseBody> {
        let tls = self.exchange.http.connection.tls;
        let location = rewrite::location(redirect, matched, &self.request.view(tls));
        let mut headers = HeaderMap::with_capacity(4);
        if let Ok(location) = HeaderValue::try_from(location) {
            headers.insert(header::LOCATION, location);
        }
        headers.insert(header::CONTENT_LENGTH, 0.into());
        self.send(Reply { status: redirect.status, headers, body: Bytes::new() })
    }

    fn values(&self) -> Variables<'_> {
        let upstream = self.exchange.upstream.as_ref().map_or("", |(upstream, _)| upstream.name());
        Variables::new(self.request, &self.exchange.http.connection, upstream)
    }

    fn finish(mut self, status: u16, mut headers: HeaderMap, body: Bytes) -> Response<ResponseBody> {
        if status == 204 {
            headers.remove(header::CONTENT_LENGTH);
        }
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        head.headers = headers;
        let upstream = self.exchange.upstream.as_ref().map(|(upstream, _)| Arc::clone(upstream));
        let epilogue = Epilogue {
            request: self.request,
            changes: self.route.map(|matched| [&matched.route().response_headers[..], &[]]),
            upstream: upstream.as_ref().map_or("", |upstream| upstream.name()),
        };
        epilogue.finish(&mut head, &mut self.exchange);
        self.exchange.status = status;
        let bodiless = self.request.method == Method::HEAD || matches!(status, 204 | 304);
        let body = if bodiless { Bytes::new() } else { body };
        Response::from_parts(head, ResponseBody::whole(body, self.exchange))
    }
}
