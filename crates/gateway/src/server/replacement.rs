//! Replacement of this process by a successor.

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
use rustix::process::{Pid, Signal, kill_process};
use sd_notify::NotifyState;
use std::{io, sync::Arc};

impl Server {
    /// Notifies the predecessor and systemd that all sockets listen.
    pub(super) fn is_ready(&mut self) {
        for address in self.inherited.ready() {
            tracing::warn!(%address, "systemd opened a socket at an address without a listener; closing it");
        }
        self.admin_endpoint.iter_mut().for_each(AdminEndpoint::own);
    }

    /// Starts the program again, with the sockets of this process. This process is unchanged until the new one is
    /// ready.
    pub(super) fn start_successor(&mut self) {
        if self.successor.is_some() || self.leaving.is_some() {
            return tracing::warn!(
                "no new process is started: one is already starting, or this one is shutting down"
            );
        }
        if self.updates.is_some() {
            return tracing::warn!(
                "no new process is started: it would first have to receive listeners from the control plane"
            );
        }
        match self.share().and_then(|(sockets, shared)| Ok((Successor::start(&sockets)?, shared))) {
            Ok((successor, shared)) => {
                tracing::info!("starting a new process to take over");
                // Only one process at a time orders certificates.
                self.certificates.follow(&Gateway::default(), &KeyServers::default(), None);
                self.successor = Some(Starting::new(successor, shared));
            }
            Err(error) => tracing::error!(%error, "cannot start a new process; this one continues"),
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
        self.admin_endpoint.as_ref().map_or(Ok(()), |endpoint| endpoint.share(&mut sockets))?;
        Ok((sockets, shared))
    }

    /// Leaves the sockets to the started process and returns true, if that is ready.
    pub(super) async fn is_replaced(&mut self, outcome: io::Result<u32>) -> bool {
        let Some(Starting { shared, reload, .. }) = self.successor.take() else { return false };
        let pid = match outcome {
            Ok(pid) => pid,
            Err(error) => {
                tracing::error!(%error, "the new process is not ready; this one continues");
                let resumption = self.resumption.load();
                let (model, fleet) = (self.configuration.load(), resumption.certificates.as_ref());
                self.certificates.follow(&model, &self.cache.key_servers(), fleet);
                drop((resumption, model));
                if let Some(cause) = reload {
                    // The result is in the log.
                    let _ = self.reload(&cause).await;
                }
                return false;
            }
        };
        tracing::info!(pid, "a new process has taken over");
        if let Err(error) = sd_notify::notify(&[NotifyState::MainPid(pid)]) {
            tracing::warn!(%error, "cannot notify systemd of the new main process");
        }
        if reload.is_some() {
            // It may have read the configuration before it changed.
            reload_process(pid);
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

/// Requests the new process to reload.
fn reload_process(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(Err(error)) = pid.map(|pid| kill_process(pid, Signal::HUP)) {
        tracing::error!(%error, "cannot signal the new process to reload; send it SIGHUP");
    }
}
