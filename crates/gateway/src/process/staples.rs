//! The thread that fetches OCSP responses, while there are certificates to staple them to.

use super::background;
use crate::telemetry::metrics;
use quadrille_ocsp::{Failure, Runner, Staple};
use std::{io, sync::Arc, thread};
use tokio::sync::watch;

/// OCSP responses stapled by this process.
pub(crate) struct Staples {
    wanted: watch::Sender<Vec<Arc<Staple>>>,
    /// The runner, until its thread has started.
    runner: Option<Runner>,
}

impl Staples {
    pub(crate) fn new() -> Self {
        let (wanted, followed) = watch::channel(Vec::new());
        Self { wanted, runner: Some(Runner::new(followed, count)) }
    }

    /// Keeps these OCSP responses up to date from now on.
    pub(crate) fn follow(&mut self, staples: Vec<Arc<Staple>>) {
        if !staples.is_empty()
            && let Some(runner) = self.runner.take()
            && let Err(error) = start(runner)
        {
            tracing::error!(%error, "cannot start the thread that fetches OCSP responses");
        }
        self.wanted.send_replace(staples);
    }
}

fn count(result: Result<(), &Failure>) {
    metrics::ocsp_fetch(result.map_or_else(Failure::name, |()| "good"));
}

/// Starts the thread, which also verifies signatures, outside the event loops.
fn start(runner: Runner) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("ocsp".to_owned()).spawn(move || {
        background::lower_priority();
        runtime.block_on(runner.run());
    })?;
    Ok(())
}
