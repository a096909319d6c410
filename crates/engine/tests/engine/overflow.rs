//! Overflow of load that exceeds the backend: operations go to it when the queue is long, return when it fails, and
//! none is lost.

use crate::support::{
    BusyCpus, Costly, PATIENCE, Recorder, eventually, rsa1024, settings, sign, soon, start, until_asleep,
};
use boring::rsa::Padding;
use quadrille_engine::{
    Backend, BatchReport, Completion, Engine, Job, Key, KeyType, Observer, Operation, OperationError,
    Overflow, Scalar, Zeroizing,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

/// Slow backend with right results.
struct Slow {
    each: Duration,
    /// No operation is finished while it is true.
    held: Arc<AtomicBool>,
    far: Option<Arc<Far>>,
}

/// Behaviour for a batch.
type Act = dyn Fn(&mut [Job<'_>]) -> Result<(), String> + Send + Sync;

/// Overflow with right results; `act` may misbehave with a batch first.
struct Far {
    act: Box<Act>,
    lanes: usize,
}

impl Backend for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        for job in batch {
            std::thread::sleep(self.each);
            eventually("the backend is still held", || !self.held.load(Ordering::SeqCst));
            job.finish(right(job));
        }
    }

    fn verifies(&self) -> bool {
        true
    }

    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        self.far.clone().map(|far| far as Arc<dyn Overflow>)
    }
}

impl Overflow for Far {
    fn name(&self) -> &'static str {
        "far"
    }

    fn device(&self) -> &str {
        "The Far One"
    }

    fn lanes(&self) -> usize {
        self.lanes
    }

    fn capacity(&self, key_type: KeyType) -> usize {
        if matches!(key_type, KeyType::Rsa { .. }) { 100 } else { 0 }
    }

    fn compute(&self, batch: &mut [Job<'_>]) -> Result<(), String> {
        (self.act)(batch)
    }
}

fn right(job: &Job<'_>) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    let input = job.rsa_input()?;
    let mut output = Zeroizing::new(vec![0; input.len()]);
    let rsa = job.key().pkey().rsa().map_err(|_| OperationError::Failed)?;
    rsa.private_encrypt(&input, &mut output, Padding::NONE).map_err(|_| OperationError::Failed)?;
    Ok(output)
}

