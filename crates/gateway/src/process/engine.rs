//! The engine, as the settings want it.

use crate::telemetry::metrics::{self, EngineMetrics};
use quadrille_config::model::{BackendChoice, EngineSettings};
use quadrille_engine::{Backend, Engine, Gpu, Overflow, Policy, Scalar, Settings, Unobserved};
use std::io;

/// Starts the engine of a serving process, and says how it computes.
pub(crate) fn start(settings: &EngineSettings) -> io::Result<Engine> {
    let (backend, gpu) = backend(settings.backend)?;
    let engine = Engine::start(resolved(settings)?, backend, EngineMetrics)?;
    for (key_type, batching) in engine.batched() {
        metrics::batching(&engine, key_type, batching);
    }
    if let Some(gpu) = engine.overflow() {
        metrics::gpu(gpu, true);
    }
    tracing::info!(backend = engine.backend(), batches = summary(&engine), gpu, "private-key operations");
    Ok(engine)
}

/// What computes, and what the log says of the GPU.
fn backend(choice: BackendChoice) -> io::Result<(Box<dyn Backend>, String)> {
    let fastest = || quadrille_engine::fastest().map_err(io::Error::other);
    let behind = |gpu: Gpu| Ok::<_, io::Error>((gpu.device().to_owned(), gpu.behind(fastest()?)));
    let (gpu, backend) = match choice {
        BackendChoice::Auto => match Gpu::open() {
            Ok(gpu) => behind(gpu)?,
            Err(reason) => (reason.to_string(), fastest()?),
        },
        BackendChoice::Gpu => match Gpu::open() {
            Ok(gpu) => behind(gpu)?,
            Err(reason) => {
                let remedy = "`backend: auto` (`--backend auto`) does without";
                return Err(io::Error::other(format!("the engine's backend is `gpu`: {reason}; {remedy}")));
            }
        },
        BackendChoice::Lanes => (OFF.to_owned(), fastest()?),
        BackendChoice::Scalar => (OFF.to_owned(), Box::new(Scalar) as Box<dyn Backend>),
    };
    Ok((backend, gpu))
}

const OFF: &str = "switched off";

/// An engine that only checks what a configuration names.
pub(crate) fn idle() -> io::Result<Engine> {
    Engine::start(resolved(&EngineSettings::default())?, Scalar, Unobserved)
}

fn resolved(settings: &EngineSettings) -> io::Result<Settings> {
    let threads = settings.threads.map_or_else(std::thread::available_parallelism, Ok)?;
    let policy = Policy { poll_delay: settings.poll_delay, batch: settings.batch };
    let (capacity, key_exchange) = (settings.queue, settings.key_exchange);
    Ok(Settings { policy, threads, yields: Settings::YIELDS, capacity, key_exchange })
}

/// `rsa2048 8 at once, from 2 on; ...`.
fn summary(engine: &Engine) -> String {
    let batched = engine.batched().into_iter();
    let each = batched.map(|(key_type, batching)| {
        format!("{key_type} {} at once, from {} on", batching.width, batching.crossover)
    });
    let x25519 = engine.x25519_batching();
    let exchange = (engine.exchanges_keys() && x25519.width > 1)
        .then(|| format!("x25519 {} at once, from {} on", x25519.width, x25519.crossover));
    let each: Vec<String> = each.chain(exchange).collect();
    if each.is_empty() { "one at a time".to_owned() } else { each.join("; ") }
}
