//! The parts of the algorithm that are functions of their own in the machine's code.

use super::PublicKey;
use super::keccak::State;
use super::matrix::{Entry, Stream};
use super::ntt::Polynomials;
use super::vector::Vector;
use super::workspace::{Secrets, Workspace};

/// Each does what the function of the same name does.
pub(crate) trait Kernels: Copy {
    type Vector: Vector;

    fn encapsulate(self, keys: &[&PublicKey], workspace: &mut Workspace<Self::Vector>);
    fn keccak(self, state: &mut State<Self::Vector>);
    fn sample(self, bytes: &Stream, len: usize, entry: &mut Entry);
    fn ntt(self, polynomials: &mut Polynomials<Self::Vector>);
    fn inverse_ntt(self, polynomials: &mut Polynomials<Self::Vector>);
    /// Clears the secrets, the stack as far as the functions above have used it, and the registers.
    fn wipe(self, secrets: &mut Secrets<Self::Vector>);
}
