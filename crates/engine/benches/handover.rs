//! Cost of handing an operation to a compute thread and being woken, against the cost of the cheap operations.
//!
//! `cargo bench --package quadrille-engine --bench handover`

use boring::{
    ec::{EcGroup, EcKey},
    nid::Nid,
    pkey::PKey,
    rsa::Rsa,
};
use quadrille_engine::{
    Backend, Engine, Job, Key, KeyType, Operation, Policy, Scalar, Settings, SignatureScheme as S,
    Unobserved, Zeroizing,
};
use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

const ROUNDS: usize = 15;
const OPERATIONS: u32 = 320;

/// Finishes with an empty result immediately: only the hand-over remains.
struct Nothing;

impl Backend for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        for job in batch {
            job.finish(Ok(Zeroizing::new(Vec::new())));
        }
    }

    fn verifies(&self) -> bool {
        true
    }
}

fn main() {
    let p384 = ec(Nid::SECP384R1);
    let empty = start(Nothing);
    report("nothing, handed over alone", &empty, &p384, S::EcdsaSha384, 1);
    report("nothing, handed over by eights", &empty, &p384, S::EcdsaSha384, 8);
    let scalar = start(Scalar);
    report("ECDSA P-256, in place", &scalar, &ec(Nid::X9_62_PRIME256V1), S::EcdsaSha256, 1);
    report("Ed25519, in place", &scalar, &ed25519(), S::Ed25519, 1);
    report("ECDSA P-384, handed over alone", &scalar, &p384, S::EcdsaSha384, 1);
    report("RSA-2048, handed over alone", &scalar, &rsa2048(), S::RsaPssSha256, 1);
    report("RSA-2048, handed over by eights", &scalar, &rsa2048(), S::RsaPssSha256, 8);
}

/// Prints the minimum of some rounds, for each operation: elapsed time, and the CPU time of all threads.
fn report(what: &str, engine: &Engine, key: &Key, scheme: S, together: usize) {
    let rounds: Vec<_> = (0..ROUNDS).map(|_| round(engine, key, scheme, together)).collect();
    let micros = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e6;
    let elapsed = micros(rounds.iter().map(|round| round.0).min());
    let cpu = micros(rounds.iter().map(|round| round.1).min());
    println!("{what:32} {elapsed:8.1} us elapsed {cpu:8.1} us CPU");
}

fn round(engine: &Engine, key: &Key, scheme: S, together: usize) -> (Duration, Duration) {
    let (began, cpu) = (Instant::now(), cpu_time());
    for _ in 0..OPERATIONS as usize / together {
        let submit = || {
            let operation = Operation::sign(scheme, b"message").expect("the key's own scheme");
            engine.enqueue(key, operation).expect("a place in the queue")
        };
        let batch: Vec<_> = (0..together).map(|_| submit()).collect();
        for completion in batch {
            completion.wait().expect("a signature");
        }
    }
    (began.elapsed() / OPERATIONS, (cpu_time() - cpu) / OPERATIONS)
}

/// Returns the user and system time of all live threads, from the scheduler's statistics.
fn cpu_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let books = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        books.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn start(backend: impl Backend) -> Engine {
    let (threads, capacity) = (NonZeroUsize::MIN, NonZeroUsize::MAX);
    let (policy, key_exchange) = (Policy::default(), false);
    let settings = Settings { policy, threads, yields: 0, capacity, key_exchange };
    Engine::start(settings, backend, Unobserved).expect("a thread")
}

fn ec(curve: Nid) -> Key {
    let group = EcGroup::from_curve_name(curve).expect("a known curve");
    key(PKey::from_ec_key(EcKey::generate(&group).expect("a key")))
}

fn ed25519() -> Key {
    const PKCS8_HEADER: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    key(PKey::private_key_from_der(&[&PKCS8_HEADER[..], &[7; 32]].concat()))
}

fn rsa2048() -> Key {
    key(PKey::from_rsa(Rsa::generate(2048).expect("a key")))
}

fn key(pkey: Result<PKey<boring::pkey::Private>, boring::error::ErrorStack>) -> Key {
    Key::from_pkey(pkey.expect("a key")).expect("a supported key")
}
