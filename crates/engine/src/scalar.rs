//! Scalar operations by the libraries: AWS-LC for ECDSA on P-256 and for ML-DSA, BoringSSL for all others.

use crate::{Key, KeyType, Operation, error::OperationError, key::Material, lone_p256, rsa_padding, verify};
use boring::{ecdsa::EcdsaSig, rsa::Padding, sign::Signer};
use zeroize::Zeroizing;

/// Computes an operation that [`Operation::check`] has accepted.
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
        (Material::Ec(ec), Operation::Sign { digest, .. }) => {
            let by_aws_lc = match key.key_type() {
                KeyType::EcdsaP256 => lone_p256::sign(key, digest),
                _ => None,
            };
            match by_aws_lc {
                Some(signature) => Ok(signature),
                None => EcdsaSig::sign(digest, ec)
                    .and_then(|signature| signature.to_der())
                    .map(Zeroizing::new)
                    .map_err(|_| OperationError::Failed),
            }
        }
        (Material::Ed25519, Operation::Sign { digest: message, .. }) => {
            Signer::new_without_digest(key.pkey())
                .and_then(|mut signer| signer.sign_oneshot_to_vec(message))
                .map(Zeroizing::new)
                .map_err(|_| OperationError::Failed)
        }
        // AWS-LC does not verify its signatures, and one with a fault may reveal the key.
        (Material::MlDsa(private), Operation::Sign { digest: message, .. }) => private
            .sign(message)
            .filter(|signature| verify::holds(key.public(), operation, signature))
            .ok_or(OperationError::Failed),
        (Material::External(_), _) | (_, Operation::Decrypt { .. }) => Err(OperationError::WrongKeyType),
    }
}
