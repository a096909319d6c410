//! SIMD lanes: several operations in little more than the time of one.

mod crossover;
mod lone;
mod ml_dsa;
mod ml_kem;
mod p256;
mod p256_exchange;
mod parts;
mod x25519;

use crate::{Backend, Job, Key, KeyType, MlKem768, P256, Prices, Scalar, X25519, key::Material};
use crossover::Crossovers;
use parts::take_apart;
pub(crate) use parts::{Parts, parts};
pub use quadrille_kernels::{CEILING_VARIABLE, Ceiling, UnknownTier};
use quadrille_kernels::{PrivateKey, PrivateOperation};
use zeroize::Zeroizing;

/// RSA-2048, 3072 and 4096, ECDSA and ECDH on P-256, ML-DSA, X25519 and ML-KEM-768, in the lanes of vector registers
/// (`quadrille-kernels`); all other operations are scalar.
#[derive(Debug)]
pub struct Lanes {
    lanes: quadrille_kernels::Lanes,
    crossovers: Crossovers,
}

/// Returns the fastest backend that this CPU supports and the environment variable `QUADRILLE_CPU` (`portable`,
/// `avx2`, `ifma`) allows.
///
/// # Errors
/// [`UnknownTier`] if the variable has another value.
pub fn fastest() -> Result<Box<dyn Backend>, UnknownTier> {
    Ceiling::from_environment().map(fastest_up_to)
}

/// Returns the tier that this CPU supports and `ceiling` allows, and its RSA width, without measuring.
pub fn tier(ceiling: Ceiling) -> (&'static str, usize) {
    let lanes = quadrille_kernels::Lanes::up_to(ceiling);
    (lanes.name(), lanes.width())
}

/// Returns the fastest backend that this CPU supports and `ceiling` allows. Measures the crossovers, which takes some
/// 30 ms.
pub fn fastest_up_to(ceiling: Ceiling) -> Box<dyn Backend> {
    match quadrille_kernels::Lanes::up_to(ceiling) {
        lanes if lanes.width() == 1 => Box::new(Scalar),
        lanes => Box::new(Lanes { crossovers: Crossovers::measure(&lanes), lanes }),
    }
}

impl Lanes {
    /// Computes up to [`width`](Backend::width) jobs side by side. Jobs with a key that lanes do not support, or with
    /// a result that the public key did not confirm, stay unfinished: the engine gives them to the scalar backend.
    fn pass(&self, jobs: &mut [Job<'_>]) {
        if jobs.first().is_some_and(|first| jobs.len() <= self.one_by_one(first.key().key_type())) {
            return jobs.iter_mut().for_each(alone);
        }
        let mut filled: Vec<Filled<'_, '_>> =
            jobs.iter_mut().filter_map(|job| Filled::new(job, &self.lanes)).collect();
        let mut ops: Vec<_> = filled.iter_mut().map(Filled::op).collect();
        self.lanes.private_operations(&mut ops);
        let sound: Vec<bool> = ops.iter().map(|op| op.outcome().is_ok()).collect();
        for (lane, _) in filled.into_iter().zip(sound).filter(|(_, sound)| *sound) {
            lane.job.finish(Ok(lane.output));
        }
    }
}

impl Lanes {
    /// Number of operations of this type up to which AWS-LC computes them instead of a pass.
    fn one_by_one(&self, key_type: KeyType) -> usize {
        match key_type {
            KeyType::Rsa { bits } if is_for_lanes(key_type) => self.crossovers.one_by_one(bits),
            _ => 0,
        }
    }
}

/// Computes one job by AWS-LC; if that fails, the job stays unfinished.
fn alone(job: &mut Job<'_>) {
    let input = job.rsa_input().ok();
    let output = lone::prepared(job.key()).zip(input).and_then(|(key, input)| key.compute(&input));
    if let Some(output) = output {
        job.finish(Ok(output));
    }
}

impl Backend for Lanes {
    fn name(&self) -> &'static str {
        self.lanes.name()
    }

