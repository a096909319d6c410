//! Memory of a batch.

use super::compression::Ciphertexts;
use super::keccak::State;
use super::matrix::{Entry, Stream};
use super::ntt::{N, Polynomials};
use super::polynomial::{Factor, Polynomial, VECTORS};
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::{ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES};
use std::mem::MaybeUninit;
use std::ptr;

/// Number of columns and rows of A.
pub(super) const RANK: usize = 3;
/// Number of polynomials of a ciphertext: u, and v.
pub(super) const RESULTS: usize = RANK + 1;
/// Number of 64-bit words of a public key.
pub(super) const KEY_WORDS: usize = ML_KEM_PUBLIC_KEY_BYTES / 8;
/// Number of bytes of the stack that are wiped, more than an encapsulation uses: 15 KiB in a release build.
const STACK: usize = 24 * 1024;

/// Memory of a batch. Public data is not cleared between batches.
#[repr(C, align(64))]
pub(crate) struct Workspace<V> {
    pub(crate) secrets: Secrets<V>,
    pub(crate) lone: LoneSecrets<V>,
    pub(crate) ciphertexts: Ciphertexts,
    /// Whether the lanes' public keys are valid.
    pub(crate) valid: [bool; LANES],
    /// Columns of A and t, in the layout of the product: for each column of A the three entries and the entry of t
    /// for every lane.
    pub(super) columns: [[Entry; 4 * LANES]; RANK],
    pub(super) streams: [Stream; LANES],
    pub(super) key_words: [V; KEY_WORDS],
}

/// Data that is wiped after a batch.
#[repr(C, align(64))]
pub(crate) struct Secrets<V> {
    /// Messages m before, secrets K after.
    pub(crate) messages: [[u8; 32]; LANES],
    /// Polynomials y, three in each lane.
    pub(super) small: Polynomials<V>,
    /// Polynomials e1 and e2, with the message.
    pub(super) errors: Polynomials<V>,
    /// Polynomials u and v.
    pub(super) products: Polynomials<V>,
    pub(super) states: [State<V>; 4],
    pub(super) message: [V; 4],
}

/// Data that is wiped after a lone operation.
#[repr(C, align(64))]
pub(crate) struct LoneSecrets<V> {
    /// Message m before, secret K after.
    pub(super) message: [u8; 32],
    pub(super) state: State<V>,
    /// Polynomials y.
    pub(super) small: [Polynomial<V>; RANK],
    /// Polynomials e1 and e2, with the message.
    pub(super) errors: [Polynomial<V>; RESULTS],
    pub(super) factors: [Factor<V>; RANK],
}

impl<V: Vector> LoneSecrets<V> {
    pub(super) fn new() -> Self {
        let zero = V::zero();
        Self {
            message: [0; 32],
            state: [zero; 25],
            small: [[zero; VECTORS]; RANK],
            errors: [[zero; VECTORS]; RESULTS],
            factors: [Factor::zero(); RANK],
        }
    }
}

impl<V: Vector> Workspace<V> {
    pub(crate) fn new() -> Box<Self> {
        let zero = V::zero();
        Box::new(Self {
            secrets: Secrets {
                messages: [[0; 32]; LANES],
                small: [zero; N],
                errors: [zero; N],
                products: [zero; N],
                states: [[zero; 25]; 4],
                message: [zero; 4],
            },
            lone: LoneSecrets::new(),
            ciphertexts: [[0; ML_KEM_CIPHERTEXT_BYTES]; LANES],
            valid: [false; LANES],
            columns: [[Entry::EMPTY; 4 * LANES]; RANK],
            streams: [[0; 9 * VECTOR_BYTES]; LANES],
            key_words: [zero; KEY_WORDS],
        })
    }
}

/// Clears secrets, also where the compiler may have stored them on the stack.
#[inline(always)]
pub(crate) fn wipe<V: Vector, S>(secrets: &mut S) {
    let mut stack = MaybeUninit::<[V; STACK / VECTOR_BYTES]>::uninit();
    let (secrets, stack) = (ptr::from_mut(secrets).cast::<V>(), stack.as_mut_ptr().cast::<V>());
    for (first, vectors) in [(secrets, size_of::<S>() / size_of::<V>()), (stack, STACK / VECTOR_BYTES)] {
        for i in 0..vectors {
            // SAFETY: both have that length and the alignment of vectors, and every vector is a valid part of
            // `Secrets` and `LoneSecrets`.
            unsafe { first.add(i).write_volatile(V::zero()) };
        }
    }
}
