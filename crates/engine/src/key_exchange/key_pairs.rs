//! Key pairs do not depend on the client: they are made ahead, in whole passes, and each is used once.

use super::wiped_on_fork::{Blank, WipedOnFork};
use crate::{
    ExchangeOperation, ExchangeReport, OperationError, X25519,
    shared::Shared,
    x25519::{KeyPair, Scalar},
};
use boring::rand::rand_bytes;
use std::{
    cell::RefCell,
    time::{Duration, Instant},
};
use zeroize::{Zeroize, Zeroizing};

/// The most key pairs that a thread keeps, and that are made together.
const POOL: usize = 16;

thread_local! {
    static MADE: RefCell<Option<Option<WipedOnFork<Pool>>>> = const { RefCell::new(None) };
}

/// Key pairs made ahead. A child process finds none: it would use those of its parent.
struct Pool {
    left: usize,
    pairs: [KeyPair; POOL],
}

// SAFETY: zeros are a pool with no pair left, and plain numbers need no dropping.
unsafe impl Blank for Pool {}

/// Fills in key pairs that nobody else gets.
///
/// # Errors
/// [`Failed`](OperationError::Failed) without random numbers.
pub(super) fn take(
    shared: &Shared,
    lanes: Option<&dyn X25519>,
    pairs: &mut [KeyPair],
) -> Result<(), OperationError> {
    let Some(lanes) = lanes else { return make(shared, &Scalar, pairs) };
    let taken = MADE.try_with(|made| {
        let mut made = made.borrow_mut();
        let pool = made.get_or_insert_with(WipedOnFork::new).as_mut()?.get_mut();
        Some(pairs.iter_mut().try_for_each(|pair| pool.take(shared, lanes).map(|taken| *pair = *taken)))
    });
    // While the thread ends there may be no pool any more.
    taken.ok().flatten().unwrap_or_else(|| make(shared, &Scalar, pairs))
}

impl Pool {
    /// The next key pair, if need be after more were made.
    fn take(&mut self, shared: &Shared, lanes: &dyn X25519) -> Result<Zeroizing<KeyPair>, OperationError> {
        if self.left == 0 {
            make(shared, lanes, &mut self.pairs)?;
            self.left = self.pairs.len();
        }
        self.left -= 1;
        let place = self.pairs.get_mut(self.left).ok_or(OperationError::Failed)?;
        let pair = Zeroizing::new(*place);
        place.zeroize();
        Ok(pair)
    }
}

/// New key pairs, computed together.
fn make(shared: &Shared, by: &dyn X25519, pairs: &mut [KeyPair]) -> Result<(), OperationError> {
    let began = Instant::now();
    for pass in pairs.chunks_mut(POOL) {
        let mut private = Zeroizing::new([[0; 32]; POOL]);
        let mut public = [[0; 32]; POOL];
        let (private, public) = (&mut private[..pass.len()], &mut public[..pass.len()]);
        rand_bytes(private.as_flattened_mut()).map_err(|_| OperationError::Failed)?;
        by.public_keys(private, public);
        for (pair, (private, public)) in pass.iter_mut().zip(private.iter().zip(public)) {
            *pair = KeyPair { private: *private, public: *public };
        }
    }
    report(shared, by.name(), pairs.len(), began.elapsed());
    Ok(())
}

fn report(shared: &Shared, backend: &'static str, operations: usize, computed: Duration) {
    let operation = ExchangeOperation::X25519KeyPair;
    let report =
        ExchangeReport { operation, backend, operations, failed: 0, waited: Duration::ZERO, computed };
    shared.tell(|observer| observer.exchanged(&report));
}
