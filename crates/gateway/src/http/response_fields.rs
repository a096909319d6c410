//! Header fields of a response that are decided before the response exists.

use super::request::{envoy_headers::ATTEMPT_COUNT, request_id::REQUEST_ID};
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::HeaderChange;
use std::sync::Arc;

/// Fields that the response epilogue adds to a response.
#[derive(Default)]
pub(super) struct ResponseFields {
    /// Changes to a response that no route applies to: the listener's.
    pub(super) defaults: Option<Arc<[HeaderChange]>>,
    /// `Alt-Svc`: advertises HTTP/3.
    pub(super) alt_svc: Option<HeaderValue>,
    /// The request's id, if the client receives it.
    pub(super) request_id: Option<HeaderValue>,
    /// Number of attempts, if the client receives it.
    pub(super) attempts: Option<usize>,
    /// CORS headers of the route.
    pub(super) cors: Option<Box<HeaderMap>>,
    /// `Set-Cookie` of session affinity.
    pub(super) session_cookie: Option<HeaderValue>,
}

impl ResponseFields {
    /// Moves the fields that identify the gateway and the request into a header, in place of the upstream's.
    pub(super) fn identify(&mut self, headers: &mut HeaderMap) {
        if let Some(alt_svc) = self.alt_svc.take() {
            headers.insert(header::ALT_SVC, alt_svc);
        }
        if let Some(id) = self.request_id.take() {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(attempts) = self.attempts.take() {
            headers.insert(ATTEMPT_COUNT, attempts.into());
        }
    }
}
