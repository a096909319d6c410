//! Parts of the algorithm that are separate functions in machine code.

use super::PublicKey;
use super::keccak::State;
use super::matrix::{Entry, Stream};
use super::ntt::Polynomials;
use super::vector::Vector;
use super::workspace::{LoneSecrets, Secrets, Workspace};

/// Each method computes the function of the same name.
pub(crate) trait Kernels: Copy {
    type Vector: Vector;

    fn encapsulate(self, keys: &[&PublicKey], workspace: &mut Workspace<Self::Vector>);
    fn encapsulate_lone(self, key: &PublicKey, workspace: &mut Workspace<Self::Vector>);
    fn keccak(self, state: &mut State<Self::Vector>);
    fn sample(self, bytes: &Stream, len: usize, entry: &mut Entry);
    fn ntt(self, polynomials: &mut Polynomials<Self::Vector>);
    fn inverse_ntt(self, polynomials: &mut Polynomials<Self::Vector>);
    /// Clears the secrets, here and in [`wipe_lone`](Self::wipe_lone), the part of the stack used by the functions above, and the registers.
    fn wipe(self, secrets: &mut Secrets<Self::Vector>);
    fn wipe_lone(self, secrets: &mut LoneSecrets<Self::Vector>);
}
