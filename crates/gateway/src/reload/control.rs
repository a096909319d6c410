//! Configurations from memory, for front ends that receive changes while the gateway runs.

use crate::{process, telemetry::statistics::Statistics};
use quadrille_config::{Diagnostic, model::Gateway};
use std::{io, net::SocketAddr, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// Handle to change the configuration of a running gateway, from any thread.
#[derive(Clone, Debug)]
pub struct Control(mpsc::UnboundedSender<Command>);

/// Receiving end in the gateway, for [`crate::ConfigurationSource`].
#[derive(Debug)]
pub struct Updates(pub(crate) mpsc::UnboundedReceiver<Command>);

#[derive(Debug)]
pub(crate) enum Command {
    Apply(Box<Gateway>, oneshot::Sender<Result<Applied, Vec<Diagnostic>>>),
    Statistics(oneshot::Sender<Statistics>),
    Drain(ListenerDrain),
    End,
}

/// Ways to drain listeners while the process continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerDrain {
    /// Stops accepting connections immediately; open ones end when their requests have finished.
    Now,
    /// Tells clients to close their connections, new ones after their first request, and stops accepting connections
    /// after this time.
    After(Duration),
    /// Does the same as `After`, without a time limit.
    Discourage,
}

/// A configuration that is in service.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Warnings about a valid configuration.
    pub warnings: Vec<String>,
    /// Addresses of the listeners, in the configuration's order, with actual ports in place of 0.
    pub listeners: Vec<SocketAddr>,
    /// Time to read and build the configuration, during which the old one served.
    pub took: Duration,
    /// Parts that were not in the previous configuration.
    pub made: RebuiltParts,
}

/// Number of parts of a configuration that were rebuilt; unchanged parts are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuiltParts {
    /// Certificate chains with their keys.
    pub certificates: usize,
    /// TLS contexts with their certificates.
    pub tls_contexts: usize,
    /// Tables of virtual hosts.
    pub route_tables: usize,
    /// Upstreams; an upstream whose endpoints change is kept.
    pub upstreams: usize,
    /// Pools of connections to key servers.
    pub key_server_pools: usize,
}

/// Creates the two ends.
pub fn control() -> (Control, Updates) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Control(sender), Updates(receiver))
}

impl Control {
    /// Reads and builds a configuration outside the event loops, and puts it into service as a whole: new listeners
    /// are bound, removed ones drain, and unchanged parts are kept. Configurations are applied in the order of the
    /// calls.
    ///
    /// # Errors
    /// Every problem of the configuration; the old one then stays in service.
    pub async fn apply(&self, model: Gateway) -> Result<Applied, Vec<Diagnostic>> {
        self.ask(|reply| Command::Apply(Box::new(model), reply)).await.unwrap_or_else(|| Err(ended()))
    }

    /// Returns the statistics; `None` once the gateway has ended.
    pub async fn statistics(&self) -> Option<Statistics> {
        self.ask(Command::Statistics).await
    }

    /// Drains the listeners. Afterwards, only the admin address is served.
    pub fn drain_listeners(&self, drain: ListenerDrain) {
        let _ = self.0.send(Command::Drain(drain));
    }

    /// Shuts down the process as SIGTERM does.
    pub fn end(&self) {
        let _ = self.0.send(Command::End);
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).ok()?;
        answer.await.ok()
    }
}

fn ended() -> Vec<Diagnostic> {
    process::start_failure(io::Error::other("the gateway is ending"))
}

impl Updates {
    /// Returns the next command; never resolves once all senders are gone.
    pub(crate) async fn next(updates: &mut Option<Self>) -> Command {
        match updates {
            Some(Self(receiver)) => match receiver.recv().await {
                Some(command) => command,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}
