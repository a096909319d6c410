//! End-to-end tests through a GPU, with a fake driver that runs the kernels on this CPU.

#[path = "../../../kernels-cuda/tests/support/fake.rs"]
mod fake;

use crate::support::{
    BusyCpus, Costly, Recorder, ec_p384, eventually, rsa1024, rsa2048, settings, soon, start, until_asleep,
};
use boring::pkey::PKey;
use fake::Fake;
use quadrille_engine::{
    Backend, Batching, Engine, Gpu, Job, Key, KeyType, MlDsa, Observer, Operation, Overflow, Scalar,
    SignatureScheme,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Scalar backend, slow enough for the rest of a queue to go to the GPU, on a busy machine too.
struct Slow;

impl Backend for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        std::thread::sleep(Duration::from_millis(20) * u32::try_from(batch.len()).unwrap());
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }
}

#[derive(Clone, Default)]
struct BatchLog(Recorder, Arc<Mutex<Vec<String>>>);

impl Observer for BatchLog {
    fn batch(&self, report: &quadrille_engine::BatchReport) {
        self.0.batch(report);
    }

    fn retired(&self, overflow: &dyn Overflow, reason: &str) {
        self.1.lock().unwrap().push(format!("{}: {reason}", overflow.name()));
    }
}

impl BatchLog {
    fn by_gpu(&self) -> usize {
        self.0.batches().iter().filter(|batch| batch.backend == "cuda").map(|batch| batch.operations).sum()
    }

    fn by_others(&self) -> usize {
        self.0.sum(|batch| batch.operations) - self.by_gpu()
    }
}

fn engine(fake: &Fake) -> (Engine, BatchLog) {
    engine_before(fake, Slow)
}

fn engine_before(fake: &Fake, backend: impl Backend) -> (Engine, BatchLog) {
    let batches = BatchLog::default();
    let gpu = Gpu::open_with(&fake.options()).expect("the fake driver has a device");
    assert_eq!(gpu.device(), "Fake GPU");
    (start(settings(1, 1000), gpu.behind(Box::new(backend)), batches.clone()), batches)
}

/// Computes signatures of every padding and decryptions, all at once; each must be right.
fn compute(engine: &Engine, key: &Key, count: usize) {
    let schemes =
        [SignatureScheme::RsaPkcs1Sha256, SignatureScheme::RsaPssSha256, SignatureScheme::RsaPkcs1Sha512];
    let operation = |i: usize| match schemes.get(i % 4) {
        Some(scheme) => Operation::sign(*scheme, &i.to_le_bytes()).unwrap(),
        None => Operation::decrypt(&[&[0][..], &vec![i as u8; 255]].concat()),
    };
    let waiting: Vec<_> =
        (0..count).map(|i| (operation(i), engine.enqueue(key, operation(i)).unwrap())).collect();
    engine.flush();
    let public = key.public().clone();
    soon(move || {
        for (operation, completion) in waiting {
            let outcome = completion.wait().expect("a result");
            assert!(operation.verify(&public, &outcome.bytes), "no wrong result is released");
        }
    });
}

/// Returns a key of this test's own: it is uploaded to this test's GPU.
fn fresh() -> Key {
    Key::from_pkey(PKey::from_rsa(rsa2048().pkey().rsa().unwrap()).unwrap()).unwrap()
}

/// Lets the engine measure its own speed.
fn warm_up(engine: &Engine, key: &Key) {
    compute(engine, key, 1);
    // The pace is recorded after the result has been handed over.
    until_asleep(1);
}

/// Signs messages with a key of ML-DSA, all at once; each signature must be valid.
fn sign_ml_dsa(engine: &Engine, key: &Key, count: usize) {
    let operation =
        |i: usize| Operation::sign(SignatureScheme::MlDsa(MlDsa::MlDsa44), &i.to_le_bytes()).unwrap();
    let waiting: Vec<_> = (0..count).map(|i| (i, engine.enqueue(key, operation(i)).unwrap())).collect();
    engine.flush();
    let public = key.public().clone();
    soon(move || {
        for (i, completion) in waiting {
            let outcome = completion.wait().expect("a signature");
            assert!(operation(i).verify(&public, &outcome.bytes), "no wrong signature is released");
        }
    });
}

/// Returns an engine that has signed once with its key of ML-DSA, and measured its own speed.
fn ml_dsa_engine(fake: &Fake) -> (Engine, Key, BatchLog) {
    let (engine, batches) = engine(fake);
    let key = Key::generate(KeyType::MlDsa(MlDsa::MlDsa44)).unwrap();
    engine.prepare(&key);
    sign_ml_dsa(&engine, &key, 1);
    until_asleep(1);
    (engine, key, batches)
}

#[test]
fn a_long_queue_of_ml_dsa_goes_to_the_gpu() {
    let fake = Fake::new();
    let (engine, key, batches) = ml_dsa_engine(&fake);
    assert_eq!(batches.by_gpu(), 0, "one operation stays");
    sign_ml_dsa(&engine, &key, 80);
    drop(engine);
    assert_eq!(batches.by_gpu() + batches.by_others(), 81);
    assert!(batches.by_gpu() >= 20, "{} of 80", batches.by_gpu());
    assert_eq!(batches.by_gpu() as i64, fake.get("operations"));
    assert_eq!(batches.0.sum(|batch| batch.recomputed + batch.failed), 0);
    drop(key);
    assert_eq!((fake.get("memory"), fake.get("contexts")), (0, 0), "the key was the last");
}

