//! BoringSSL, one operation at a time.

use crate::{Key, Operation, error::OperationError, key::Material, rsa_padding};
use boring::{ecdsa::EcdsaSig, rsa::Padding, sign::Signer};
use zeroize::Zeroizing;

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
