//! Computes the responses to a batch of client shares.

use super::{
    exchange::Pending,
    job::{Job, Progress, Took},
    key_pairs, p256,
};
use crate::{
    EncapsulateOperation, ExchangeError, ExchangeOperation, ExchangeReport, MlKem768, SecretOperation,
    X25519,
    key_agreement::{KeyPair, Scalar, is_contributory},
    shared::Shared,
};
use quadrille_handshake_timing::thread_time;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Responds to all shares that have not been withdrawn.
pub(super) fn compute(shared: &Shared, waiting: &[Arc<Pending>]) {
    let began = Instant::now();
    let began_cpu = waiting.iter().any(|pending| pending.is_measured).then(thread_time);
    let mut jobs: Vec<Job<'_>> =
        waiting.iter().filter(|pending| pending.is_wanted()).map(|pending| Job::new(pending)).collect();
    let Some(oldest) = jobs.iter().map(|job| job.pending.submitted).min() else { return };
    let waited = began.saturating_duration_since(oldest);
    // If the backend panics, only its unfinished jobs are lost.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        encapsulate(shared, &mut jobs, waited);
        agree(shared, &mut jobs, waited);
        p256::agree(shared, &mut jobs, waited);
    }));
    let batch = jobs.iter().filter(|job| !job.is_declined()).count();
    let cpu = began_cpu.map_or(Duration::ZERO, |began| thread_time().saturating_sub(began));
    let cpu = cpu / u32::try_from(batch).unwrap_or(u32::MAX).max(1);
    let took = Took { began, computed: began.elapsed(), batch, cpu };
    for job in jobs {
        if let Some(waker) = job.pending.finish(job.answer(&took)) {
            // A waker is foreign code: its panic must not reach the batch's other jobs.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

/// Encapsulates for the clients that sent an ML-KEM key: whole passes in lanes, and the remainder in lanes too if it
/// pays.
fn encapsulate(shared: &Shared, jobs: &mut [Job<'_>], waited: Duration) {
    let lanes = shared.backend.ml_kem();
    let mut asked: Vec<&mut Job<'_>> =
        jobs.iter_mut().filter(|job| job.pending.share.ml_kem().is_some()).collect();
    let count = asked.len();
    let (in_lanes, rest) = asked.split_at_mut(lanes.map_or(0, |lanes| lanes.batching().worth(count)));
    if let Some(lanes) = lanes.filter(|_| !in_lanes.is_empty()) {
        compute_ciphertexts(shared, lanes, in_lanes, waited);
    }
    if !rest.is_empty() {
        compute_ciphertexts(shared, &Scalar, rest, waited);
    }
}

fn compute_ciphertexts(shared: &Shared, by: &dyn MlKem768, jobs: &mut [&mut Job<'_>], waited: Duration) {
    let began = Instant::now();
    let mut operations: Vec<EncapsulateOperation<'_>> =
        jobs.iter_mut().filter_map(|job| job.encapsulate_operation()).collect();
    by.encapsulate(&mut operations);
    let complete: Vec<bool> = operations.iter().map(|operation| operation.complete).collect();
    drop(operations);
    let computed = began.elapsed();
    for (job, _) in jobs.iter_mut().zip(&complete).filter(|(_, complete)| !**complete) {
        job.progress = Progress::Failed(ExchangeError::InvalidShare);
    }
    let failed = complete.iter().filter(|complete| !**complete).count();
    let (operation, backend) = (ExchangeOperation::MlKem768, by.name());
    let report = ExchangeReport { operation, backend, operations: jobs.len(), failed, waited, computed };
    shared.tell(|observer| observer.exchanged(&report));
}

/// Computes X25519 with a key pair for each client: whole passes in lanes, and the remainder in lanes too if it pays.
fn agree(shared: &Shared, jobs: &mut [Job<'_>], waited: Duration) {
    let lanes = shared.backend.x25519();
    let mut open: Vec<&mut Job<'_>> = jobs.iter_mut().filter(|job| job.asks_for_x25519()).collect();
    let mut pairs = Zeroizing::new(vec![KeyPair::default(); open.len()]);
    if open.is_empty() || key_pairs::take_x25519(shared, lanes, &mut pairs).is_err() {
        return;
    }
    for (job, pair) in open.iter_mut().zip(&*pairs) {
        *job.pair = *pair;
    }
    let (in_lanes, rest) = open.split_at_mut(lanes.map_or(0, |lanes| lanes.batching().worth(pairs.len())));
    if let Some(lanes) = lanes.filter(|_| !in_lanes.is_empty()) {
        compute_secrets(shared, lanes, in_lanes, waited);
    }
    if !rest.is_empty() {
        compute_secrets(shared, &Scalar, rest, waited);
    }
}

fn compute_secrets(shared: &Shared, by: &dyn X25519, jobs: &mut [&mut Job<'_>], waited: Duration) {
    let began = Instant::now();
    let mut operations: Vec<SecretOperation<'_>> =
        jobs.iter_mut().filter_map(|job| job.secret_operation()).collect();
    by.secrets(&mut operations);
    drop(operations);
    let computed = began.elapsed();
    let mut failed = 0;
    for job in &mut *jobs {
        job.progress = match is_contributory(&job.secret) {
            true => Progress::Done,
            false => Progress::Failed(ExchangeError::InvalidShare),
        };
        failed += usize::from(!matches!(job.progress, Progress::Done));
    }
    let (operation, backend) = (ExchangeOperation::X25519, by.name());
    let report = ExchangeReport { operation, backend, operations: jobs.len(), failed, waited, computed };
    shared.tell(|observer| observer.exchanged(&report));
}
