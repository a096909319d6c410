//! RSA on the GPU.

use super::{CHECKED_TOGETHER, Gpu};
use crate::{
    Job, Key, KeyType, OperationError,
    key::Material,
    lanes::{Parts, parts, prepared},
    verify,
};
use quadrille_kernels::Computed;
use quadrille_kernels_cuda::{
    Components, DeviceKey, KeySize, PrivateKey, PrivateOperation, PrivateOperationError, Unavailable,
};
use zeroize::Zeroizing;

impl Gpu {
    /// RSA key on the device, uploaded once; `None` if the GPU does not support it, or had no room when it was first
    /// used.
    pub(super) fn uploaded<'a>(&self, key: &'a Key) -> Option<&'a DeviceKey> {
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

    /// Maximum number of operations of one batch.
    pub(super) fn rsa_capacity(&self, key_type: KeyType) -> usize {
        size_of(key_type).map_or(0, |size| self.device.capacity(size))
    }

    /// Computes jobs of RSA keys.
    pub(super) fn compute_rsa(&self, batch: &mut [Job<'_>]) -> Result<(), String> {
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

/// Size on the device of keys of this type, if it is supported.
fn size_of(key_type: KeyType) -> Option<KeySize> {
    match key_type {
        KeyType::Rsa { bits } => KeySize::from_bits(bits as usize),
        _ => None,
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
