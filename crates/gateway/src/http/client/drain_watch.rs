//! Shutdown of a connection when its filter chain is removed.

use crate::http::HttpConnection;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::futures::Notified;

/// Watches a connection's filter chain at the cost of reading a flag.
pub(crate) struct Ending<'a> {
    http: &'a HttpConnection,
    notified: Pin<Box<Notified<'a>>>,
    registered: bool,
}

impl<'a> Ending<'a> {
    pub(crate) fn new(http: &'a HttpConnection) -> Self {
        Self { http, notified: Box::pin(http.chain.removal().notified()), registered: false }
    }

    /// Ready once the chain is removed. Only one task may poll it: that task is woken.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.registered {
            self.registered = true;
            // The flag catches a removal between the two.
            let _ = self.notified.as_mut().poll(context);
        }
        if self.http.chain.is_removed() { Poll::Ready(()) } else { Poll::Pending }
    }
}
