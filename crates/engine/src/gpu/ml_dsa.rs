//! ML-DSA on the GPU.

use super::{CHECKED_TOGETHER, Gpu};
use crate::{Job, Key, Operation, key::Material};
use quadrille_kernels::{MlDsa, MlDsaCandidate, MlDsaKey, MlDsaMessage};
use quadrille_kernels_cuda::{
    MlDsaDeviceKey, MlDsaKeyNumbers, MlDsaOperation, MlDsaPrivateKey, MlDsaSet, MlDsaSigner, Unavailable,
};
use zeroize::Zeroizing;

/// Room for keys of each parameter set on the device.
const KEYS: usize = 256;

impl Gpu {
    fn signer(&self) -> Option<&MlDsaSigner> {
        self.signer.get_or_init(|| self.device.ml_dsa_signer(KEYS).ok()).as_ref()
    }

    /// Maximum number of operations of one batch, once a key was prepared.
    pub(super) fn ml_dsa_capacity(&self, set: MlDsa) -> usize {
        self.signer.get().and_then(Option::as_ref).map_or(0, |signer| signer.capacity(on_device(set)))
    }

    /// Key on the device, uploaded once; `None` if the device has no memory for it.
    pub(super) fn uploaded_ml_dsa<'a>(&self, key: &'a Key) -> Option<&'a MlDsaDeviceKey> {
        let upload = || {
            let key = private(key)?;
            let numbers = key.numbers();
            let numbers = MlDsaKeyNumbers {
                matrix: &numbers.matrix,
                s1: &numbers.s1,
                s2: &numbers.s2,
                t0: &numbers.t0,
            };
            let set = on_device(key.public_key().parameter_set());
            self.signer()?.upload(&MlDsaPrivateKey::new(set, &numbers)).ok()
        };
        key.prepared::<Option<MlDsaDeviceKey>>(upload).as_ref()
    }

    /// Computes jobs of ML-DSA keys: the lanes begin them, and verify the signatures before they are released.
    pub(super) fn compute_ml_dsa(&self, batch: &mut [Job<'_>]) -> Result<(), String> {
        let Some(signer) = self.signer() else { return Ok(()) };
        let mut taken: Vec<Taken<'_, '_>> =
            batch.iter_mut().filter_map(|job| Taken::new(job, self)).collect();
        let messages: Vec<_> = taken.iter().map(Taken::message).collect();
        let starts = messages.chunks(CHECKED_TOGETHER).map(|messages| self.lanes.start_ml_dsa(messages));
        // Without random numbers, the backend reports the failure.
        let Some(starts) = starts.collect::<Option<Vec<_>>>() else { return Ok(()) };
        let starts: Vec<_> = starts.into_iter().flatten().collect();
        let mut ops: Vec<_> = taken
            .iter_mut()
            .zip(&starts)
            .map(|(one, start)| MlDsaOperation::new(one.on_device, &start.mu, &start.rho, &mut one.signature))
            .collect();
        signer.sign(&mut ops).map_err(|reason| reason.to_string())?;
        let signed: Vec<bool> = ops.iter().map(MlDsaOperation::is_signed).collect();
        drop(ops);
        // The scalar backend computes the others.
        let mut signed: Vec<_> = taken
            .into_iter()
            .zip(&starts)
            .zip(signed)
            .filter_map(|((one, start), signed)| signed.then_some((one, start)))
            .collect();
        for signed in signed.chunks_mut(CHECKED_TOGETHER) {
            let candidates: Vec<_> = signed
                .iter()
                .map(|(one, start)| MlDsaCandidate { key: one.key, mu: &start.mu, signature: &one.signature })
                .collect();
            if self.lanes.confirm_ml_dsa(&candidates).contains(&false) {
                signer.lose(&Unavailable::Wrong);
                self.device.lose(&Unavailable::Wrong);
                return Err(Unavailable::Wrong.to_string());
            }
            for (one, _) in signed {
                one.job.finish(Ok(std::mem::take(&mut one.signature)));
            }
        }
        Ok(())
    }
}

/// Job with the memory that the device fills.
struct Taken<'job, 'a> {
    job: &'job mut Job<'a>,
    key: &'a MlDsaKey,
    on_device: &'a MlDsaDeviceKey,
    message: &'a [u8],
    signature: Zeroizing<Vec<u8>>,
}

impl<'job, 'a> Taken<'job, 'a> {
    fn new(job: &'job mut Job<'a>, gpu: &Gpu) -> Option<Self> {
        let (key, on_device) = (private(job.key())?, gpu.uploaded_ml_dsa(job.key())?);
        let Operation::Sign { digest: message, .. } = job.operation() else { return None };
        let signature = Zeroizing::new(vec![0; key.public_key().parameter_set().signature_bytes()]);
        Some(Self { job, key, on_device, message, signature })
    }

    fn message(&self) -> (&'a MlDsaKey, MlDsaMessage<'a>) {
        (self.key, MlDsaMessage::Pure { message: self.message, context: &[] })
    }
}

fn private(key: &Key) -> Option<&MlDsaKey> {
    match key.material() {
        Material::MlDsa(private) => Some(private.key()),
        _ => None,
    }
}

fn on_device(set: MlDsa) -> MlDsaSet {
    match set {
        MlDsa::MlDsa44 => MlDsaSet::MlDsa44,
        MlDsa::MlDsa65 => MlDsaSet::MlDsa65,
        MlDsa::MlDsa87 => MlDsaSet::MlDsa87,
    }
}
