//! Public interface: uploads keys, runs batches.

use super::{
    MlDsaDeviceKey, MlDsaOperation, MlDsaPrivateKey, MlDsaSet,
    key::constants,
    lane::{self, BLOCK, Lane, Plan},
};
use crate::{
    Unavailable, UploadError,
    driver::{Device, DeviceMemory, Module, PinnedMemory, Stream},
    keys::KeyStore,
    pool::Pool,
};
use std::{ffi::CStr, fmt, sync::Arc};

/// Kernels of ML-DSA on a device. Share it between threads; it runs as many batches at once as it has lanes.
pub struct MlDsaSigner {
    // Drop order: lanes wait for kernels, which must end before their module is unloaded.
    pool: Pool<Lane>,
    keys: Arc<KeyStore>,
    plans: [Plan; MlDsaSet::ALL.len()],
    constants: DeviceMemory,
    _module: Module,
    device: Arc<Device>,
}

impl MlDsaSigner {
    pub(crate) fn new(device: &Arc<Device>, lanes: usize, keys: usize) -> Result<Self, Unavailable> {
        device.enter()?;
        let ptx = CStr::from_bytes_with_nul(PTX.as_bytes()).expect("PTX has no zero within");
        let module = Module::load(device, ptx)?;
        let plan = |set: MlDsaSet| {
            let kernel = module.kernel(set.kernel())?;
            let warps = device.multiprocessors.max(1) * module.blocks_at_once(kernel, BLOCK)?.max(1);
            Ok::<_, Unavailable>(Plan { set, kernel, warps })
        };
        let plans = [plan(MlDsaSet::MlDsa44)?, plan(MlDsaSet::MlDsa65)?, plan(MlDsaSet::MlDsa87)?];
        let extent = lane::extent(&plans);
        let sizes = MlDsaSet::ALL.map(MlDsaSet::key_words);
        device.require(lanes * extent.words() + keys * sizes.iter().sum::<usize>())?;
        let idle = (0..lanes).map(|_| Lane::new(device, extent)).collect::<Result<_, _>>()?;
        Ok(Self {
            pool: Pool::new(idle),
            keys: Arc::new(KeyStore::new(device, keys, &sizes)?),
            plans,
            constants: upload_constants(device)?,
            _module: module,
            device: Arc::clone(device),
        })
    }

    /// Number of operations that fill the device: the maximum of one launch.
    pub fn capacity(&self, set: MlDsaSet) -> usize {
        self.plan(set).capacity()
    }

    /// Copies a key to the device.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub fn upload(&self, key: &MlDsaPrivateKey) -> Result<MlDsaDeviceKey, UploadError> {
        self.pool.alive()?;
        match self.keys.upload(key.set as usize, &key.words) {
            Ok(slot) => Ok(MlDsaDeviceKey { set: key.set, slot }),
            Err(error) => {
                if let UploadError::Unavailable(reason) = &error {
                    self.lose(reason);
                }
                Err(error)
            }
        }
    }

    /// Signs every operation of the batch. An operation stays unsigned if its key is another device's, its signature
    /// has the wrong length, or a check on the device has failed. The caller verifies each signature.
    ///
    /// # Errors
    /// [`Unavailable`] if the device was lost, now or before: no further operations will be computed.
    pub fn sign(&self, batch: &mut [MlDsaOperation<'_>]) -> Result<(), Unavailable> {
        for plan in &self.plans {
            let fits = |op: &MlDsaOperation<'_>| {
                op.key.set == plan.set && op.signature.len() == plan.set.signature_bytes()
            };
            let (mut ready, slots): (Vec<_>, Vec<_>) = batch
                .iter_mut()
                .filter(|op| fits(op))
                .filter_map(|op| op.key.slot_in(&self.keys).map(|slot| (op, slot)))
                .unzip();
            for (ops, slots) in ready.chunks_mut(plan.capacity()).zip(slots.chunks(plan.capacity())) {
                self.pool.with(|lane| {
                    self.device.enter()?;
                    lane.run(plan, self.keys.address(plan.set as usize), self.constants.at(0), ops, slots)
                })?;
            }
        }
        Ok(())
    }

    /// Retires the device for this reason: called after a host-side check finds a wrong result.
    pub fn lose(&self, reason: &Unavailable) {
        self.pool.lose(reason);
    }

    fn plan(&self, set: MlDsaSet) -> &Plan {
        &self.plans[set as usize]
    }
}

fn upload_constants(device: &Arc<Device>) -> Result<DeviceMemory, Unavailable> {
    let words = constants();
    let stream = Stream::new(device)?;
    let mut staging = PinnedMemory::new(device, words.len())?;
    staging.words_mut().copy_from_slice(&words);
    let memory = DeviceMemory::new(device, words.len(), &stream)?;
    stream.send(&memory, 0, &staging, 0..words.len()).and(stream.wait())?;
    Ok(memory)
}

impl fmt::Debug for MlDsaSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaSigner").field("plans", &self.plans).finish_non_exhaustive()
    }
}

/// Kernels, in the form that the driver accepts.
const PTX: &str = concat!(include_str!("../../kernel/ml_dsa.ptx"), "\0");
