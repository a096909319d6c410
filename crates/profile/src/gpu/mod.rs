//! RSA on the GPU: operations per second, and the latency at half that rate, compared with all cores of the CPU.

mod agreement;
mod sweep;

pub use agreement::agree;
pub use sweep::{Point, sweep};

use boring::{
    bn::BigNumRef,
    pkey::Private,
    rsa::{Padding, Rsa},
};
use quadrille_kernels::{Ceiling, Computed, Lanes, PrivateOperation};
pub use quadrille_kernels_cuda::KeySize;
use quadrille_kernels_cuda::{Components, DeviceKey, Gpu, PrivateKey, Unavailable};
use serde::Serialize;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Measurements of one key size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Device name reported by the driver.
    pub device: String,
    /// Name of the algorithm, for instance `RSA-2048`.
    pub algorithm: String,
    /// Operations per batch; one batch per lane of the GPU was in flight.
    pub batch: usize,
    /// Operations per second of wall-clock time: includes transfers, and every result is checked with the public key
    /// on the device and again on the host, as in the engine.
    pub per_second: f64,
    /// Operations per second without the check on the host: the rate of the device.
    pub per_second_unchecked: f64,
    /// Rate of the device, as a fraction of the bound given by its multipliers.
    pub part_of_multiply_bound: f64,
    /// Median time in milliseconds from an operation's arrival to its result, when operations arrive at half that
    /// rate.
    pub milliseconds_median: f64,
    /// 99th percentile of that time.
    pub milliseconds_p99: f64,
    /// Operations per second of all CPU cores together, measured before the GPU.
    pub cpu_per_second: f64,
    /// Implementation on the cores: a tier of lanes, or `portable`.
    pub cpu_by: &'static str,
}

/// Opens the GPU, if there is one.
///
/// # Errors
/// The reason that no GPU is usable.
pub fn open() -> Result<Gpu, Unavailable> {
    Gpu::open(&quadrille_kernels_cuda::Options::default())
}

/// Measures each key size four times for `turn`: the CPU, the GPU's rate without and with the check on the host, and
/// its latency at half that rate.
///
/// # Errors
/// A message, if the GPU is lost, rejects a key, or returns a wrong result.
pub fn measure(gpu: &Gpu, sizes: &[KeySize], turn: Duration) -> Result<Vec<Rates>, String> {
    sizes.iter().map(|&size| of_size(gpu, size, turn)).collect()
}

/// A key with an input and its expected result.
struct Known {
    key: DeviceKey,
    in_lanes: quadrille_kernels::PrivateKey,
    input: Vec<u8>,
    result: Vec<u8>,
}

fn of_size(gpu: &Gpu, size: KeySize, turn: Duration) -> Result<Rates, String> {
    let failed = |error: &dyn std::fmt::Display| format!("RSA-{}: {error}", size.bits());
    let made = || generate(size).map_err(|error| failed(&error));
    let keys = [made()?, made()?];
    let known = |rsa| known(gpu, rsa).map_err(|error| failed(&error));
    let known = [known(&keys[0])?, known(&keys[1])?];
    let (cpu_per_second, cpu_by) =
        cores(&keys[0], turn).ok_or_else(|| failed(&"the lanes reject the key"))?;
    let batch = gpu.capacity(size);
    let work = Work { gpu, known: &known, lanes: Lanes::up_to(Ceiling::default()) };
    work.run(batch).map_err(|error| failed(&error))?; // the first batch is not representative
    let per_second_unchecked =
        throughput(gpu, batch, turn, |count| work.run(count).map(drop)).map_err(|error| failed(&error))?;
    let per_second =
        throughput(gpu, batch, turn, |count| work.run_checked(count)).map_err(|error| failed(&error))?;
    let mut latencies = at_rate(&work, batch, per_second / 2.0, turn).map_err(|error| failed(&error))?;
    latencies.sort_by(f64::total_cmp);
    let quantile =
        |part: f64| latencies.get((latencies.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    Ok(Rates {
        device: gpu.name().to_owned(),
        algorithm: format!("RSA-{}", size.bits()),
        batch,
        per_second,
        per_second_unchecked,
        part_of_multiply_bound: per_second_unchecked / gpu.multiply_bound(size),
        milliseconds_median: quantile(0.5) * 1e3,
        milliseconds_p99: quantile(0.99) * 1e3,
        cpu_per_second,
        cpu_by,
    })
}

fn generate(size: KeySize) -> Result<Rsa<Private>, String> {
    let bits = u32::try_from(size.bits()).unwrap_or(0);
    Rsa::generate(bits).map_err(|error| error.to_string())
}

fn known(gpu: &Gpu, rsa: &Rsa<Private>) -> Result<Known, String> {
    let numbers = numbers_of(rsa).ok_or("the key has no primes")?;
    let key = upload(gpu, &numbers)?;
    let in_lanes = for_lanes(&numbers)?;
    let len = rsa.size() as usize;
    let input: Vec<u8> = [&[0][..], &vec![0x5a; len - 1]].concat();
    let mut result = vec![0; len];
    rsa.private_encrypt(&input, &mut result, Padding::NONE).map_err(|error| error.to_string())?;
    Ok(Known { key, in_lanes, input, result })
}

fn upload(gpu: &Gpu, [n, e, p, q, dp, dq, qinv]: &[Vec<u8>; 7]) -> Result<DeviceKey, String> {
    let key = PrivateKey::new(&Components { n, e, p, q, dp, dq, qinv }).map_err(|error| error.to_string())?;
    gpu.upload(&key).map_err(|error| error.to_string())
}

fn for_lanes([n, e, p, q, dp, dq, qinv]: &[Vec<u8>; 7]) -> Result<quadrille_kernels::PrivateKey, String> {
    let components = quadrille_kernels::Components { n, e, p, q, dp, dq, qinv };
    quadrille_kernels::PrivateKey::new(&components).map_err(|error| error.to_string())
}

/// Batches of operations with known results.
struct Work<'a> {
    gpu: &'a Gpu,
    known: &'a [Known],
    lanes: Lanes,
}

impl Work<'_> {
    /// Runs one batch. The last result is compared with BoringSSL's; all are checked on the device.
    fn run(&self, count: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut outputs: Vec<Vec<u8>> = self.chosen(count).map(|known| vec![0; known.input.len()]).collect();
        let mut ops: Vec<_> = self
            .chosen(count)
            .zip(&mut outputs)
            .map(|(known, output)| PrivateOperation::new(&known.key, &known.input, output))
            .collect();
        self.gpu.run(&mut ops).map_err(|error| error.to_string())?;
        if let Some(error) = ops.iter().find_map(|op| op.outcome().err()) {
            return Err(error.to_string());
        }
        let right = ops.last().zip(self.chosen(count).last());
        let right = right.is_none_or(|(op, known)| op.output() == known.result);
        right.then_some(outputs).ok_or_else(|| Unavailable::Wrong.to_string())
    }

    /// Runs one batch, and raises each result to the public exponent on the host.
    fn run_checked(&self, count: usize) -> Result<(), String> {
        let results = self.run(count)?;
        let computed = self.chosen(count).zip(&results);
        let computed: Vec<_> = computed
            .map(|(known, result)| Computed { key: &known.in_lanes, input: &known.input, result })
            .collect();
        let right = computed.chunks(64).all(|chunk| !self.lanes.confirm(chunk).contains(&false));
        right.then_some(()).ok_or_else(|| Unavailable::Wrong.to_string())
    }

    fn chosen(&self, count: usize) -> impl Iterator<Item = &Known> {
        self.known.iter().cycle().take(count)
    }
}

