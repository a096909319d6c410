//! Public interface: opens the device once, uploads keys, runs batches.

use crate::{
    DeviceKey, KeySize, MlDsaSigner, PTX, PrivateKey, PrivateOperation, PrivateOperationError, Unavailable,
    UploadError,
    driver::{Device, Module},
    key::KernelSize,
    keys::{KeyStore, rsa_sizes},
    lane::{self, BLOCK, BLOCK52, Lane, Plan},
    pool::Pool,
};
use std::{
    ffi::{CStr, OsString},
    fmt,
    num::NonZeroUsize,
    sync::Arc,
    thread,
};

/// Device options and resource limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Driver library, found as by `dlopen`.
    pub library: OsString,
    /// Number of concurrent batches, each on a thread of the caller. Default: the number of the machine's cores, from
    /// 4 to 12. The device needs only two; but the host checks every result, some six microseconds each in IFMA
    /// lanes, so that one thread confirms some 160,000 a second, and an H100 computes 1.5 million.
    pub lanes: usize,
    /// Number of keys of each size that fit on the device: 1.7, 2.5 and 3.3 KB each.
    pub keys: usize,
    /// Arithmetic units for the exponentiations.
    pub arithmetic: Arithmetic,
}

impl Default for Options {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            library: "libcuda.so.1".into(),
            lanes: cores.clamp(4, 12),
            keys: 4096,
            arithmetic: Arithmetic::Auto,
        }
    }
}

/// Arithmetic units for the exponentiations. Every device supports both; the results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// The faster one on the device.
    #[default]
    Auto,
    /// Integer multipliers.
    Integer,
    /// FP64 units, numerous on data-centre devices. For RSA-2048 and 3072; RSA-4096 uses integers.
    Fp64,
}

impl Arithmetic {
    fn is_fp64(self, device: &Device) -> bool {
        match self {
            Self::Auto => (1..=2).contains(&device.single_to_double),
            Self::Integer => false,
            Self::Fp64 => true,
        }
    }
}

/// Open device. Share it between threads; it runs as many batches at once as it has lanes.
pub struct Gpu {
    // Drop order: lanes wait for kernels, which must end before their module is unloaded.
    pool: Pool<Lane>,
    lanes: usize,
    keys: Arc<KeyStore>,
    plans: [Plan; KeySize::ALL.len()],
    capacity: [usize; KeySize::ALL.len()],
    _module: Module,
    device: Arc<Device>,
}

impl Gpu {
    /// Loads the driver, opens the first device, and allocates the memory for keys and batches. The driver translates
    /// the kernels for the device, which takes seconds the first time; afterwards they are cached.
    ///
    /// # Errors
    /// [`Unavailable`], with the reason, if no device is usable.
    pub fn open(options: &Options) -> Result<Self, Unavailable> {
        let device = Device::open(&options.library)?;
        let ptx = CStr::from_bytes_with_nul(PTX.as_bytes()).expect("PTX has no zero within");
        let module = Module::load(&device, ptx)?;
        let fp64 = options.arithmetic.is_fp64(&device);
        let plan = |size: KeySize| match size.kernels52().filter(|_| fp64) {
            Some([prepare, exponentiate, finish]) => Ok::<_, Unavailable>(Plan::Fp64 {
                prepare: module.kernel(prepare)?,
                exponentiate: module.kernel(exponentiate)?,
                finish: module.kernel(finish)?,
            }),
            None => Ok(Plan::Integer(module.kernel(size.kernel())?)),
        };
        let plans = [plan(KeySize::Rsa2048)?, plan(KeySize::Rsa3072)?, plan(KeySize::Rsa4096)?];
        let mut capacity = [0; KeySize::ALL.len()];
        for (size, capacity) in KeySize::ALL.into_iter().zip(&mut capacity) {
            let (kernel, block, threads) = match plans[size as usize] {
                Plan::Integer(kernel) => (kernel, BLOCK, size.threads()),
                Plan::Fp64 { exponentiate, .. } => (exponentiate, BLOCK52, 2),
            };
            let blocks = module.blocks_at_once(kernel, block)?.max(1);
            *capacity = device.multiprocessors.max(1) * blocks * (block / threads);
        }
        let lanes = options.lanes.max(1);
        let extent = lane::extent(&capacity, &plans);
        let key_words: usize = rsa_sizes().iter().sum();
        device.require(lanes * extent.words() + options.keys * key_words)?;
        let keys = Arc::new(KeyStore::new(&device, options.keys, &rsa_sizes())?);
        let idle = (0..lanes).map(|_| Lane::new(&device, extent)).collect::<Result<_, _>>()?;
        Ok(Self { pool: Pool::new(idle), lanes, keys, plans, capacity, _module: module, device })
    }