    fn width(&self, key_type: KeyType) -> usize {
        match key_type {
            KeyType::EcdsaP256 => self.lanes.p256_width(),
            KeyType::MlDsa(_) => self.lanes.ml_dsa_width(),
            _ if is_for_lanes(key_type) => self.lanes.width(),
            _ => 1,
        }
    }

    fn crossover(&self, key_type: KeyType) -> usize {
        match key_type {
            KeyType::EcdsaP256 if self.lanes.p256_width() > 1 => self.crossovers.p256,
            // A lone signature is faster than the verified one of a library (docs/kernels/measurements.md).
            KeyType::MlDsa(_) if self.lanes.ml_dsa_width() > 1 => 1,
            KeyType::Rsa { bits } if is_for_lanes(key_type) => self.crossovers.for_bits(bits),
            _ => usize::MAX,
        }
    }

    fn prices(&self, key_type: KeyType) -> Option<Prices> {
        match key_type {
            KeyType::MlDsa(_) => Some(ml_dsa::PRICES),
            KeyType::Rsa { bits } if is_for_lanes(key_type) => Some(self.crossovers.prices(bits)),
            _ => None,
        }
    }

    fn prepare(&self, key: &Key) {
        match key.key_type() {
            KeyType::EcdsaP256 => drop(p256::prepared(key)),
            KeyType::MlDsa(_) => {}
            key_type => {
                let _ = prepared(key, &self.lanes);
                if self.one_by_one(key_type) > 0 {
                    let _ = lone::prepared(key);
                }
            }
        }
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        match batch.first().map(|job| job.key().key_type()) {
            Some(KeyType::EcdsaP256) => p256::sign(&self.lanes, batch),
            Some(KeyType::MlDsa(_)) => ml_dsa::sign(&self.lanes, batch),
            _ => batch.chunks_mut(self.lanes.width()).for_each(|jobs| self.pass(jobs)),
        }
    }

    fn x25519(&self) -> Option<&dyn X25519> {
        (self.lanes.x25519_width() > 1).then_some(self)
    }

    fn p256(&self) -> Option<&dyn P256> {
        (self.lanes.p256_width() > 1).then_some(self)
    }

    fn ml_kem(&self) -> Option<&dyn MlKem768> {
        (self.lanes.ml_kem_width() > 1).then_some(self)
    }

    /// The kernels raise every RSA result to the public exponent, all lanes at once, and verify signatures of
    /// ECDSA and ML-DSA.
    fn verifies(&self) -> bool {
        true
    }
}

fn is_for_lanes(key_type: KeyType) -> bool {
    matches!(key_type, KeyType::Rsa { bits: 2048 | 3072 | 4096 })
}

/// Job in its lane.
struct Filled<'job, 'a> {
    job: &'job mut Job<'a>,
    key: &'a PrivateKey,
    input: Zeroizing<Vec<u8>>,
    output: Zeroizing<Vec<u8>>,
}

impl<'job, 'a> Filled<'job, 'a> {
    fn new(job: &'job mut Job<'a>, lanes: &quadrille_kernels::Lanes) -> Option<Self> {
        let key = prepared(job.key(), lanes)?;
        let input = job.rsa_input().ok()?;
        let output = Zeroizing::new(vec![0; input.len()]);
        Some(Self { job, key, input, output })
    }

    fn op(&mut self) -> PrivateOperation<'_, PrivateKey> {
        PrivateOperation::new(self.key, &self.input, &mut self.output)
    }
}

/// Returns the key in the form used by lanes, computed once; `None` if lanes do not support it: another size, or no
/// primes.
pub(crate) fn prepared<'a>(key: &'a Key, lanes: &quadrille_kernels::Lanes) -> Option<&'a PrivateKey> {
    let take_apart = || match key.material() {
        Material::Rsa(rsa) if is_for_lanes(key.key_type()) => {
            take_apart(rsa).inspect(|key| lanes.prepare(key))
        }
        _ => None,
    };
    key.prepared::<Option<PrivateKey>>(take_apart).as_ref()
}