/// Measures operations per second with all lanes of the GPU busy.
fn throughput(
    gpu: &Gpu,
    batch: usize,
    turn: Duration,
    run: impl Fn(usize) -> Result<(), String> + Sync,
) -> Result<f64, String> {
    let done = AtomicUsize::new(0);
    let began = Instant::now();
    in_lanes(gpu, || {
        while began.elapsed() < turn {
            run(batch)?;
            done.fetch_add(batch, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(done.into_inner() as f64 / began.elapsed().as_secs_f64())
}

/// Measures seconds from arrival to result of operations that arrive evenly; a free lane takes all that have arrived.
fn at_rate(work: &Work<'_>, most: usize, rate: f64, turn: Duration) -> Result<Vec<f64>, String> {
    let began = Instant::now();
    let (taken, latencies) = (Mutex::new(0.0), Mutex::new(Vec::new()));
    in_lanes(work.gpu, || {
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
            work.run_checked(count)?;
            let end = began.elapsed().as_secs_f64();
            let each = (0..count).step_by(count.div_ceil(64)).map(|i| end - (first + i as f64 / rate));
            latencies.lock().unwrap_or_else(PoisonError::into_inner).extend(each);
        }
    })?;
    Ok(latencies.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `work` in one thread for each lane of the GPU.
fn in_lanes(gpu: &Gpu, work: impl Fn() -> Result<(), String> + Sync) -> Result<(), String> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..gpu.lanes()).map(|_| scope.spawn(&work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

/// Measures operations per second of all cores that this process may use, each with full lanes; also returns the
/// implementation.
///
/// # Errors
/// A message, if key generation fails.
pub fn on_all_cores(size: KeySize, turn: Duration) -> Result<(f64, &'static str), String> {
    cores(&generate(size)?, turn).ok_or_else(|| "the lanes reject the key".to_owned())
}

fn cores(rsa: &Rsa<Private>, turn: Duration) -> Option<(f64, &'static str)> {
    let numbers = numbers_of(rsa)?;
    let key = for_lanes(&numbers).ok()?;
    let lanes = Lanes::up_to(Ceiling::default());
    lanes.prepare(&key);
    let input: Vec<u8> = [&[0][..], &vec![0x5a; numbers[0].len() - 1]].concat();
    let done = AtomicUsize::new(0);
    let began = Instant::now();
    let work = || {
        let mut outputs = vec![vec![0; input.len()]; lanes.width()];
        while began.elapsed() < turn {
            let mut ops: Vec<_> =
                outputs.iter_mut().map(|output| PrivateOperation::new(&key, &input, output)).collect();
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

/// Returns n, e, p, q, dp, dq, qinv of a key that has all of them.
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
