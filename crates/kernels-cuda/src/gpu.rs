//! The entrance: open the device once, upload keys, run batches.

use crate::{
    DeviceKey, GpuOp, KeySize, PTX, PrivateKey, Unavailable, UploadError,
    driver::{Device, Kernel, Module},
    key::KernelSize,
    keys::KeyStore,
    lane::{BLOCK, Extent, Lane, Parsed},
};
use std::{
    ffi::{CStr, OsString},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// What is opened, and how much of it is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// The driver's library, looked for as `dlopen` does.
    pub library: OsString,
    /// Batches that are on their way at once. Two keep a device's memory and multipliers busy; more hide that batches
    /// are packed and unpacked, which takes longer than computing them.
    pub lanes: usize,
    /// Keys of each size that have room on the device: 1.7, 2.5 and 3.3 KB each.
    pub keys: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { library: "libcuda.so.1".into(), lanes: 4, keys: 4096 }
    }
}

/// An open device. Share one between threads; as many batches run at once as it has lanes.
pub struct Gpu {
    // Dropped in this order: lanes wait for kernels, and those end before their module goes.
    idle: Mutex<Vec<Lane>>,
    freed: Condvar,
    lanes: usize,
    lost: OnceLock<Unavailable>,
    keys: Arc<KeyStore>,
    kernels: [Kernel; KeySize::ALL.len()],
    capacity: [usize; KeySize::ALL.len()],
    _module: Module,
    device: Arc<Device>,
}

impl Gpu {
    /// Loads the driver, opens the first device, and takes the memory for keys and batches. The driver translates the
    /// kernels for the device, which takes seconds the first time; then it has them in its cache.
    ///
    /// # Errors
    /// [`Unavailable`], with the reason, where there is nothing to compute with.
    pub fn open(options: &Options) -> Result<Self, Unavailable> {
        let device = Device::open(&options.library)?;
        let ptx = CStr::from_bytes_with_nul(PTX.as_bytes()).expect("PTX has no zero within");
        let module = Module::load(&device, ptx)?;
        let kernel = |size: KeySize| module.kernel(size.kernel());
        let kernels = [kernel(KeySize::Rsa2048)?, kernel(KeySize::Rsa3072)?, kernel(KeySize::Rsa4096)?];
        let mut capacity = [0; KeySize::ALL.len()];
        for (size, capacity) in KeySize::ALL.into_iter().zip(&mut capacity) {
            let blocks = module.blocks_at_once(kernels[size as usize], BLOCK)?.max(1);
            *capacity = device.multiprocessors.max(1) * blocks * (BLOCK / size.threads());
        }
        let lanes = options.lanes.max(1);
        let extent = Extent::of(&capacity);
        let needed = 4 * (lanes * extent.words() + KeyStore::words(options.keys));
        let free = device.free_memory()?;
        if free < needed {
            let [needed, free] = [needed.div_ceil(1 << 20), free >> 20];
            return Err(Unavailable::Memory { needed, free });
        }
        let keys = Arc::new(KeyStore::new(&device, options.keys)?);
        let idle = (0..lanes).map(|_| Lane::new(&device, extent)).collect::<Result<_, _>>()?;
        Ok(Self {
            idle: Mutex::new(idle),
            freed: Condvar::new(),
            lanes,
            lost: OnceLock::new(),
            keys,
            kernels,
            capacity,
            _module: module,
            device,
        })
    }

    /// As the driver names the device.
    pub fn name(&self) -> &str {
        &self.device.name
    }

    /// Batches that may be on their way at once.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Operations of one size that fill the device once: the most that go in one launch.
    pub fn capacity(&self, size: KeySize) -> usize {
        self.capacity[size as usize]
    }

    /// Operations a second that its multipliers could do if they did nothing else, at its highest clock: 64 halves of a
    /// product of 32-bit words in each cycle of each multiprocessor (CUDA C++ Programming Guide, throughput of native
    /// arithmetic instructions, compute capability 8.0 and 9.0). For keys with the public exponent 65537.
    pub fn multiply_bound(&self, size: KeySize) -> f64 {
        let products_each_second = self.device.multiprocessors as f64 * self.device.clock as f64 * 1e3 * 32.0;
        products_each_second / size.products() as f64
    }

    /// Keys of this size that are on the device.
    pub fn keys(&self, size: KeySize) -> usize {
        self.keys.held(size)
    }

    /// Copies a key to the device.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub fn upload(&self, key: &PrivateKey) -> Result<DeviceKey, UploadError> {
        self.alive()?;
        let uploaded = self.keys.upload(key);
        if let Err(UploadError::Unavailable(reason)) = &uploaded {
            self.lose(reason);
        }
        uploaded
    }

    /// Runs every operation of the batch and sets its outcome. Best are [`capacity`](Self::capacity) operations with
    /// keys of one size; more, fewer and mixed sizes work too.
    ///
    /// Every result is checked with the public key before it leaves the device. No operation affects another.
    ///
    /// # Errors
    /// [`Unavailable`] if the device was lost, now or before: operations whose outcome is [`OpError::NotRun`] were not
    /// computed, and it computes nothing any more.
    pub fn run(&self, batch: &mut [GpuOp<'_>]) -> Result<(), Unavailable> {
        for size in KeySize::ALL {
            let (mut ready, mut parsed) = (Vec::new(), Vec::new());
            for op in batch.iter_mut().filter(|op| op.size() == size) {
                if let Some(operation) = op.parse(&self.keys) {
                    ready.push(op);
                    parsed.push(operation);
                }
            }
            let most = self.capacity(size);
            for (ops, parsed) in ready.chunks_mut(most).zip(parsed.chunks(most)) {
                self.run_launch(size, ops, parsed)?;
            }
        }
        Ok(())
    }

    /// Computes nothing any more, for this reason: whoever checks results on the host calls it when one is wrong.
    pub fn lose(&self, reason: &Unavailable) {
        let _ = self.lost.set(reason.clone());
        self.freed.notify_all();
    }

    fn alive(&self) -> Result<(), Unavailable> {
        self.lost.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    fn run_launch(
        &self,
        size: KeySize,
        ops: &mut [&mut GpuOp<'_>],
        parsed: &[Parsed],
    ) -> Result<(), Unavailable> {
        self.alive()?;
        let mut lane = self.take()?;
        let done = self
            .device
            .enter()
            .and_then(|()| lane.run(self.kernels[size as usize], &self.keys, size, ops, parsed));
        match &done {
            Ok(()) => {
                self.idle().push(lane);
                self.freed.notify_one();
            }
            // Its memory goes with it, after it has waited for the device.
            Err(reason) => self.lose(reason),
        }
        done
    }

    fn take(&self) -> Result<Lane, Unavailable> {
        let mut idle = self.idle();
        loop {
            self.alive()?;
            match idle.pop() {
                Some(lane) => return Ok(lane),
                None => idle = self.freed.wait(idle).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
