//! Parts of the algorithm that are separate functions in machine code.

use super::algorithm;
use super::challenge::{Challenge, Small};
use super::ntt::Matrix;
use super::packing::Packed;
use super::parameters::Gamma2;
use super::polynomial::Polynomial;
use super::rounding::Bytes;
use super::sponge::State;
use super::vector::{STATES, StateVector, Vector};

/// Input of `ExpandMask` for one polynomial (FIPS 204, algorithm 34): rho', and the counter.
pub(crate) type MaskInput = [u8; 66];

/// Each method computes the function of the same name. An instruction set repeats them as functions that may use it.
pub(crate) trait Kernels: Copy {
    type Vector: Vector;
    type States: StateVector;

    fn keccak(self, states: &mut State) {
        algorithm::permute::<Self::States>(states);
    }

    fn ntt(self, polynomial: &mut Polynomial) {
        algorithm::ntt::<Self::Vector>(polynomial);
    }

    fn ntt_of(self, polynomial: &Polynomial, to: &mut Polynomial) {
        algorithm::ntt_of::<Self::Vector>(polynomial, to);
    }

    fn inverse_ntt(self, polynomial: &mut Polynomial) {
        algorithm::inverse_ntt::<Self::Vector>(polynomial);
    }

    fn multiply_matrix(self, matrix: &Matrix, vector: &[Polynomial], products: &mut [Polynomial]) {
        algorithm::multiply_matrix::<Self::Vector>(matrix, vector, products);
    }

    fn multiply(self, a: &Polynomial, b: &Polynomial, product: &mut Polynomial) {
        algorithm::multiply::<Self::Vector>(a, b, product);
    }

    fn unpack_mask(self, bits: u32, bytes: &Packed, to: &mut Polynomial) {
        algorithm::unpack_mask::<Self::Vector>(bits, bytes, to);
    }

    fn decompose(self, gamma2: Gamma2, r: &Polynomial, low: &mut Polynomial, high: &mut Bytes) {
        algorithm::decompose::<Self::Vector>(gamma2, r, low, high);
    }

    fn add_small_product(
        self,
        small: &Small,
        challenge: &Challenge,
        byte_terms: usize,
        base: &Polynomial,
        sum: &mut Polynomial,
    ) -> i32 {
        algorithm::add_small_product::<Self::Vector>(small, challenge, byte_terms, base, sum)
    }

    fn add(self, sum: &mut Polynomial, other: &Polynomial) -> i32 {
        algorithm::add::<Self::Vector>(sum, other)
    }

    fn subtract(self, a: &Polynomial, b: &Polynomial, difference: &mut Polynomial) {
        algorithm::subtract::<Self::Vector>(a, b, difference);
    }

    fn differences(self, a: &Polynomial, b: &Polynomial) -> i32 {
        algorithm::differences::<Self::Vector>(a, b)
    }

    /// Copies the first words of all states, a block of SHAKE256, to their streams.
    fn copy_block(self, states: &State, block: usize, streams: &mut [Packed; STATES]) {
        algorithm::copy_block::<Self::States>(states, block, streams);
    }

    fn make_hints(self, gamma2: Gamma2, low: &Polynomial, high: &Bytes, hints: &mut Bytes) -> i32 {
        algorithm::make_hints::<Self::Vector>(gamma2, low, high, hints)
    }

    fn largest(self, polynomial: &Polynomial) -> i32 {
        algorithm::largest::<Self::Vector>(polynomial)
    }

    /// Clears the vector registers.
    fn wipe_registers(self) {}

    /// Shows tests the inputs of `ExpandMask`, and lets them inject faults.
    #[inline]
    fn mask_inputs(self, inputs: &mut [MaskInput]) {
        let _ = inputs;
    }
}
