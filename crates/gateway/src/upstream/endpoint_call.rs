//! One request to an endpoint: a connection from the pool, the request, and the rules for connections that end.

use super::{ConnectionPool, ExchangeError, Lease, Limits, RequestBody, ResponseBody, Server, Upstream};
use crate::connection::Connection;
use http::{HeaderMap, Request, Response, StatusCode};
use std::{io, sync::Arc};

/// Maximum number of further connections for a request whose connections the endpoint ended before it.
const MOST_GOAWAYS: usize = 16;

/// An endpoint of an upstream, and the client connection on whose behalf it is called.
pub(crate) struct EndpointCall<'a> {
    pub(crate) upstream: &'a Arc<Upstream>,
    pub(crate) endpoint: &'a Server,
    pub(crate) connection: &'a Connection,
    pub(crate) pool: &'a Arc<ConnectionPool>,
    /// Whether the request gets a connection of its own, which does not return to the pool.
    pub(crate) separate: bool,
}

/// Reason why there is no response.
pub(crate) enum CallFailure<E> {
    Connect(io::Error),
    /// The request could not be built.
    Build(E),
    /// `reused`: the connection had carried a request before.
    Exchange {
        error: ExchangeError,
        reused: bool,
    },
}

impl EndpointCall<'_> {
    /// Sends a request, which `build` makes for HTTP/2 (`true`) or HTTP/1.1, and waits for the header of its response.
    /// If the endpoint closed an idle connection before anything was sent, a new connection is opened, and `build` is called
    /// again. So it is if the endpoint sent GOAWAY before the request's stream, and `begin_again` returns true.
    ///
    /// # Errors
    /// Returns the reason for a missing response.
    pub(crate) async fn send<E>(
        &self,
        limits: Limits,
        mut build: impl FnMut(bool) -> Result<Request<RequestBody>, E>,
        begin_again: impl Fn() -> bool,
        informational: impl Fn(StatusCode, &HeaderMap),
    ) -> Result<Response<ResponseBody>, CallFailure<E>> {
        let (mut fresh, mut goaways) = (false, 0);
        loop {
            let lease = self.lease(limits, fresh).await.map_err(CallFailure::Connect)?;
            let reused = lease.reused;
            let request = build(lease.is_http2()).map_err(CallFailure::Build)?;
            match lease.send(request, limits, &informational).await {
                // This does not indicate a failure of the endpoint.
                Err(ExchangeError::NotSent) if reused && !fresh => fresh = true,
                // On a connection of the pool, other requests may again go first.
                Err(ExchangeError::BeyondGoaway) if goaways < MOST_GOAWAYS && begin_again() => {
                    (fresh, goaways) = (goaways > 0, goaways + 1);
                }
                sent => return sent.map_err(|error| CallFailure::Exchange { error, reused }),
            }
        }
    }

    /// Leases a connection within the limits.
    async fn lease(&self, limits: Limits, fresh: bool) -> io::Result<Lease> {
        match [limits.header, limits.whole].into_iter().flatten().min() {
            None => self.connect(fresh).await,
            Some(due) => {
                let connecting = Box::pin(tokio::time::timeout_at(due.into(), self.connect(fresh)));
                connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    async fn connect(&self, fresh: bool) -> io::Result<Lease> {
        match self.separate {
            true => Box::pin(self.pool.separate(self.upstream, self.endpoint, self.connection)).await,
            false => self.pool.lease(self.upstream, self.endpoint, self.connection, fresh).await,
        }
    }
}
