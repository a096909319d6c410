//! Key pairs, which do not depend on the client: they are generated in advance, in whole passes, and each is used
//! once.

use super::wiped_on_fork::{Blank, WipedOnFork};
use crate::{
    ExchangeOperation, ExchangeReport, OperationError, P256, P256KeyPair, X25519,
    key_agreement::{KeyPair, Scalar},
    shared::Shared,
};
use boring::rand::rand_bytes;
use std::{
    cell::RefCell,
    thread::LocalKey,
    time::{Duration, Instant},
};
use zeroize::{Zeroize, Zeroizing};

/// Maximum number of key pairs of a kind that a thread keeps, and that are generated together.
const POOL: usize = 16;

thread_local! {
    static X25519_MADE: Made<KeyPair> = const { RefCell::new(None) };
    static P256_MADE: Made<P256KeyPair> = const { RefCell::new(None) };
}

/// A thread's pool: the outer `None` if not created yet, the inner `None` if it cannot be created.
type Made<P> = RefCell<Option<Option<WipedOnFork<Pool<P>>>>>;

/// Key pairs generated in advance. A child process finds the pool empty; otherwise it would use its parent's keys.
struct Pool<P> {
    left: usize,
    pairs: [P; POOL],
}

// SAFETY: zeros are an empty pool, and plain numbers need no dropping.
unsafe impl Blank for Pool<KeyPair> {}
// SAFETY: as above.
unsafe impl Blank for Pool<P256KeyPair> {}

/// Fills in fresh key pairs.
///
/// # Errors
/// [`Failed`](OperationError::Failed) without random numbers.
pub(super) fn take_x25519(
    shared: &Shared,
    lanes: Option<&dyn X25519>,
    pairs: &mut [KeyPair],
) -> Result<(), OperationError> {
    let Some(lanes) = lanes else { return make_x25519(shared, &Scalar, pairs) };
    take(&X25519_MADE, pairs, |pairs| make_x25519(shared, lanes, pairs))
        .unwrap_or_else(|| make_x25519(shared, &Scalar, pairs))
}

/// Fills in fresh key pairs on P-256.
///
/// # Errors
/// [`Failed`](OperationError::Failed) without random numbers.
pub(super) fn take_p256(
    shared: &Shared,
    lanes: &dyn P256,
    pairs: &mut [P256KeyPair],
) -> Result<(), OperationError> {
    take(&P256_MADE, pairs, |pairs| make_p256(shared, lanes, pairs))
        .unwrap_or_else(|| make_p256(shared, lanes, pairs))
}

/// Fills in pairs from the pool. `None` without a pool: no memory that is wiped on fork, or the thread is ending.
fn take<P: Copy + Zeroize>(
    made: &'static LocalKey<Made<P>>,
    pairs: &mut [P],
    make: impl Fn(&mut [P]) -> Result<(), OperationError>,
) -> Option<Result<(), OperationError>>
where
    Pool<P>: Blank,
{
    let taken = made.try_with(|made| {
        let mut made = made.borrow_mut();
        let pool = made.get_or_insert_with(WipedOnFork::new).as_mut()?.get_mut();
        Some(pairs.iter_mut().try_for_each(|pair| pool.take(&make).map(|taken| *pair = *taken)))
    });
    taken.ok().flatten()
}

impl<P: Copy + Zeroize> Pool<P> {
    /// Takes the next key pair, and refills the pool first if it is empty.
    fn take(
        &mut self,
        make: impl Fn(&mut [P]) -> Result<(), OperationError>,
    ) -> Result<Zeroizing<P>, OperationError> {
        if self.left == 0 {
            make(&mut self.pairs)?;
            self.left = self.pairs.len();
        }
        self.left -= 1;
        let place = self.pairs.get_mut(self.left).ok_or(OperationError::Failed)?;
        let pair = Zeroizing::new(*place);
        place.zeroize();
        Ok(pair)
    }
}

/// Generates key pairs, computed together.
fn make_x25519(shared: &Shared, by: &dyn X25519, pairs: &mut [KeyPair]) -> Result<(), OperationError> {
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
    report(shared, ExchangeOperation::X25519KeyPair, by.name(), pairs.len(), began.elapsed());
    Ok(())
}

fn make_p256(shared: &Shared, by: &dyn P256, pairs: &mut [P256KeyPair]) -> Result<(), OperationError> {
    /// One number of 2^32 is not below the order. A pass that contains one is drawn again; after this many draws the
    /// generator, or the backend, must be broken.
    const DRAWS: usize = 4;
    let began = Instant::now();
    for pass in pairs.chunks_mut(POOL) {
        let mut private = Zeroizing::new([[0; 32]; POOL]);
        let mut public = [[0; 65]; POOL];
        let (private, public) = (&mut private[..pass.len()], &mut public[..pass.len()]);
        let is_made = |_: usize| {
            rand_bytes(private.as_flattened_mut()).map_err(|_| OperationError::Failed)?;
            by.public_keys(private, public);
            Ok(public.iter().all(|public| public[0] != 0))
        };
        if !(0..DRAWS).map(is_made).find(|made| *made != Ok(false)).unwrap_or(Ok(false))? {
            return Err(OperationError::Failed);
        }
        for (pair, (private, public)) in pass.iter_mut().zip(private.iter().zip(public)) {
            *pair = P256KeyPair { private: *private, public: *public };
        }
    }
    report(shared, ExchangeOperation::P256KeyPair, by.name(), pairs.len(), began.elapsed());
    Ok(())
}

fn report(
    shared: &Shared,
    operation: ExchangeOperation,
    backend: &'static str,
    operations: usize,
    computed: Duration,
) {
    let report =
        ExchangeReport { operation, backend, operations, failed: 0, waited: Duration::ZERO, computed };
    shared.tell(|observer| observer.exchanged(&report));
}
