//! GPU beside the backend, for load that the lanes cannot compute in time (`quadrille-kernels-cuda`).

use crate::{
    Backend, Job, Key, KeyType, MlKem768, OperationError, Overflow, P256, Prices, X25519,
    key::Material,
    lanes::{Parts, parts, prepared},
    verify,
};
use quadrille_kernels::{Ceiling, Computed, Lanes};
use quadrille_kernels_cuda::{
    Components, DeviceKey, Gpu as Device, KeySize, Options, PrivateKey, PrivateOperation,
    PrivateOperationError, Unavailable,
};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Number of results checked together on the host before any of them is released: a few passes of the lanes.
const CHECKED_TOGETHER: usize = 64;

/// An open GPU.
#[derive(Debug)]
pub struct Gpu {
    device: Device,
    /// Raises every result to the public exponent, on the host.
    lanes: Lanes,
}

impl Gpu {
    /// Opens the first NVIDIA GPU, if there is one. Takes some seconds the first time.
    ///
    /// # Errors
    /// The reason for which no GPU is usable.
    pub fn open() -> Result<Self, Unavailable> {
        Self::open_with(&Options::default())
    }

    /// Opens a GPU with another driver or other bounds.
    ///
    /// # Errors
    /// The reason for which no GPU is usable.
    pub fn open_with(options: &Options) -> Result<Self, Unavailable> {
        // An invalid tier name is reported when the backend is chosen.
        let ceiling = Ceiling::from_environment().unwrap_or_default();
        Device::open(options).map(|device| Self { device, lanes: Lanes::up_to(ceiling) })
    }

    /// Combines `backend` with this GPU, which gets only the load that `backend` cannot compute in time.
    pub fn behind(self, backend: Box<dyn Backend>) -> Box<dyn Backend> {
        Box::new(WithGpu { backend, gpu: Arc::new(self) })
    }

    /// Key on the device, uploaded once; `None` if the GPU does not support it, or had no room when it was first
    /// used.
    fn uploaded<'a>(&self, key: &'a Key) -> Option<&'a DeviceKey> {
        let upload = || match key.material() {
            Material::Rsa(rsa) if size_of(key.key_type()).is_some() => {
                let Parts { n, e, p, q, dp, dq, qinv } = &parts(rsa)?;
                let key = PrivateKey::new(&Components { n, e, p, q, dp, dq, qinv }).ok()?;
                self.device.upload(&key).ok()
            }
            _ => None,
        };
        key.prepared::<Option<DeviceKey>>(upload).as_ref()
    }

    /// Returns which results the public key confirms. Checked on the host, independently of the device's status.
    fn confirm(&self, filled: &[Filled<'_, '_>]) -> Vec<bool> {
        let prepared: Vec<_> = filled.iter().map(|one| prepared(one.job.key(), &self.lanes)).collect();
        let computed = filled
            .iter()
            .zip(&prepared)
            .filter_map(|(one, key)| Some(Computed { key: (*key)?, input: &one.input, result: &one.output }));
        let mut in_lanes = self.lanes.confirm(&computed.collect::<Vec<_>>()).into_iter();
        let confirm = |(one, key): (&Filled<'_, '_>, &Option<_>)| match key {
            Some(_) => in_lanes.next().unwrap_or(false),
            None => verify::holds(one.job.key().public(), one.job.operation(), &one.output),
        };
        filled.iter().zip(&prepared).map(confirm).collect()
    }
}

impl Overflow for Gpu {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn device(&self) -> &str {
        self.device.name()
    }

    fn lanes(&self) -> usize {
        self.device.lanes()
    }

    fn capacity(&self, key_type: KeyType) -> usize {
        size_of(key_type).map_or(0, |size| self.device.capacity(size))
    }

    fn compute(&self, batch: &mut [Job<'_>]) -> Result<(), String> {
        let mut filled: Vec<Filled<'_, '_>> =
            batch.iter_mut().filter_map(|job| Filled::new(job, self)).collect();
        let mut ops: Vec<_> = filled.iter_mut().map(Filled::op).collect();
        self.device.run(&mut ops).map_err(|reason| reason.to_string())?;
        let outcomes: Vec<_> = ops.iter().map(PrivateOperation::outcome).collect();
        let mut sound = Vec::with_capacity(filled.len());
        for (one, outcome) in filled.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => sound.push(one),
                // The scalar backend computes it, and counts it.
                Err(PrivateOperationError::Fault) => one.job.finish(Err(OperationError::Failed)),
                // The key belongs to another process or engine: the lanes compute it.
                Err(_) => {}
            }
        }
        self.let_out(&mut sound)
    }
}

impl Gpu {
    /// Finishes the results that the host confirms. After a result that it does not confirm, the device is retired.
    fn let_out(&self, sound: &mut [Filled<'_, '_>]) -> Result<(), String> {
        for filled in sound.chunks_mut(CHECKED_TOGETHER) {
            if self.confirm(filled).contains(&false) {
                self.device.lose(&Unavailable::Wrong);
                return Err(Unavailable::Wrong.to_string());
            }
            for one in filled {
                let output = std::mem::take(&mut one.output);
                one.job.finish(Ok(output));
            }
        }
        Ok(())
    }
}

fn size_of(key_type: KeyType) -> Option<KeySize> {
    match key_type {
        KeyType::Rsa { bits } => KeySize::from_bits(bits as usize),
        _ => None,
    }
}

/// Backend with a GPU behind it.
struct WithGpu {
    backend: Box<dyn Backend>,
    gpu: Arc<Gpu>,
}

impl Backend for WithGpu {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn width(&self, key_type: KeyType) -> usize {
        self.backend.width(key_type)
    }

    fn crossover(&self, key_type: KeyType) -> usize {
        self.backend.crossover(key_type)
    }

    fn prices(&self, key_type: KeyType) -> Option<Prices> {
        self.backend.prices(key_type)
    }

    fn prepare(&self, key: &Key) {
        self.backend.prepare(key);
        prepared(key, &self.gpu.lanes);
        self.gpu.uploaded(key);
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        self.backend.compute(batch);
    }

    fn verifies(&self) -> bool {
        self.backend.verifies()
    }

    fn x25519(&self) -> Option<&dyn X25519> {
        self.backend.x25519()
    }

    fn p256(&self) -> Option<&dyn P256> {
        self.backend.p256()
    }

    fn ml_kem(&self) -> Option<&dyn MlKem768> {
        self.backend.ml_kem()
    }

    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        Some(Arc::clone(&self.gpu) as Arc<dyn Overflow>)
    }
}

/// Job with the memory that the device fills.
struct Filled<'job, 'a> {
    job: &'job mut Job<'a>,
    key: &'a DeviceKey,
    input: Zeroizing<Vec<u8>>,
    output: Zeroizing<Vec<u8>>,
}

impl<'job, 'a> Filled<'job, 'a> {
    fn new(job: &'job mut Job<'a>, gpu: &Gpu) -> Option<Self> {
        let key = gpu.uploaded(job.key())?;
        let input = job.rsa_input().ok()?;
        let output = Zeroizing::new(vec![0; input.len()]);
        Some(Self { job, key, input, output })
    }

    fn op(&mut self) -> PrivateOperation<'_, DeviceKey> {
        PrivateOperation::new(self.key, &self.input, &mut self.output)
    }
}
