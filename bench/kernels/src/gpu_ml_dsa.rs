//! Signatures of ML-DSA on the GPU, each begun and verified on the host in lanes, compared with the lanes of all cores.

use std::{
    error::Error,
    fs,
    path::Path,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use quadrille_kernels::{
    Ceiling, Lanes, MlDsa, MlDsaCandidate, MlDsaKey, MlDsaMessage, MlDsaSignature, MlDsaStart,
};
use quadrille_kernels_cuda::{
    Gpu, MlDsaDeviceKey, MlDsaKeyNumbers, MlDsaOperation, MlDsaPrivateKey, MlDsaSet, MlDsaSigner, Options,
};
use serde::Serialize;

/// Largest first, so that a profiler sees full batches.
const BATCHES: [usize; 5] = [65_536, 16_384, 8192, 2048, 512];
/// Operations that a thread begins, and verifies, at a time: the caches hold them.
const HOST_BATCH: usize = 64;
const KEYS: u8 = 4;

/// Rates of one parameter set and batch size, operations per second of wall-clock time.
#[derive(Serialize)]
struct Point {
    algorithm: &'static str,
    batch: usize,
    /// Begun and verified on the host.
    per_second: f64,
    /// Rate of the device alone, from seeds that were computed before.
    on_device: f64,
    /// One batch without others in progress.
    milliseconds_alone: f64,
    /// Lanes on all cores that this process may use.
    cores_per_second: f64,
}

struct Key {
    host: MlDsaKey,
    device: MlDsaDeviceKey,
}

/// Prints the table and writes the JSON next to the other file. Fails without a GPU.
pub(crate) fn run(turn: Duration, out: &Path) -> Result<(), Box<dyn Error>> {
    let gpu = Gpu::open(&Options::default())?;
    let signer = gpu.ml_dsa_signer(usize::from(KEYS))?;
    let lanes = Lanes::up_to(Ceiling::default());
    println!("ML-DSA on {}", gpu.name());
    println!(
        "{:10} {:>7} {:>12} {:>12} {:>10} {:>12}",
        "operation", "batch", "verified/s", "on device/s", "ms, alone", "all cores/s"
    );
    let mut points = Vec::new();
    for (algorithm, set, of_device) in [
        ("ML-DSA-44", MlDsa::MlDsa44, MlDsaSet::MlDsa44),
        ("ML-DSA-65", MlDsa::MlDsa65, MlDsaSet::MlDsa65),
        ("ML-DSA-87", MlDsa::MlDsa87, MlDsaSet::MlDsa87),
    ] {
        let keys: Vec<Key> =
            (0..KEYS).map(|seed| key(&lanes, &signer, set, of_device, seed)).collect::<Result<_, _>>()?;
        let work = Work { lanes: &lanes, signer: &signer, keys: &keys };
        let cores_per_second = in_threads(turn, || work.in_lanes())?;
        for batch in BATCHES {
            let began = Instant::now();
            let starts = work.start(batch)?;
            work.sign(&starts)?;
            let alone = Instant::now();
            work.sign(&starts)?;
            let milliseconds_alone = alone.elapsed().as_secs_f64() * 1e3;
            let point = Point {
                algorithm,
                batch,
                per_second: in_threads(turn, || work.whole(batch))?,
                on_device: in_threads(turn, || work.sign(&starts).map(|_| batch))?,
                milliseconds_alone,
                cores_per_second,
            };
            println!(
                "{algorithm:10} {batch:>7} {:>12.0} {:>12.0} {milliseconds_alone:>10.2} {cores_per_second:>12.0}   ({:.1} s)",
                point.per_second,
                point.on_device,
                began.elapsed().as_secs_f64()
            );
            points.push(point);
        }
    }
    let out = out.with_file_name("kernels-gpu-ml-dsa.json");
    fs::write(&out, serde_json::to_string_pretty(&points)? + "\n")?;
    println!("written to {}", out.display());
    Ok(())
}

fn key(
    lanes: &Lanes,
    signer: &MlDsaSigner,
    set: MlDsa,
    of_device: MlDsaSet,
    seed: u8,
) -> Result<Key, Box<dyn Error>> {
    let host = lanes.ml_dsa_key(set, &[seed; 32]);
    let numbers = host.numbers();
    let numbers =
        MlDsaKeyNumbers { matrix: &numbers.matrix, s1: &numbers.s1, s2: &numbers.s2, t0: &numbers.t0 };
    let device = signer.upload(&MlDsaPrivateKey::new(of_device, &numbers))?;
    Ok(Key { host, device })
}

struct Work<'a> {
    lanes: &'a Lanes,
    signer: &'a MlDsaSigner,
    keys: &'a [Key],
}