    /// Name of the device, from the driver.
    pub fn name(&self) -> &str {
        &self.device.name
    }

    /// Maximum number of concurrent batches.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Number of operations of one size that fill the device once: the maximum of one launch.
    pub fn capacity(&self, size: KeySize) -> usize {
        self.capacity[size as usize]
    }

    /// Upper bound of operations a second from its multipliers alone, at its highest clock: 64 halves of a product of
    /// 32-bit words in each cycle of each multiprocessor, or 64 of the three steps of one of 52-bit digits (CUDA C++
    /// Programming Guide, throughput of native arithmetic instructions, compute capability 8.0 and 9.0). For keys
    /// with the public exponent 65537.
    pub fn multiply_bound(&self, size: KeySize) -> f64 {
        let steps_each_second = self.device.multiprocessors as f64 * self.device.clock as f64 * 1e3 * 64.0;
        steps_each_second
            / match self.plans[size as usize] {
                Plan::Integer(_) => 2.0 * size.products() as f64,
                Plan::Fp64 { .. } => 3.0 * size.products52() as f64,
            }
    }

    /// Returns whether FP64 units compute keys of this size.
    pub fn uses_fp64(&self, size: KeySize) -> bool {
        matches!(self.plans[size as usize], Plan::Fp64 { .. })
    }

    /// Number of keys of this size on the device.
    pub fn keys(&self, size: KeySize) -> usize {
        self.keys.held(size as usize)
    }

    /// Copies a key to the device.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub fn upload(&self, key: &PrivateKey) -> Result<DeviceKey, UploadError> {
        self.pool.alive()?;
        let uploaded = DeviceKey::new(&self.keys, key);
        if let Err(UploadError::Unavailable(reason)) = &uploaded {
            self.lose(reason);
        }
        uploaded
    }

    /// Runs every operation of the batch and sets its outcome. The best batch has [`capacity`](Self::capacity)
    /// operations with keys of one size; other numbers and mixed sizes work too.
    ///
    /// Every result is checked with the public key before it is released from the device. Operations do not affect
    /// each other.
    ///
    /// # Errors
    /// [`Unavailable`] if the device was lost, now or before: operations with the outcome
    /// [`PrivateOperationError::NotRun`] were not computed, and no further ones will be.
    pub fn run(&self, batch: &mut [PrivateOperation<'_, DeviceKey>]) -> Result<(), Unavailable> {
        for size in KeySize::ALL {
            let of_size = batch.iter_mut().filter(|op| op.size() == size);
            let (mut ready, slots): (Vec<_>, Vec<_>) =
                of_size.filter_map(|op| self.slot(op).map(|slot| (op, slot))).unzip();
            let most = self.capacity(size);
            for (ops, slots) in ready.chunks_mut(most).zip(slots.chunks(most)) {
                self.run_launch(size, ops, slots)?;
            }
        }
        Ok(())
    }

    /// Retires the device for this reason: called after a host-side check finds a wrong result.
    pub fn lose(&self, reason: &Unavailable) {
        self.pool.lose(reason);
    }

    /// Loads the kernels of ML-DSA for this device, and allocates memory for as many concurrent batches, and for
    /// `keys` keys of each parameter set, of 28, 47 and 79 KB.
    ///
    /// # Errors
    /// [`Unavailable`], with the reason.
    pub fn ml_dsa_signer(&self, keys: usize) -> Result<MlDsaSigner, Unavailable> {
        self.pool.alive()?;
        MlDsaSigner::new(&self.device, self.lanes, keys)
    }

    /// Returns the slot of the operation's key, or sets the outcome and returns `None` if the operation cannot run.
    fn slot(&self, op: &mut PrivateOperation<'_, DeviceKey>) -> Option<u32> {
        let slot = op.key().slot_in(&self.keys).ok_or(PrivateOperationError::ForeignKey);
        let slot = slot.and_then(|slot| {
            op.check()?;
            Ok(slot)
        });
        slot.map_err(|error| op.finish(|_| Err(error))).ok()
    }

    fn run_launch(
        &self,
        size: KeySize,
        ops: &mut [&mut PrivateOperation<'_, DeviceKey>],
        slots: &[u32],
    ) -> Result<(), Unavailable> {
        self.pool.with(|lane| {
            self.device.enter()?;
            lane.run(&self.plans[size as usize], &self.keys, size, ops, slots)
        })
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("name", &self.name())
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