/// The host confirms no signature of a device whose outputs are wrong: it is retired, and the backend signs.
#[test]
fn a_gpu_with_wrong_ml_dsa_signatures_is_retired() {
    let fake = Fake::new();
    let (engine, key, batches) = ml_dsa_engine(&fake);
    fake.set("flip_output", 300);
    sign_ml_dsa(&engine, &key, 80);
    drop(engine);
    assert_eq!((batches.by_gpu(), batches.by_others()), (0, 81));
    assert_eq!(batches.1.lock().unwrap().len(), 1, "{:?}", batches.1);
}

#[test]
fn a_long_queue_goes_to_the_gpu() {
    let fake = Fake::new();
    let (engine, batches) = engine(&fake);
    let key = fresh();
    engine.prepare(&key);
    warm_up(&engine, &key);
    assert_eq!(batches.by_gpu(), 0, "one operation stays");
    compute(&engine, &key, 80);
    drop(engine);
    assert_eq!(batches.by_gpu() + batches.by_others(), 81);
    assert!(batches.by_gpu() >= 20, "{} of 80", batches.by_gpu());
    assert_eq!(batches.by_gpu() as i64, fake.get("operations"));
    assert_eq!(batches.0.sum(|batch| batch.recomputed + batch.failed), 0);
    assert_eq!(fake.get("secrets"), 1, "only the key");
    drop(key);
    assert_eq!(
        (fake.get("memory"), fake.get("dirty"), fake.get("contexts")),
        (0, 0, 0),
        "the key was the last"
    );
}

/// The backend needs more CPU time for an operation than the simulated GPU.
#[test]
fn single_operations_go_to_the_gpu_while_cpu_is_scarce() {
    let fake = Fake::new();
    let (engine, batches) = engine_before(&fake, Costly { each: Duration::from_millis(400), overflow: None });
    let key = fresh();
    engine.prepare(&key);
    warm_up(&engine, &key);
    assert_eq!(batches.by_gpu(), 0, "nothing was measured before");
    let busy = BusyCpus::new();
    eventually("no operation goes to the GPU", || {
        compute(&engine, &key, 1);
        batches.by_gpu() >= 3
    });
    drop((busy, engine));
    assert_eq!(batches.by_gpu() as i64, fake.get("operations"));
    assert_eq!(batches.0.sum(|batch| batch.recomputed + batch.failed), 0);
}

#[test]
fn other_keys_stay_and_batching_is_the_backends() {
    let fake = Fake::new();
    let (engine, batches) = engine(&fake);
    assert_eq!(engine.backend(), "slow");
    let Batching { width, crossover, .. } = engine.batching(KeyType::Rsa { bits: 2048 });
    assert_eq!((width, crossover), (1, 1));
    for key in [rsa1024(), ec_p384()] {
        engine.prepare(&key);
        let scheme = if key.key_type() == KeyType::EcdsaP384 {
            SignatureScheme::EcdsaSha384
        } else {
            SignatureScheme::RsaPkcs1Sha256
        };
        let sign = || Operation::sign(scheme, b"message").unwrap();
        engine.submit(&key, sign()).unwrap().wait().unwrap();
        until_asleep(1);
        let waiting: Vec<_> = (0..40).map(|_| engine.enqueue(&key, sign()).unwrap()).collect();
        engine.flush();
        waiting.into_iter().for_each(|completion| drop(completion.wait().unwrap()));
    }
    assert_eq!(batches.by_gpu(), 0);
}

#[test]
fn a_lost_gpu_costs_nothing_but_time() {
    let fake = Fake::new();
    let (engine, batches) = engine(&fake);
    let key = fresh();
    warm_up(&engine, &key);
    fake.set("lost_at", 1);
    compute(&engine, &key, 60);
    compute(&engine, &key, 30);
    drop(engine);
    assert_eq!(batches.by_gpu() + batches.by_others(), 91);
    assert_eq!(batches.0.sum(|batch| batch.recomputed + batch.failed), 0);
    let retired = batches.1.lock().unwrap().clone();
    assert_eq!(retired.len(), 1, "{retired:?}");
    assert!(retired[0].starts_with("cuda: the GPU's driver failed: cu"), "{retired:?}");
}

/// The device reports a single wrong result as confirmed by the public key; the host detects it.
#[test]
fn a_gpu_that_lies_is_found_out() {
    let fake = Fake::new();
    let (engine, batches) = engine(&fake);
    let key = fresh();
    warm_up(&engine, &key);
    fake.set("flip_output", 777);
    fake.set("flip_only", 5);
    compute(&engine, &key, 60);
    drop(engine);
    assert_eq!(
        *batches.1.lock().unwrap(),
        ["cuda: the GPU reported a wrong result as verified: it must not be trusted"]
    );
}

/// A result that the device itself rejects is computed again, and the device remains in use.
#[test]
fn a_fault_on_the_gpu_is_computed_again() {
    let fake = Fake::new();
    let (engine, batches) = engine(&fake);
    let key = fresh();
    warm_up(&engine, &key);
    fake.set("flip_key", 11 * 1024 + 77);
    compute(&engine, &key, 60);
    drop(engine);
    assert!(batches.by_gpu() > 0);
    // All operations of a batch use the one damaged key.
    assert_eq!(batches.0.sum(|batch| batch.recomputed), batches.by_gpu());
    assert_eq!(batches.0.sum(|batch| batch.failed), 0);
    assert_eq!(*batches.1.lock().unwrap(), [""; 0]);
}
