//! ML-DSA in lanes.

use crate::{Job, Operation, Prices, key::Material};
use quadrille_kernels::{Lanes, MlDsaMessage, MlDsaSignature};
use std::time::Duration;
use zeroize::Zeroizing;

/// Relative costs of passes. Half a pass costs half, and a lone operation little more than its share of a pass
/// (docs/kernels/measurements.md): operations do not wait for others, and a free thread takes half a pass.
pub(super) const PRICES: Prices =
    Prices { lone: Duration::ZERO, half: Duration::from_micros(1), full: Duration::from_micros(2) };

/// Signs all jobs at once. Jobs that the kernels did not verify stay unfinished: the engine gives them to the scalar
/// backend.
pub(super) fn sign(lanes: &Lanes, jobs: &mut [Job<'_>]) {
    let signature = |job: &Job<'_>| match job.key().material() {
        Material::MlDsa(private) => vec![0; private.key().public_key().parameter_set().signature_bytes()],
        _ => Vec::new(),
    };
    let mut signatures: Vec<Zeroizing<Vec<u8>>> = jobs.iter().map(signature).map(Zeroizing::new).collect();
    let (mut batch, mut signed) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
    for (index, (job, signature)) in jobs.iter().zip(&mut signatures).enumerate() {
        if let (Material::MlDsa(private), Operation::Sign { digest, .. }) =
            (job.key().material(), job.operation())
        {
            let message = MlDsaMessage::Pure { message: digest, context: &[] };
            batch.push(MlDsaSignature::new(private.key(), message, signature));
            signed.push(index);
        }
    }
    lanes.sign_ml_dsa(&mut batch);
    let marks = batch.iter().map(MlDsaSignature::is_signed);
    let signed: Vec<usize> =
        signed.into_iter().zip(marks).filter(|(_, signed)| *signed).map(|(i, _)| i).collect();
    drop(batch);
    for index in signed {
        jobs[index].finish(Ok(std::mem::take(&mut signatures[index])));
    }
}
