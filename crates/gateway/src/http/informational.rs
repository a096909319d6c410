//! Informational responses (1xx) between a server and a client.

use super::hop_by_hop;
use http::{HeaderMap, Response, StatusCode};
use std::sync::{Arc, Mutex, PoisonError};

/// Informational responses (1xx) that a server has sent and that are still to be passed on.
#[derive(Clone, Default)]
pub(super) struct Informational(Arc<Mutex<Vec<Response<()>>>>);

impl Informational {
    pub(super) fn push(&self, status: StatusCode, headers: &HeaderMap) {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.clone();
        hop_by_hop::remove(response.headers_mut());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(response);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(super) fn take(&self) -> Vec<Response<()>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
