//! Configurations from memory, for front ends that learn of changes while the gateway runs.

use crate::{process, telemetry::statistics::Statistics};
use quadrille_config::{Diagnostic, model::Gateway};
use std::{io, net::SocketAddr, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// Changes what a running gateway serves. Any thread may hold one.
#[derive(Clone, Debug)]
pub struct Control(mpsc::UnboundedSender<Command>);

/// The gateway's end, for [`crate::ConfigurationSource`].
#[derive(Debug)]
pub struct Updates(pub(crate) mpsc::UnboundedReceiver<Command>);

#[derive(Debug)]
pub(crate) enum Command {
    Apply(Box<Gateway>, oneshot::Sender<Result<Applied, Vec<Diagnostic>>>),
    Statistics(oneshot::Sender<Statistics>),
    Drain(ListenerDrain),
    End,
}

/// How listeners end while the process stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerDrain {
    /// No connection is accepted any more; those that there are end when they can.
    Now,
    /// Connections are told to end, new ones after their first request, and after a while none is accepted any more.
    After(Duration),
    /// As `After`, without an end.
    Discourage,
}

/// A configuration that is in service.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// What a user should know, though it is served.
    pub warnings: Vec<String>,
    /// Where the listeners are, in the configuration's order, with real ports in place of 0.
    pub listeners: Vec<SocketAddr>,
    /// How long it took to read and build, during which the old configuration served.
    pub took: Duration,
    /// What the one before did not have already.
    pub made: RebuiltParts,
}

/// How many parts of a configuration were made for it; what has not changed is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuiltParts {
    /// Certificate chains with their keys.
    pub certificates: usize,
    /// TLS settings with their certificates.
    pub tls_contexts: usize,
    /// Tables of virtual hosts.
    pub route_tables: usize,
    /// Upstreams; one whose servers change is kept.
    pub upstreams: usize,
    /// Pools of connections to key servers.
    pub key_server_pools: usize,
}

/// The two ends.
pub fn control() -> (Control, Updates) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Control(sender), Updates(receiver))
}

impl Control {
    /// Reads and builds what a configuration names, beside the event loops, and swaps it in whole: new listeners are
    /// bound, those that are gone drain, and what has not changed goes on. Configurations are applied in the order in
    /// which this is called.
    ///
    /// # Errors
    /// Every problem with it; the old configuration then goes on serving.
    pub async fn apply(&self, model: Gateway) -> Result<Applied, Vec<Diagnostic>> {
        self.ask(|reply| Command::Apply(Box::new(model), reply)).await.unwrap_or_else(|| Err(ended()))
    }

    /// What has been counted; `None` once the gateway has ended.
    pub async fn statistics(&self) -> Option<Statistics> {
        self.ask(Command::Statistics).await
    }

    /// Ends the listeners. Nothing is served any more after that but the admin address.
    pub fn drain_listeners(&self, drain: ListenerDrain) {
        let _ = self.0.send(Command::Drain(drain));
    }

    /// Ends the process as SIGTERM does.
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
    /// The next command; never, once nobody can give one.
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
