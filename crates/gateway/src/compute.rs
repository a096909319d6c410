//! The engine, as the settings want it.

use crate::{
    metrics::{self, EngineMetrics},
    model::{BackendChoice, EngineSettings},
};
use quadrille_engine::{Backend, Engine, Policy, Scalar, Settings, Unobserved};
use std::io;

/// Starts the engine of a serving process, and says how it computes.
pub(crate) fn start(settings: &EngineSettings) -> io::Result<Engine> {
    let backend: Box<dyn Backend> = match settings.backend {
        BackendChoice::Auto => quadrille_engine::fastest().map_err(io::Error::other)?,
        BackendChoice::Scalar => Box::new(Scalar),
    };
    let engine = Engine::start(resolved(settings)?, backend, EngineMetrics)?;
    for (key_type, batching) in engine.batched() {
        metrics::batching(&engine, key_type, batching);
    }
    tracing::info!(backend = engine.backend(), batches = summary(&engine), "private-key operations");
    Ok(engine)
}

/// An engine that only checks what a configuration names.
pub(crate) fn idle() -> io::Result<Engine> {
    Engine::start(resolved(&EngineSettings::default())?, Scalar, Unobserved)
}

fn resolved(settings: &EngineSettings) -> io::Result<Settings> {
    let threads = settings.threads.map_or_else(std::thread::available_parallelism, Ok)?;
    let policy = Policy { poll_delay: settings.poll_delay, batch: settings.batch };
    Ok(Settings { policy, threads, capacity: settings.queue })
}

/// `rsa2048 8 at once, from 2 on; ...`.
fn summary(engine: &Engine) -> String {
    let batched = engine.batched().into_iter();
    let each = batched.map(|(key_type, batching)| {
        format!("{key_type} {} at once, from {} on", batching.width, batching.crossover)
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { "one at a time".to_owned() } else { each.join("; ") }
}
