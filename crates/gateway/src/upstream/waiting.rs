//! Requests that wait, in order of arrival, for an endpoint below its maximum number of active requests.

use super::{
    address::ServerAddress,
    balance::{balancer::NoServer, server::Server},
    cluster::Upstream,
    limits::Overloaded,
};
use std::{net::SocketAddr, time::Duration};
use tokio::time::timeout;

/// Time after which the first request looks for an endpoint again, because one may have become healthy.
const AGAIN: Duration = Duration::from_secs(1);

/// Reason why a request that waited has no endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitFailure {
    /// No endpoint is healthy.
    NoServer,
    /// Too many requests wait, or this one has waited too long.
    Overloaded,
}

impl From<Overloaded> for WaitFailure {
    fn from(_: Overloaded) -> Self {
        Self::Overloaded
    }
}

impl Upstream {
    /// Waits until an endpoint has room for a request of this client, and picks it as [`Upstream::pick`] does.
    ///
    /// # Errors
    /// Returns the reason if the request gets no endpoint within the upstream's limits.
    pub(crate) async fn wait_for_endpoint(
        &self,
        client: SocketAddr,
        point: Option<u32>,
        tried: &[ServerAddress],
    ) -> Result<Server, WaitFailure> {
        let place = self.breaker.pending_place().inspect_err(|_| self.count_overflow())?;
        let waiting = self.line.join();
        let picked = async {
            let _head = self.line.head().await;
            loop {
                match self.balancer.pick(client, point, tried) {
                    Ok(server) => return Ok(server),
                    Err(NoServer::Unhealthy) => return Err(WaitFailure::NoServer),
                    // Only the first request waits for this, and an end before it waits is remembered.
                    Err(NoServer::Full) => _ = timeout(AGAIN, self.balancer.freed()).await,
                }
            }
        };
        let limit = self.model.limits.pending_timeout.unwrap_or(self.model.timeouts.read);
        let picked = timeout(limit, picked).await.unwrap_or_else(|_| {
            self.count_overflow();
            Err(WaitFailure::Overloaded)
        });
        drop((waiting, place));
        picked
    }
}
