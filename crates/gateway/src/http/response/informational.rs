//! Informational responses (1xx) from upstreams to clients.

use crate::http::request::hop_by_hop;
use http::{HeaderMap, Response, StatusCode};
use std::sync::{Arc, Mutex, PoisonError};

/// Informational responses (1xx) that were received from an upstream and are still to be passed on.
#[derive(Clone, Default)]
pub(crate) struct Informational(Arc<Mutex<Vec<Response<()>>>>);

impl Informational {
    pub(crate) fn push(&self, status: StatusCode, headers: &HeaderMap) {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.clone();
        hop_by_hop::remove(response.headers_mut());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(response);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn take(&self) -> Vec<Response<()>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
