//! Choice of the backend: lanes where a pass pays, scalar below the crossover, the caller's thread for cheap keys.

use crate::support::{
    Gate, PATIENCE, Recorder, ec_p256, ec_p384, pkcs1, rsa1024, rsa2048, settings, sign, start, until_asleep,
};
use boring::rsa::Padding;
use quadrille_engine::{
    Backend, BatchReport, Job, Key, KeyType, Observer, OperationError, Scalar, Zeroizing,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
    mpsc::{self, Receiver, Sender},
};

const WIDTH: usize = 4;

/// Lanes without their arithmetic: the raw RSA private operation, with a key that is prepared once.
#[derive(Clone)]
struct Lanes {
    crossover: usize,
    prepared: Arc<AtomicUsize>,
}

struct PreparedKey(boring::rsa::Rsa<boring::pkey::Private>);

impl Lanes {
    fn new(crossover: usize) -> Self {
        Self { crossover, prepared: Arc::default() }
    }

    fn prepared<'a>(&self, key: &'a Key) -> &'a PreparedKey {
        key.prepared(|| {
            self.prepared.fetch_add(1, Ordering::SeqCst);
            PreparedKey(key.pkey().rsa().unwrap())
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<Zeroizing<Vec<u8>>, OperationError> {
        let input = job.rsa_input()?;
        let mut output = Zeroizing::new(vec![0; input.len()]);
        let key = self.prepared(job.key());
        let done = key.0.private_encrypt(&input, &mut output, Padding::NONE);
        done.map(|_| output).map_err(|_| OperationError::Failed)
    }
}

impl Backend for Lanes {
    fn name(&self) -> &'static str {
        "lanes"
    }

    fn width(&self, key_type: KeyType) -> usize {
        if matches!(key_type, KeyType::Rsa { .. }) { WIDTH } else { 1 }
    }

    fn crossover(&self, key_type: KeyType) -> usize {
        if matches!(key_type, KeyType::Rsa { .. }) { self.crossover } else { usize::MAX }
    }

    fn prepare(&self, key: &Key) {
        self.prepared(key);
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        for job in batch {
            job.finish(self.run(job));
        }
    }

    fn verifies(&self) -> bool {
        false
    }
}

/// Holds the compute thread after its first batch until the test releases it.
struct Holding {
    seen: Recorder,
    first: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Observer for Holding {
    fn batch(&self, report: &BatchReport) {
        self.seen.batch(report);
        if let Some((arrived, go_on)) = self.first.lock().unwrap().take() {
            arrived.send(()).unwrap();
            go_on.recv_timeout(PATIENCE).unwrap();
        }
    }
}

/// Queues `operations`, flushes them, and returns the backend and size of each batch.
fn batches(backend: Lanes, key: &Key, operations: usize) -> Vec<(&'static str, usize)> {
    let seen = Recorder::default();
    let ((arrived, arrival), (go_on, wait)) = (mpsc::channel(), mpsc::channel());
    let holding = Holding { seen: seen.clone(), first: Mutex::new(Some((arrived, wait))) };
    let engine = start(settings(1, 64), backend, holding);
    // An awake thread would take the queued operations one by one.
    let first = engine.submit(key, sign(key)).unwrap();
    arrival.recv_timeout(PATIENCE).unwrap();
    let waiting: Vec<_> = (0..operations).map(|_| engine.enqueue(key, sign(key)).unwrap()).collect();
    engine.flush();
    go_on.send(()).unwrap();
    for completion in std::iter::once(first).chain(waiting) {
        completion.wait().expect("a signature");
    }
    drop(engine);
    assert_eq!(seen.sum(|batch| batch.recomputed + batch.failed), 0);
    seen.batches().iter().skip(1).map(|batch| (batch.backend, batch.operations)).collect()
}

#[test]
fn below_the_crossover_the_scalar_backend_computes() {
    let key = rsa1024();
    assert_eq!(batches(Lanes::new(3), &key, 1), [("scalar", 1)]);
    assert_eq!(batches(Lanes::new(3), &key, 2), [("scalar", 2)]);
    assert_eq!(batches(Lanes::new(3), &key, 3), [("lanes", 3)]);
}

#[test]
fn passes_are_filled_and_the_rest_goes_by_its_own_size() {
    let key = rsa1024();
    assert_eq!(batches(Lanes::new(3), &key, 4), [("lanes", 4)]);
    assert_eq!(batches(Lanes::new(3), &key, 5), [("lanes", 4), ("scalar", 1)]);
    assert_eq!(batches(Lanes::new(3), &key, 11), [("lanes", 8), ("lanes", 3)]);
}

#[test]
fn a_backend_that_never_pays_is_not_asked() {
    let (rsa, ec) = (rsa1024(), ec_p384());
    assert_eq!(batches(Lanes::new(usize::MAX), &rsa, 3), [("scalar", 3)]);
    assert_eq!(batches(Lanes::new(WIDTH + 1), &rsa, 8), [("scalar", 8)]);
    assert_eq!(batches(Lanes::new(3), &ec, 4), [("scalar", 4)]);
}

#[test]
fn a_key_is_prepared_once_and_for_all_its_clones() {
    let backend = Lanes::new(1);
    let engine = start(settings(2, 64), backend.clone(), Recorder::default());
    let key = rsa2048();
    engine.prepare(&key);
    assert_eq!(backend.prepared.load(Ordering::SeqCst), 1);
    for _ in 0..3 {
        engine.submit(&key.clone(), sign(&key)).unwrap().wait().unwrap();
    }
    engine.prepare(&key);
    assert_eq!(backend.prepared.load(Ordering::SeqCst), 1);
}

#[test]
fn lanes_and_scalar_agree() {
    let key = rsa2048();
    let by_lanes = start(settings(1, 8), Lanes::new(1), Recorder::default());
    let by_scalar = start(settings(1, 8), Scalar, Recorder::default());
    let signature = |engine: &quadrille_engine::Engine| {
        engine.submit(&key, pkcs1(b"message")).unwrap().wait().unwrap().bytes
    };
    assert_eq!(signature(&by_lanes), signature(&by_scalar));
}

#[test]
fn one_flush_wakes_as_many_threads_as_there_is_work_for() {
    let (gate, open) = Gate::new();
    let seen = Recorder::default();
    let engine = start(settings(3, 8), gate, seen.clone());
    until_asleep(3);
    let key = rsa1024();
    let waiting: Vec<_> = (0..3).map(|_| engine.enqueue(&key, sign(&key)).unwrap()).collect();
    engine.flush();
    open.entered(3);
    open.open();
    for completion in waiting {
        completion.wait().expect("a signature");
    }
    drop(engine);
    assert_eq!(seen.sizes(), [1, 1, 1]);
}

#[test]
fn cheap_operations_are_computed_in_place_even_when_the_queue_is_full() {
    let (gate, open) = Gate::new();
    let seen = Recorder::default();
    let engine = start(settings(1, 1), gate, seen.clone());
    let (slow, cheap) = (ec_p384(), ec_p256());
    let _held = engine.submit(&slow, sign(&slow)).unwrap();
    open.entered(1);
    let _waiting = engine.submit(&slow, sign(&slow)).unwrap();
    assert!(engine.submit(&slow, sign(&slow)).is_err());
    let done = engine.submit(&cheap, sign(&cheap)).expect("no place in the queue is needed");
    assert!(done.is_in_place());
    assert_eq!(done.wait().unwrap().batch, 1);
    let batches = seen.batches();
    assert!(matches!(&batches[..], [only] if only.in_place && only.backend == "scalar"), "{batches:?}");
    open.open();
}
