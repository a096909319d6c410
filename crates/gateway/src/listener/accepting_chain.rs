//! A filter chain from the viewpoint of one of its connections: requests that it may serve, and its removal.

use super::{
    filter_chain::{ActiveListener, ChainConfig, FilterChain, Handler},
    matcher::Addresses,
};
use crate::{
    host_map::lower_case,
    http::{HttpFilterChain, HttpSettings},
};
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::{Notify, watch};

/// A filter chain from the viewpoint of one of its connections.
pub(crate) struct AcceptingChain {
    pub(crate) listener: Arc<ActiveListener>,
    pub(crate) chain: Arc<FilterChain>,
    /// Configuration at the time the connection was accepted.
    pub(crate) config: Arc<ChainConfig>,
    /// ALPN protocols offered by the client, if they were inspected to find the chain.
    pub(crate) protocols: Vec<String>,
    /// Source and destination of the connection.
    pub(crate) addresses: Addresses,
    /// Becomes true when the listener stops serving HTTP/3; set for QUIC only.
    pub(crate) quic_closing: Option<watch::Receiver<bool>>,
}

impl HttpFilterChain for AcceptingChain {
    fn http(&self) -> Option<Arc<HttpSettings>> {
        match &self.chain.config.load().handler {
            Handler::Http(settings) => Some(Arc::clone(settings)),
            Handler::Tcp(_) => None,
        }
    }

    fn may_serve(&self, host: &str, sni: Option<&str>) -> bool {
        if self.chain.config.load().asks_clients_more_than(&self.config) {
            return false;
        }
        let listener = self.listener.config.load();
        let is_only = || matches!(&listener.chains[..], [only] if Arc::ptr_eq(only, &self.chain));
        if host.is_empty() || self.config.tls.is_none() || is_only() {
            return true;
        }
        let host = lower_case(host);
        let own = listener.matcher.find(true, &host, &self.protocols, &self.addresses);
        let own = own.and_then(|own| listener.chains.get(own));
        own.is_none_or(|own| {
            Arc::ptr_eq(own, &self.chain) || {
                let theirs = own.config.load();
                // A chain that a reload removed serves the name of its connections until they have drained.
                let drains = || sni.is_some_and(|sni| sni.eq_ignore_ascii_case(&host)) && self.is_removed();
                theirs.protects_the_same(&self.config)
                    && (theirs.guards_the_same(&self.chain.config.load()) || drains())
            }
        })
    }

    fn asks_for_certificates(&self, host: &str) -> bool {
        if self.chain.config.load().asks_clients_more_than(&self.config) {
            return true;
        }
        let listener = self.listener.config.load();
        let own = listener.matcher.find(true, &lower_case(host), &self.protocols, &self.addresses);
        own.and_then(|own| listener.chains.get(own)).is_some_and(|own| own.config.load().asks_clients())
    }

    fn is_removed(&self) -> bool {
        self.chain.removed.load(Ordering::Acquire)
            || !self.chain.config.load().asks_clients_the_same(&self.config)
            || self
                .quic_closing
                .as_ref()
                .is_some_and(|closing| *closing.borrow() || self.chain.config.load().quic.is_none())
    }

    fn removal(&self) -> &Notify {
        &self.chain.removal
    }

    fn count_response(&self, status: u16) {
        self.chain.counters.requests.add(status);
    }
}
