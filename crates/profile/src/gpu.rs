//! RSA on the GPU: operations a second, and how long each takes at half of that, beside all cores of the CPU.

use boring::{
    bn::BigNumRef,
    pkey::Private,
    rsa::{Padding, Rsa},
};
use quadrille_kernels::{Ceiling, LaneOp, Lanes};
pub use quadrille_kernels_cuda::KeySize;
use quadrille_kernels_cuda::{Components, DeviceKey, Gpu, GpuOp, PrivateKey, Unavailable};
use serde::Serialize;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// What was measured of one key size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// As its driver names it.
    pub device: String,
    /// For instance `RSA-2048`.
    pub algorithm: String,
    /// Operations of a batch; as many batches as the GPU has lanes were under way.
    pub batch: usize,
    /// Operations a second, by the clock on the wall: verified results, transfers included.
    pub per_second: f64,
    /// Of what the GPU's multipliers could do if they did nothing else.
    pub part_of_multiply_bound: f64,
    /// Milliseconds from an operation's arrival to its result, when operations arrive at half of that rate.
    pub milliseconds_median: f64,
    /// The same for the slowest of a hundred.
    pub milliseconds_p99: f64,
    /// Operations a second of all cores of the CPU at once, before the GPU was measured.
    pub cpu_per_second: f64,
    /// What the cores used: a tier of lanes, or `portable`.
    pub cpu_by: &'static str,
}

/// Opens the GPU, if there is one.
///
/// # Errors
/// Why there is none to compute with.
pub fn open() -> Result<Gpu, Unavailable> {
    Gpu::open(&quadrille_kernels_cuda::Options::default())
}

/// Measures each key size three times `turn`: the CPU, the GPU's rate, its latency at half of it.
///
/// # Errors
/// A sentence, if the GPU is lost, refuses a key, or gives a wrong result.
pub fn measure(gpu: &Gpu, sizes: &[KeySize], turn: Duration) -> Result<Vec<Rates>, String> {
    sizes.iter().map(|&size| of_size(gpu, size, turn)).collect()
}

/// A key with an input and what must come of it.
struct Known {
    key: DeviceKey,
    input: Vec<u8>,
    result: Vec<u8>,
}

