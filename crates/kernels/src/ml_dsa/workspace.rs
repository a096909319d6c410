//! Memory of a batch.

use super::challenge::Challenge;
use super::kernels::MaskInput;
use super::packing::Packed;
use super::parameters::{MAX_CHALLENGE, MAX_HIGH, MAX_K, MAX_L, MAX_SIGNATURE, Parameters};
use super::polynomial::{N, Polynomial};
use super::rounding::Bytes;
use super::shake::{Digest, NO_DIGEST};
use super::sponge::State;
use super::vector::STATES;
use std::hint::black_box;

/// Bytes of the stack that are wiped, more than the functions of this module use.
const STACK: usize = 24 * 1024;

/// Memory of a batch. All of it is wiped after a batch.
pub(crate) struct Workspace {
    pub(super) slots: Vec<Slot>,
    pub(super) scratch: Scratch,
}

/// Attempt of a signature, or a verification.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Slot {
    /// Mask y.
    pub(super) y: [Polynomial; MAX_L],
    /// Low parts of w, w0.
    pub(super) low: [Polynomial; MAX_K],
    /// High parts of w, w1.
    pub(super) high: [Bytes; MAX_K],
    /// c t0, if the attempt is accepted.
    pub(super) product: [Polynomial; MAX_K],
    /// Input of the challenge's hash: mu, and w1 packed.
    pub(super) message: [u8; 64 + MAX_HIGH],
    /// Hash of the challenge.
    pub(super) hash: [u8; MAX_CHALLENGE],
    pub(super) challenge: Challenge,
    pub(super) signature: [u8; MAX_SIGNATURE],
}

/// Memory that is in use for one slot at a time, or for eight states.
#[repr(C, align(64))]
pub(super) struct Scratch {
    pub(super) vector: [Polynomial; MAX_L + 1],
    pub(super) products: [Polynomial; MAX_K],
    pub(super) responses: [Polynomial; MAX_L],
    pub(super) hints: [Bytes; MAX_K],
    pub(super) states: State,
    pub(super) streams: [Packed; STATES],
    pub(super) digests: [Digest; STATES],
    pub(super) inputs: [MaskInput; STATES],
}

impl Slot {
    const EMPTY: Self = Self {
        y: [Polynomial::ZERO; MAX_L],
        low: [Polynomial::ZERO; MAX_K],
        high: [[0; N]; MAX_K],
        product: [Polynomial::ZERO; MAX_K],
        message: [0; 64 + MAX_HIGH],
        hash: [0; MAX_CHALLENGE],
        challenge: Challenge::NONE,
        signature: [0; MAX_SIGNATURE],
    };

    /// Returns the input of the challenge's hash.
    pub(super) fn message(&self, parameters: &Parameters) -> &[u8] {
        &self.message[..64 + parameters.k * parameters.high_bytes()]
    }
}

impl Scratch {
    const EMPTY: Self = Self {
        vector: [Polynomial::ZERO; MAX_L + 1],
        products: [Polynomial::ZERO; MAX_K],
        responses: [Polynomial::ZERO; MAX_L],
        hints: [[0; N]; MAX_K],
        states: State::ZERO,
        streams: [[0; 704]; STATES],
        digests: [NO_DIGEST; STATES],
        inputs: [[0; 66]; STATES],
    };
}

impl Workspace {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { slots: Vec::new(), scratch: Scratch::EMPTY })
    }

    /// Grows to the given number of slots.
    pub(super) fn require(&mut self, slots: usize) {
        if self.slots.len() < slots {
            // A moved slot would leave its data behind: they are all empty here, between batches.
            self.slots = vec![Slot::EMPTY; slots];
        }
    }

    /// Clears the first slots, all that was in use, and the stack.
    pub(super) fn wipe(&mut self, slots: usize) {
        wipe(&mut self.slots[..slots], Slot::EMPTY);
        self.scratch = Scratch::EMPTY;
        black_box(&mut self.scratch);
        wipe_stack();
    }

    /// Returns whether no data is left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let polynomials =
            self.slots.iter().flat_map(|slot| slot.y.iter().chain(&slot.low).chain(&slot.product));
        let scratch = self.scratch.vector.iter().chain(&self.scratch.products).chain(&self.scratch.responses);
        polynomials.chain(scratch).all(|polynomial| *polynomial == Polynomial::ZERO)
            && self
                .slots
                .iter()
                .all(|slot| slot.message.iter().chain(slot.high.as_flattened()).all(|x| *x == 0))
            && self.scratch.states.0.as_flattened().iter().all(|word| *word == 0)
            && self
                .scratch
                .inputs
                .as_flattened()
                .iter()
                .chain(self.scratch.streams.as_flattened())
                .all(|x| *x == 0)
    }
}

/// Clears memory that stays allocated, or is about to be freed.
pub(super) fn wipe<T: Copy>(memory: &mut [T], zero: T) {
    memory.fill(zero);
    // The compiler must assume that the zeros are read.
    black_box(memory);
}

/// Clears the part of the stack that functions have used which were called from the caller's.
#[inline(never)]
fn wipe_stack() {
    black_box([0u8; STACK]);
}
