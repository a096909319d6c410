//! When a connection is told to end: its filter chain is no longer served.

use super::HttpConnection;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::futures::Notified;

/// Watches a connection's filter chain at the price of reading a flag.
pub(super) struct Ending<'a> {
    http: &'a HttpConnection,
    notified: Pin<Box<Notified<'a>>>,
    registered: bool,
}

impl<'a> Ending<'a> {
    pub(super) fn new(http: &'a HttpConnection) -> Self {
        Self { http, notified: Box::pin(http.chain.removal().notified()), registered: false }
    }

    /// Ready once the chain is removed. To be called by one task only, which is woken by then.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.registered {
            self.registered = true;
            // A removal between the two is seen by the flag.
            let _ = self.notified.as_mut().poll(context);
        }
        if self.http.chain.is_removed() { Poll::Ready(()) } else { Poll::Pending }
    }
}
