//! Another process in the place of this one.

use super::{
    Server,
    successor::{SharedListener, Starting},
};
use crate::{
    admin::AdminEndpoint,
    handover::{Sockets, Successor},
};
use quadrille_acme::KeyServers;
use quadrille_config::model::Gateway;
use sd_notify::NotifyState;
use std::{io, sync::Arc};

impl Server {
    /// All sockets listen: tells whoever started this process.
    pub(super) fn is_ready(&mut self) {
        for address in self.inherited.ready() {
            tracing::warn!(%address, "systemd has opened a socket at an address that no listener has; it is closed");
        }
    }

    /// Starts the program anew, with the sockets of this process. Nothing changes until it serves.
    pub(super) fn start_successor(&mut self) {
        if self.successor.is_some() || self.leaving.is_some() {
            return tracing::warn!(
                "no other process is started: one is about to take over, or this one leaves"
            );
        }
        if self.updates.is_some() {
            return tracing::warn!(
                "no other process is started: its listeners would have to come from the control plane first"
            );
        }
        match self.share().and_then(|(sockets, shared)| Ok((Successor::start(&sockets)?, shared))) {
            Ok((successor, shared)) => {
                tracing::info!("a new process is started, to take over");
                // Certificates are ordered by one process at a time.
                self.certificates.follow(&Gateway::default(), &KeyServers::default(), None);
                self.successor = Some(Starting::new(successor, shared));
            }
            Err(error) => tracing::error!(%error, "no new process could be started; this one goes on"),
        }
    }

    fn share(&self) -> io::Result<(Sockets, Vec<SharedListener>)> {
        let mut sockets = Sockets::default();
        let mut shared = Vec::new();
        for listener in self.listening.iter().filter(|listener| listener.is_bound()) {
            let (listening, ends) = listener.share()?;
            sockets.listeners.push(listening);
            shared.push((Arc::clone(listener), ends));
        }
        sockets.admin = self.admin_endpoint.as_ref().map(AdminEndpoint::share).transpose()?;
        Ok((sockets, shared))
    }

    /// Leaves the sockets to the process that was started, if it serves; false if it does not.
    pub(super) fn is_replaced(&mut self, outcome: io::Result<u32>) -> bool {
        let Some(Starting { shared, .. }) = self.successor.take() else { return false };
        let pid = match outcome {
            Ok(pid) => pid,
            Err(error) => {
                tracing::error!(%error, "the new process does not serve; this one goes on");
                let resumption = self.resumption.load();
                let (model, fleet) = (self.configuration.load(), resumption.certificates.as_ref());
                self.certificates.follow(&model, &self.cache.key_servers(), fleet);
                return false;
            }
        };
        tracing::info!(pid, "a new process has taken over");
        if let Err(error) = sd_notify::notify(&[NotifyState::MainPid(pid)]) {
            tracing::warn!(%error, "systemd could not be told which process serves");
        }
        for (listener, ends) in shared {
            listener.hand_over(ends);
        }
        if let Some(endpoint) = self.admin_endpoint.take() {
            endpoint.close();
        }
        true
    }
}
