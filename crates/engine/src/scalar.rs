//! The backend that every machine has: BoringSSL, one operation after the other.

use crate::{Backend, Job, Key, KeyType, Operation, error::OperationError, key::Material, rsa_padding};
use boring::{ecdsa::EcdsaSig, rsa::Padding, sign::Signer};
use zeroize::Zeroizing;

/// BoringSSL, one operation after the other.
#[derive(Debug, Default)]
pub struct Scalar;

impl Backend for Scalar {
    fn name(&self) -> &'static str {
        "scalar"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        for job in batch {
            job.finish(compute(job.key(), job.operation()));
        }
    }

    /// BoringSSL raises every RSA result to the public exponent before it lets go of it.
    fn verifies(&self) -> bool {
        true
    }
}

/// Computes an operation that [`Operation::check`] has let through.
pub(crate) fn compute(key: &Key, operation: &Operation) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    match (key.material(), operation) {
        (Material::Rsa(rsa), operation) => {
            let input = rsa_padding::encode(rsa, operation)?;
            let mut output = Zeroizing::new(vec![0; input.len()]);
            match rsa.private_encrypt(&input, &mut output, Padding::NONE) {
                Ok(len) if len == output.len() => Ok(output),
                _ => Err(OperationError::Failed),
            }
        }
        (Material::Ec(ec), Operation::Sign { digest, .. }) => EcdsaSig::sign(digest, ec)
            .and_then(|signature| signature.to_der())
            .map(Zeroizing::new)
            .map_err(|_| OperationError::Failed),
        (Material::Ed25519, Operation::Sign { digest: message, .. }) => {
            Signer::new_without_digest(key.pkey())
                .and_then(|mut signer| signer.sign_oneshot_to_vec(message))
                .map(Zeroizing::new)
                .map_err(|_| OperationError::Failed)
        }
        (_, Operation::Decrypt { .. }) => Err(OperationError::WrongKeyType),
    }
}
