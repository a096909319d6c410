//! A GPU beside the backend: what the lanes cannot compute in time goes there (`quadrille-kernels-cuda`).

use crate::{
    Backend, Job, Key, KeyType, OperationError, Overflow,
    key::Material,
    lanes::{Parts, parts},
    verify,
};
use quadrille_kernels_cuda::{
    Components, DeviceKey, Gpu as Device, GpuOp, KeySize, OpError, Options, PrivateKey, Unavailable,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use zeroize::Zeroizing;

/// One result in so many, and at least one of every batch, is checked on the host too.
const SAMPLED: usize = 256;

/// An open GPU.
#[derive(Debug)]
pub struct Gpu {
    device: Device,
    /// Where in a batch the next sample is taken.
    next_sample: AtomicUsize,
}

impl Gpu {
    /// Opens the first NVIDIA GPU, if there is one. Takes some seconds the first time.
    ///
    /// # Errors
    /// Why there is none to compute with.
    pub fn open() -> Result<Self, Unavailable> {
        Self::open_with(&Options::default())
    }

    /// With another driver or other bounds.
    ///
    /// # Errors
    /// Why there is none to compute with.
    pub fn open_with(options: &Options) -> Result<Self, Unavailable> {
        Device::open(options).map(|device| Self { device, next_sample: AtomicUsize::new(0) })
    }

    /// This GPU behind `backend`, which computes all that it can compute in time.
    pub fn behind(self, backend: Box<dyn Backend>) -> Box<dyn Backend> {
        Box::new(WithGpu { backend, gpu: Arc::new(self) })
    }

    /// The key on the device, uploaded once; none if it is not for the GPU, or there was no room when it was first used.
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

    /// Whether those of the results that are looked at are right.
    fn samples_hold(&self, filled: &[Filled<'_, '_>], sound: &[bool]) -> bool {
        let first = self.next_sample.fetch_add(1, Ordering::Relaxed) % filled.len().clamp(1, SAMPLED);
        let chosen = filled.iter().zip(sound).skip(first).step_by(SAMPLED).filter(|(_, sound)| **sound);
        chosen
            .into_iter()
            .all(|(one, _)| verify::holds(one.job.key().public(), one.job.operation(), &one.output))
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
        let mut ops: Vec<GpuOp<'_>> = filled.iter_mut().map(Filled::op).collect();
        self.device.run(&mut ops).map_err(|reason| reason.to_string())?;
        let outcomes: Vec<_> = ops.iter().map(GpuOp::outcome).collect();
        let sound: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
        if !self.samples_hold(&filled, &sound) {
            self.device.lose(&Unavailable::Wrong);
            return Err(Unavailable::Wrong.to_string());
        }
        for (one, outcome) in filled.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => one.job.finish(Ok(one.output)),
                // The scalar backend computes it, and counts it.
                Err(OpError::Fault) => one.job.finish(Err(OperationError::Failed)),
                // Another process's or another engine's key: the lanes have it.
                Err(_) => {}
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

/// A backend with a GPU behind it.
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

    fn prepare(&self, key: &Key) {
        self.backend.prepare(key);
        self.gpu.uploaded(key);
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        self.backend.compute(batch);
    }

    fn verifies(&self) -> bool {
        self.backend.verifies()
    }

    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        Some(Arc::clone(&self.gpu) as Arc<dyn Overflow>)
    }
}

/// A job with the memory that the device fills.
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

    fn op(&mut self) -> GpuOp<'_> {
        GpuOp::new(self.key, &self.input, &mut self.output)
    }
}
