//! The engine, according to the settings.

use super::{start_failure, start_problem};
use crate::telemetry::metrics;
use quadrille_config::{
    Diagnostic,
    model::{BackendChoice, EngineSettings, Problem},
};
use quadrille_engine::{Backend, Engine, Gpu, Observer, Policy, Scalar, Settings, Unobserved};
use std::{io, num::NonZeroUsize};

/// Starts the engine of a serving process, and logs its backend.
pub(crate) fn start(settings: &EngineSettings, observer: impl Observer) -> Result<Engine, Vec<Diagnostic>> {
    let (backend, absence) = backend(settings.backend).map_err(start_problem)?;
    let settings = resolved(settings).map_err(start_failure)?;
    let engine = Engine::start(settings, backend, observer).map_err(start_failure)?;
    for (key_type, batching) in engine.batched() {
        metrics::batching(&engine, key_type, batching);
    }
    if let Some(gpu) = engine.overflow() {
        metrics::gpu(gpu, true);
    }
    if let Some(reason) = absence {
        tracing::debug!(%reason, "no GPU");
    }
    let gpu = engine.overflow().map(quadrille_engine::Overflow::device);
    let lanes = engine.batched().iter().map(|(_, batching)| batching.width).max();
    tracing::info!(backend = engine.backend(), lanes, gpu, "private-key operations");
    tracing::debug!(batches = summary(&engine), "private-key operations");
    Ok(engine)
}

/// Opens the backend; also returns the reason why no GPU is used.
fn backend(choice: BackendChoice) -> Result<(Box<dyn Backend>, Option<String>), Problem> {
    let fastest = || quadrille_engine::fastest().map_err(|error| Problem::from(error.to_string()));
    let behind = |gpu: Gpu| Ok::<_, Problem>((gpu.behind(fastest()?), None));
    match choice {
        BackendChoice::Auto => match Gpu::open() {
            Ok(gpu) => behind(gpu),
            Err(reason) => Ok((fastest()?, Some(reason.to_string()))),
        },
        BackendChoice::Gpu => match Gpu::open() {
            Ok(gpu) => behind(gpu),
            Err(reason) => {
                let message = format!("the engine's backend is `gpu`: {reason}");
                Err(Problem::new(message, "`backend: auto` (`--backend auto`) needs no GPU"))
            }
        },
        BackendChoice::Lanes => Ok((fastest()?, Some(OFF.to_owned()))),
        BackendChoice::Scalar => Ok((Box::new(Scalar), Some(OFF.to_owned()))),
    }
}

const OFF: &str = "switched off";

/// Starts an engine that is used only to check a configuration.
pub(crate) fn idle() -> io::Result<Engine> {
    Engine::start(resolved(&EngineSettings::default())?, Scalar, Unobserved)
}

/// Returns the configured number of threads, or the number of CPUs.
pub(crate) fn compute_threads(settings: &EngineSettings) -> io::Result<NonZeroUsize> {
    settings.threads.map_or_else(std::thread::available_parallelism, Ok)
}

fn resolved(settings: &EngineSettings) -> io::Result<Settings> {
    let threads = compute_threads(settings)?;
    let &EngineSettings { poll_delay, latency_budget, batch, .. } = settings;
    let policy = Policy { poll_delay, latency_budget, batch };
    let (capacity, key_exchange) = (settings.queue, settings.key_exchange);
    Ok(Settings { policy, threads, yields: Settings::YIELDS, capacity, key_exchange })
}

/// Formats the batch sizes: `rsa2048 8 at once, from 2 on; ...`.
fn summary(engine: &Engine) -> String {
    let batched = engine.batched().into_iter();
    let each = batched.map(|(key_type, batching)| {
        format!("{key_type} {} at once, from {} on", batching.width, batching.crossover)
    });
    let exchange = [
        ("x25519", engine.x25519_batching()),
        ("p256", engine.p256_batching()),
        ("ml-kem-768", engine.ml_kem_batching()),
    ];
    let exchange = exchange.iter().filter(|(_, batching)| engine.exchanges_keys() && batching.width > 1);
    let exchange = exchange
        .map(|(name, batching)| format!("{name} {} at once, from {} on", batching.width, batching.crossover));
    let each: Vec<String> = each.chain(exchange).collect();
    if each.is_empty() { "one at a time".to_owned() } else { each.join("; ") }
}