impl Work<'_> {
    fn key(&self, operation: usize) -> &Key {
        &self.keys[operation % self.keys.len()]
    }

    /// Begins operations, on different messages by their number.
    fn start(&self, count: usize) -> Result<Vec<MlDsaStart>, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let first = NEXT.fetch_add(count, Relaxed);
        let mut starts = Vec::with_capacity(count);
        for at in (0..count).step_by(HOST_BATCH) {
            let numbers = at..count.min(at + HOST_BATCH);
            let messages: Vec<[u8; 130]> = numbers.clone().map(|i| message(first.wrapping_add(i))).collect();
            let messages: Vec<_> = numbers
                .zip(&messages)
                .map(|(i, message)| (&self.key(i).host, MlDsaMessage::Pure { message, context: &[] }))
                .collect();
            starts.extend(self.lanes.start_ml_dsa(&messages).ok_or("no random numbers")?);
        }
        Ok(starts)
    }

    fn sign(&self, starts: &[MlDsaStart]) -> Result<Vec<Vec<u8>>, String> {
        let length = self.keys[0].device.parameter_set().signature_bytes();
        let mut signatures = vec![vec![0; length]; starts.len()];
        let mut ops: Vec<_> = starts
            .iter()
            .zip(&mut signatures)
            .enumerate()
            .map(|(i, (start, signature))| {
                MlDsaOperation::new(&self.key(i).device, &start.mu, &start.rho, signature)
            })
            .collect();
        self.signer.sign(&mut ops).map_err(|error| error.to_string())?;
        if !ops.iter().all(MlDsaOperation::is_signed) {
            return Err("an operation stayed unsigned".to_owned());
        }
        drop(ops);
        Ok(signatures)
    }

    /// Begins, signs and verifies; returns the number of operations.
    fn whole(&self, count: usize) -> Result<usize, String> {
        let starts = self.start(count)?;
        let signatures = self.sign(&starts)?;
        for (first, (starts, signatures)) in
            (0..).step_by(HOST_BATCH).zip(starts.chunks(HOST_BATCH).zip(signatures.chunks(HOST_BATCH)))
        {
            let candidates: Vec<MlDsaCandidate<'_>> = starts
                .iter()
                .zip(signatures)
                .enumerate()
                .map(|(i, (start, signature))| MlDsaCandidate {
                    key: &self.key(first + i).host,
                    mu: &start.mu,
                    signature,
                })
                .collect();
            if self.lanes.confirm_ml_dsa(&candidates).contains(&false) {
                return Err("the host does not confirm a signature".to_owned());
            }
        }
        Ok(count)
    }

    fn in_lanes(&self) -> Result<usize, String> {
        let set = self.keys[0].host.public_key().parameter_set();
        let messages: Vec<[u8; 130]> = (0..HOST_BATCH).map(message).collect();
        let mut signatures = vec![vec![0; set.signature_bytes()]; HOST_BATCH];
        let mut batch: Vec<_> = messages
            .iter()
            .zip(&mut signatures)
            .enumerate()
            .map(|(i, (message, signature))| {
                MlDsaSignature::new(
                    &self.key(i).host,
                    MlDsaMessage::Pure { message, context: &[] },
                    signature,
                )
            })
            .collect();
        self.lanes.sign_ml_dsa(&mut batch);
        Ok(HOST_BATCH)
    }
}

/// Message as long as what a server signs in TLS 1.3 with SHA-256.
fn message(number: usize) -> [u8; 130] {
    let mut message = [0x20; 130];
    message[..8].copy_from_slice(&(number as u64).to_le_bytes());
    message
}

/// Repeats the work in a thread for each core for this time, and returns the operations per second.
fn in_threads(turn: Duration, work: impl Fn() -> Result<usize, String> + Sync) -> Result<f64, String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (done, failed) = (AtomicUsize::new(0), AtomicU32::new(0));
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (done, failed, work) = (&done, &failed, &work);
            scope.spawn(move || {
                while began.elapsed() < turn {
                    match work() {
                        Ok(count) => done.fetch_add(count, Relaxed),
                        Err(error) => {
                            eprintln!("{error}");
                            failed.fetch_add(1, Relaxed);
                            return;
                        }
                    };
                }
            });
        }
    });
    if failed.into_inner() > 0 {
        return Err("a batch failed".to_owned());
    }
    Ok(done.into_inner() as f64 / began.elapsed().as_secs_f64())
}