fn finish_all(batch: &mut [Job<'_>]) -> Result<(), String> {
    batch.iter_mut().for_each(|job| job.finish(right(job)));
    Ok(())
}

/// Records every batch, and retired overflows.
#[derive(Clone, Default)]
struct BatchLog {
    recorder: Recorder,
    retired: Arc<Mutex<Vec<String>>>,
}

impl Observer for BatchLog {
    fn batch(&self, report: &BatchReport) {
        self.recorder.batch(report);
    }

    fn retired(&self, overflow: &dyn Overflow, reason: &str) {
        self.retired.lock().unwrap().push(format!("{}: {reason}", overflow.name()));
    }
}

impl BatchLog {
    fn computed_by(&self, name: &str) -> usize {
        self.recorder
            .batches()
            .iter()
            .filter(|batch| batch.backend == name)
            .map(|batch| batch.operations)
            .sum()
    }

    fn retired(&self) -> Vec<String> {
        self.retired.lock().unwrap().clone()
    }
}

/// Starts an engine with one thread that needs three milliseconds for each operation, and has computed one to measure
/// that. It continues after a batch has overflowed: the order in which the machine runs the two threads is
/// unspecified.
fn engine(
    act: impl Fn(&mut [Job<'_>]) -> Result<(), String> + Send + Sync + 'static,
) -> (Engine, BatchLog, Key) {
    let held = Arc::new(AtomicBool::new(false));
    let goes_on = Arc::clone(&held);
    let made = engine_taking(Duration::from_millis(3), &held, move |batch| {
        goes_on.store(false, Ordering::SeqCst);
        act(batch)
    });
    held.store(true, Ordering::SeqCst);
    made
}

fn engine_taking(
    each: Duration,
    held: &Arc<AtomicBool>,
    act: impl Fn(&mut [Job<'_>]) -> Result<(), String> + Send + Sync + 'static,
) -> (Engine, BatchLog, Key) {
    let batches = BatchLog::default();
    let far = Arc::new(Far { act: Box::new(act), lanes: 2 });
    let backend = Slow { each, held: Arc::clone(held), far: Some(far) };
    let engine = start(settings(1, 1000), backend, batches.clone());
    let key = rsa1024();
    engine.submit(&key, sign(&key)).unwrap().wait().expect("a signature");
    // The pace is recorded after the result has been handed over.
    until_asleep(1);
    (engine, batches, key)
}

fn submit(engine: &Engine, key: &Key, count: usize) -> Vec<(Operation, Completion)> {
    let operations: Vec<_> = (0..count).map(|_| sign(key)).collect();
    let waiting = operations.into_iter().map(|operation| {
        let completion = engine.enqueue(key, operation.clone()).unwrap();
        (operation, completion)
    });
    let waiting = waiting.collect();
    engine.flush();
    waiting
}

fn all_right(key: &Key, waiting: Vec<(Operation, Completion)>) {
    let key = key.clone();
    soon(move || {
        for (operation, completion) in waiting {
            let outcome = completion.wait().expect("a signature");
            assert!(operation.verify(key.public(), &outcome.bytes), "no wrong result is released");
        }
    });
}

/// Two waiting operations are fewer than are computed locally while a batch is away. That fails if the machine stops
/// this process for some milliseconds, so the test retries until it was not stopped.
#[test]
fn at_low_load_nothing_goes() {
    let far = || {
        let (engine, batches, key) = engine_taking(Duration::from_micros(50), &Arc::default(), finish_all);
        for _ in 0..10 {
            all_right(&key, submit(&engine, &key, 2));
        }
        // Batches are reported after their results have been handed over.
        drop(engine);
        let far = batches.computed_by("far");
        assert_eq!(far + batches.computed_by("slow"), 21);
        far
    };
    eventually("operations overflowed each time", || far() == 0);
}

/// Starts an engine whose operations need 10 ms of CPU time locally, and hardly any at the overflow, where they take as
/// long; it has computed one to measure that.
fn engine_with_costly_operations() -> (Engine, BatchLog, Key) {
    let batches = BatchLog::default();
    let act = |batch: &mut [Job<'_>]| {
        std::thread::sleep(Duration::from_millis(10));
        finish_all(batch)
    };
    let overflow: Option<Arc<dyn Overflow>> = Some(Arc::new(Far { act: Box::new(act), lanes: 2 }));
    let backend = Costly { each: Duration::from_millis(10), overflow };
    let engine = start(settings(2, 1000), backend, batches.clone());
    let key = rsa1024();
    all_right(&key, submit(&engine, &key, 1));
    until_asleep(2);
    (engine, batches, key)
}

/// Single operations stay while CPU is plentiful. They are few; another process may hold one up, so that the next one
/// waits longer.
#[test]
fn costly_operations_stay_while_cpu_is_plentiful() {
    let far = || {
        let (engine, batches, key) = engine_with_costly_operations();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(100));
            all_right(&key, submit(&engine, &key, 1));
        }
        drop(engine);
        batches.computed_by("far")
    };
    eventually("operations overflowed each time", || far() == 0);
}

/// No queue is needed, and compute threads, which are idle, leave the operations to the overflow.
#[test]
fn costly_operations_go_while_cpu_is_scarce() {
    let (engine, batches, key) = engine_with_costly_operations();
    let busy = BusyCpus::new();
    eventually("no operation overflows", || {
        all_right(&key, submit(&engine, &key, 1));
        batches.computed_by("far") >= 5
    });
    drop(busy);
    eventually("operations overflow though CPU is plentiful", || {
        let before = batches.computed_by("far");
        std::thread::sleep(Duration::from_millis(200));
        all_right(&key, submit(&engine, &key, 1));
        batches.computed_by("far") == before
    });
}

/// Operations that the overflow returns are computed locally, although CPU is scarce.
#[test]
fn returned_operations_are_computed_here_while_cpu_is_scarce() {
    let batches = BatchLog::default();
    let (act, lanes) = (Box::new(|_: &mut [Job<'_>]| Ok(())), 2);
    let overflow: Option<Arc<dyn Overflow>> = Some(Arc::new(Far { act, lanes }));
    let backend = Costly { each: Duration::from_millis(10), overflow };
    let engine = start(settings(2, 1000), backend, batches.clone());
    let key = rsa1024();
    let busy = BusyCpus::new();
    (0..10).for_each(|_| all_right(&key, submit(&engine, &key, 3)));
    drop((busy, engine));
    assert_eq!((batches.computed_by("far"), batches.computed_by("costly")), (0, 30));
}

#[test]
fn of_a_long_queue_only_the_end_goes() {
    let (engine, batches, key) = engine(finish_all);
    all_right(&key, submit(&engine, &key, 60));
    drop(engine);
    let (far, slow) = (batches.computed_by("far"), batches.computed_by("slow"));
    assert_eq!(far + slow, 61);
    assert!(far >= 40, "{far} of 60 went");
    assert!(slow >= 2, "operations computed locally in the meantime stay: {slow}");
    assert_eq!(batches.recorder.sum(|batch| batch.recomputed + batch.failed), 0);
}

#[test]
fn what_is_in_flight_when_it_is_lost_is_computed_here() {
    let (engine, batches, key) = engine(|_| Err("it fell off the bus".to_owned()));
    all_right(&key, submit(&engine, &key, 60));
    all_right(&key, submit(&engine, &key, 60));
    drop(engine);
    assert_eq!((batches.computed_by("far"), batches.computed_by("slow")), (0, 121));
    assert_eq!(batches.retired(), ["far: it fell off the bus"], "once, though it has two lanes");
    assert_eq!(batches.recorder.sum(|batch| batch.recomputed + batch.failed), 0);
}

#[test]
fn what_was_done_before_it_was_lost_counts() {
    let (engine, batches, key) = engine(|batch| {
        let half = batch.len() / 2;
        finish_all(&mut batch[..half]).and(Err("lost".to_owned()))
    });
    all_right(&key, submit(&engine, &key, 60));
    drop(engine);
    let far = batches.computed_by("far");
    assert!(far > 0 && far + batches.computed_by("slow") == 61, "{far}");
}

#[test]
fn a_panic_elsewhere_is_a_loss() {
    let (engine, batches, key) = engine(|_| panic!("on purpose"));
    all_right(&key, submit(&engine, &key, 60));
    eventually("the overflow is not retired", || !batches.retired().is_empty());
    assert_eq!(batches.retired(), ["far: it panicked"]);
}

#[test]
fn what_it_leaves_is_computed_here_and_not_offered_again() {
    let offered = Arc::new(Mutex::new(0));
    let count = Arc::clone(&offered);
    let (engine, batches, key) = engine(move |batch| {
        *count.lock().unwrap() += batch.len();
        Ok(())
    });
    all_right(&key, submit(&engine, &key, 60));
    drop(engine);
    assert_eq!((batches.computed_by("far"), batches.computed_by("slow")), (0, 61));
    let offered = *offered.lock().unwrap();
    assert!((1..=60).contains(&offered), "{offered} offers of 60 operations");
    assert_eq!(batches.retired(), [""; 0]);
}

/// The engine is dropped while a batch is away, and the batch returns uncomputed.
#[test]
fn an_engine_that_stops_waits_for_what_is_away() {
    let (arrived, wait) = mpsc::channel();
    let arrived = Mutex::new(arrived);
    let (engine, batches, key) = engine(move |_| {
        let _ = arrived.lock().unwrap().send(());
        std::thread::sleep(Duration::from_millis(400));
        Err("too late".to_owned())
    });
    let waiting = submit(&engine, &key, 60);
    wait.recv_timeout(PATIENCE).unwrap();
    drop(engine);
    all_right(&key, waiting);
    assert_eq!(batches.computed_by("slow"), 61);
}

/// Operations at the overflow, with completions that are dropped.
#[test]
fn withdrawn_operations_are_not_queued_again() {
    let (arrived, wait) = mpsc::channel();
    let (arrived, gone) = (Mutex::new(arrived), Arc::new(Mutex::new(())));
    let (away, held) = (Arc::clone(&gone), Arc::new(AtomicBool::new(false)));
    let (engine, batches, key) = engine_taking(Duration::from_millis(3), &held, move |_| {
        let _ = arrived.lock().unwrap().send(());
        drop(away.lock());
        Err("lost".to_owned())
    });
    held.store(true, Ordering::SeqCst);
    let hold = gone.lock().unwrap();
    let waiting = submit(&engine, &key, 60);
    wait.recv_timeout(PATIENCE).unwrap();
    drop(waiting);
    drop(hold);
    held.store(false, Ordering::SeqCst);
    all_right(&key, submit(&engine, &key, 3));
    drop(engine);
    assert!(batches.computed_by("slow") < 30, "{}", batches.computed_by("slow"));
}

#[test]
fn without_an_overflow_nothing_changes() {
    let batches = BatchLog::default();
    let engine = start(
        settings(1, 1000),
        Slow { each: Duration::ZERO, held: Arc::default(), far: None },
        batches.clone(),
    );
    let key = rsa1024();
    all_right(&key, submit(&engine, &key, 60));
    drop(engine);
    assert_eq!(batches.computed_by("slow"), 60);
    assert!(Scalar.overflow().is_none());
}
