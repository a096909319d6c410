//! GPU beside the backend, for load that the lanes cannot compute in time (`quadrille-kernels-cuda`).

mod ml_dsa;
mod rsa;

use crate::{
    Backend, Job, Key, KeyType, MlKem768, Overflow, P256, Prices, X25519, key::Material, lanes::prepared,
};
use quadrille_kernels::{Ceiling, Lanes};
use quadrille_kernels_cuda::{Gpu as Device, MlDsaSigner, Options, Unavailable};
use std::sync::{Arc, OnceLock};

/// Number of results checked together on the host before any of them is released: a few passes of the lanes.
const CHECKED_TOGETHER: usize = 64;

/// An open GPU.
#[derive(Debug)]
pub struct Gpu {
    device: Device,
    /// Opened for the first key of ML-DSA; `None` if that failed.
    signer: OnceLock<Option<MlDsaSigner>>,
    /// Verifies every result on the host.
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
        Device::open(options).map(|device| Self {
            device,
            signer: OnceLock::new(),
            lanes: Lanes::up_to(ceiling),
        })
    }

    /// Combines `backend` with this GPU, which gets only the load that `backend` cannot compute in time.
    pub fn behind(self, backend: Box<dyn Backend>) -> Box<dyn Backend> {
        Box::new(WithGpu { backend, gpu: Arc::new(self) })
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
        match key_type {
            KeyType::MlDsa(set) => self.ml_dsa_capacity(set),
            _ => self.rsa_capacity(key_type),
        }
    }

    fn compute(&self, batch: &mut [Job<'_>]) -> Result<(), String> {
        match batch.first().map(|job| job.key().key_type()) {
            Some(KeyType::MlDsa(_)) => self.compute_ml_dsa(batch),
            _ => self.compute_rsa(batch),
        }
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
        match key.material() {
            Material::MlDsa(_) => {
                self.gpu.uploaded_ml_dsa(key);
            }
            _ => {
                prepared(key, &self.gpu.lanes);
                self.gpu.uploaded(key);
            }
        }
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
