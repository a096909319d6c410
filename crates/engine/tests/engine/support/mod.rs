//! Keys, observers and backends for the tests.

mod asleep;
mod gate;
mod keys;
mod recorder;
mod scarce_cpu;
mod verify;

pub(crate) use asleep::{eventually, until_asleep};
pub(crate) use gate::Gate;
pub(crate) use keys::{all_keys, ec_p256, ec_p384, ed25519, ml_dsa, rsa1024, rsa2048, schemes_of};
pub(crate) use recorder::Recorder;
pub(crate) use scarce_cpu::{BusyCpus, Costly};
pub(crate) use verify::verifies;

use quadrille_engine::{Backend, Engine, Key, Observer, Operation, Policy, Settings, SignatureScheme};
use std::{num::NonZeroUsize, time::Duration};

/// Generous timeout for events that are expected.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) fn count(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("not zero")
}

pub(crate) fn settings(threads: usize, capacity: usize) -> Settings {
    let (policy, threads, capacity) = (Policy::default(), count(threads), count(capacity));
    Settings { policy, threads, yields: 0, capacity, key_exchange: true }
}

pub(crate) fn start(settings: Settings, backend: impl Backend, observer: impl Observer) -> Engine {
    Engine::start(settings, backend, observer).expect("threads start")
}

/// Returns a signature operation that is queued, as RSA and P-384 are.
pub(crate) fn sign(key: &Key) -> Operation {
    Operation::sign(schemes_of(key)[0], b"message").expect("the key's own scheme")
}

pub(crate) fn pkcs1(message: &[u8]) -> Operation {
    Operation::sign(SignatureScheme::RsaPkcs1Sha256, message).expect("an RSA operation")
}

/// Runs `what` on its own thread and fails if it hangs.
pub(crate) fn soon<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(what()));
    wait.recv_timeout(PATIENCE).expect("no timeout and no panic")
}
