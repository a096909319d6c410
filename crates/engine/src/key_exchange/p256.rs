//! P-256 (RFC 8446 section 4.2.8.2): computed where lanes pay, and by BoringSSL elsewhere.

use super::{
    job::{Job, Progress},
    key_pairs,
};
use crate::{ExchangeError, ExchangeOperation, ExchangeReport, P256, P256KeyPair, shared::Shared};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// After a turn with too few shares for lanes, this many shares go directly to BoringSSL before another turn is
/// tried: waiting for the end of the turn costs a lone handshake some microseconds.
const AT_ONCE: u32 = 16;

thread_local! {
    static LEFT_AT_ONCE: Cell<u32> = const { Cell::new(0) };
}

/// Returns whether other shares may join the next one in this thread's turn. Counts each negative result.
pub(super) fn may_have_company() -> bool {
    let left = LEFT_AT_ONCE.get();
    LEFT_AT_ONCE.set(left.saturating_sub(1));
    left == 0
}

/// Computes whole passes, and the remainder if it pays; declines the others.
pub(super) fn agree(shared: &Shared, jobs: &mut [Job<'_>], waited: Duration) {
    let mut asked: Vec<&mut Job<'_>> =
        jobs.iter_mut().filter(|job| job.pending.share.p256().is_some()).collect();
    if asked.is_empty() {
        return;
    }
    let lanes = shared.backend.p256();
    let count = asked.len();
    let (in_lanes, rest) = asked.split_at_mut(lanes.map_or(0, |lanes| lanes.batching().worth(count)));
    LEFT_AT_ONCE.set(if in_lanes.is_empty() { AT_ONCE } else { 0 });
    rest.iter_mut().for_each(|job| job.progress = Progress::Failed(ExchangeError::Declined));
    if let Some(lanes) = lanes.filter(|_| !in_lanes.is_empty()) {
        compute_secrets(shared, lanes, in_lanes, waited);
    }
}

/// Leaves the jobs unfinished if there are no key pairs.
fn compute_secrets(shared: &Shared, by: &dyn P256, jobs: &mut [&mut Job<'_>], waited: Duration) {
    let mut pairs = Zeroizing::new(vec![P256KeyPair::default(); jobs.len()]);
    if key_pairs::take_p256(shared, by, &mut pairs).is_err() {
        return;
    }
    let began = Instant::now();
    let each = jobs.iter_mut().zip(pairs.iter());
    let mut operations: Vec<_> = each.filter_map(|(job, pair)| job.p256_operation(pair)).collect();
    by.secrets(&mut operations);
    let complete: Vec<bool> = operations.iter().map(|operation| operation.complete).collect();
    drop(operations);
    let computed = began.elapsed();
    for (job, complete) in jobs.iter_mut().zip(&complete) {
        job.progress = match complete {
            true => Progress::Done,
            false => Progress::Failed(ExchangeError::InvalidShare),
        };
    }
    let failed = complete.iter().filter(|complete| !**complete).count();
    let (operation, backend) = (ExchangeOperation::P256, by.name());
    let report = ExchangeReport { operation, backend, operations: jobs.len(), failed, waited, computed };
    shared.tell(|observer| observer.exchanged(&report));
}