fn of_size(gpu: &Gpu, size: KeySize, turn: Duration) -> Result<Rates, String> {
    let failed = |error: &dyn std::fmt::Display| format!("RSA-{}: {error}", size.bits());
    let bits = u32::try_from(size.bits()).unwrap_or(0);
    let made = || Rsa::generate(bits).map_err(|error| failed(&error));
    let keys = [made()?, made()?];
    let known = |rsa| known(gpu, rsa).map_err(|error| failed(&error));
    let known = [known(&keys[0])?, known(&keys[1])?];
    let (cpu_per_second, cpu_by) =
        cores(&keys[0], turn).ok_or_else(|| failed(&"the lanes refuse the key"))?;
    let batch = gpu.capacity(size);
    run(gpu, &known, batch).map_err(|error| failed(&error))?; // the first is not like the others
    let per_second = throughput(gpu, &known, batch, turn).map_err(|error| failed(&error))?;
    let mut latencies =
        at_rate(gpu, &known, batch, per_second / 2.0, turn).map_err(|error| failed(&error))?;
    latencies.sort_by(f64::total_cmp);
    let quantile =
        |part: f64| latencies.get((latencies.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    Ok(Rates {
        device: gpu.name().to_owned(),
        algorithm: format!("RSA-{}", size.bits()),
        batch,
        per_second,
        part_of_multiply_bound: per_second / gpu.multiply_bound(size),
        milliseconds_median: quantile(0.5) * 1e3,
        milliseconds_p99: quantile(0.99) * 1e3,
        cpu_per_second,
        cpu_by,
    })
}

fn known(gpu: &Gpu, rsa: &Rsa<Private>) -> Result<Known, String> {
    let [n, e, p, q, dp, dq, qinv] = &numbers_of(rsa).ok_or("the key has no primes")?;
    let key = PrivateKey::new(&Components { n, e, p, q, dp, dq, qinv }).map_err(|error| error.to_string())?;
    let key = gpu.upload(&key).map_err(|error| error.to_string())?;
    let len = rsa.size() as usize;
    let input: Vec<u8> = [&[0][..], &vec![0x5a; len - 1]].concat();
    let mut result = vec![0; len];
    rsa.private_encrypt(&input, &mut result, Padding::NONE).map_err(|error| error.to_string())?;
    Ok(Known { key, input, result })
}

/// One batch; the last result is compared with BoringSSL's, all were checked on the device.
fn run(gpu: &Gpu, known: &[Known], count: usize) -> Result<(), String> {
    let chosen = || known.iter().cycle().take(count);
    let mut outputs: Vec<Vec<u8>> = chosen().map(|known| vec![0; known.input.len()]).collect();
    let mut ops: Vec<GpuOp<'_>> = chosen()
        .zip(&mut outputs)
        .map(|(known, output)| GpuOp::new(&known.key, &known.input, output))
        .collect();
    gpu.run(&mut ops).map_err(|error| error.to_string())?;
    if let Some(error) = ops.iter().find_map(|op| op.outcome().err()) {
        return Err(error.to_string());
    }
    let right = ops.last().zip(chosen().last()).is_none_or(|(op, known)| op.output() == known.result);
    right.then_some(()).ok_or_else(|| Unavailable::Wrong.to_string())
}

/// Operations a second with all lanes of the GPU busy.
fn throughput(gpu: &Gpu, known: &[Known], batch: usize, turn: Duration) -> Result<f64, String> {
    let done = AtomicUsize::new(0);
    let began = Instant::now();
    in_lanes(gpu, || {
        while began.elapsed() < turn {
            run(gpu, known, batch)?;
            done.fetch_add(batch, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(done.into_inner() as f64 / began.elapsed().as_secs_f64())
}

/// Seconds from arrival to result, of operations that arrive evenly; a lane that is free takes what has arrived.
fn at_rate(gpu: &Gpu, known: &[Known], most: usize, rate: f64, turn: Duration) -> Result<Vec<f64>, String> {
    let began = Instant::now();
    let (taken, latencies) = (Mutex::new(0.0), Mutex::new(Vec::new()));
    in_lanes(gpu, || {
        loop {
            let mut until = taken.lock().unwrap_or_else(PoisonError::into_inner);
            if *until >= turn.as_secs_f64() {
                return Ok(());
            }
            let first = *until;
            let count = (((began.elapsed().as_secs_f64() - first) * rate) as usize).min(most);
            *until = first + count as f64 / rate;
            drop(until);
            if count == 0 {
                thread::sleep(Duration::from_micros(50));
                continue;
            }
            run(gpu, known, count)?;
            let end = began.elapsed().as_secs_f64();
            let each = (0..count).step_by(count.div_ceil(64)).map(|i| end - (first + i as f64 / rate));
            latencies.lock().unwrap_or_else(PoisonError::into_inner).extend(each);
        }
    })?;
    Ok(latencies.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The same in as many threads as the GPU has lanes.
fn in_lanes(gpu: &Gpu, work: impl Fn() -> Result<(), String> + Sync) -> Result<(), String> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..gpu.lanes()).map(|_| scope.spawn(&work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

/// Operations a second of all cores at once, each with full lanes.
fn cores(rsa: &Rsa<Private>, turn: Duration) -> Option<(f64, &'static str)> {
    let [n, e, p, q, dp, dq, qinv] = &numbers_of(rsa)?;
    let components = quadrille_kernels::Components { n, e, p, q, dp, dq, qinv };
    let key = quadrille_kernels::PrivateKey::new(&components).ok()?;
    let lanes = Lanes::up_to(Ceiling::default());
    lanes.prepare(&key);
    let input: Vec<u8> = [&[0][..], &vec![0x5a; n.len() - 1]].concat();
    let done = AtomicUsize::new(0);
    let began = Instant::now();
    let work = || {
        let mut outputs = vec![vec![0; input.len()]; lanes.width()];
        while began.elapsed() < turn {
            let mut ops: Vec<LaneOp<'_>> =
                outputs.iter_mut().map(|output| LaneOp::new(&key, &input, output)).collect();
            lanes.private_operations(&mut ops);
            done.fetch_add(lanes.width(), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    Some((done.into_inner() as f64 / began.elapsed().as_secs_f64(), lanes.name()))
}

/// n, e, p, q, dp, dq, qinv of a key that has them all.
pub(crate) fn numbers_of(rsa: &Rsa<Private>) -> Option<[Vec<u8>; 7]> {
    let bytes = |number: &BigNumRef| number.to_vec();
    Some([
        bytes(rsa.n()),
        bytes(rsa.e()),
        bytes(rsa.p()?),
        bytes(rsa.q()?),
        bytes(rsa.dmp1()?),
        bytes(rsa.dmq1()?),
        bytes(rsa.iqmp()?),
    ])
}
