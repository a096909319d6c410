//! The server's private key, with its operations marked.

use boring::{
    error::ErrorStack,
    hash::MessageDigest,
    pkey::{PKey, Private},
    rsa::Padding,
    sign::{RsaPssSaltlen, Signer},
    ssl::{PrivateKeyMethod, PrivateKeyMethodError, SslRef, SslSignatureAlgorithm},
};
use quadrille_handshake_timing::key_operation;

pub(super) struct MarkedKey(pub(super) PKey<Private>);

impl PrivateKeyMethod for MarkedKey {
    fn sign(
        &self,
        _: &mut SslRef,
        input: &[u8],
        algorithm: SslSignatureAlgorithm,
        output: &mut [u8],
    ) -> Result<usize, PrivateKeyMethodError> {
        marked(|| self.signature(input, algorithm, output))
    }

    fn decrypt(
        &self,
        _: &mut SslRef,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, PrivateKeyMethodError> {
        marked(|| self.0.rsa()?.private_decrypt(input, output, Padding::NONE))
    }

    fn complete(&self, _: &mut SslRef, _: &mut [u8]) -> Result<usize, PrivateKeyMethodError> {
        Err(PrivateKeyMethodError::FAILURE) // no operation is pending
    }
}

impl MarkedKey {
    fn signature(
        &self,
        input: &[u8],
        algorithm: SslSignatureAlgorithm,
        output: &mut [u8],
    ) -> Result<usize, ErrorStack> {
        let mut signer = Signer::new(MessageDigest::sha256(), &self.0)?;
        if algorithm == SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256 {
            signer.set_rsa_padding(Padding::PKCS1_PSS)?;
            signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
        }
        signer.update(input)?;
        signer.sign(output)
    }
}

fn marked(operation: impl FnOnce() -> Result<usize, ErrorStack>) -> Result<usize, PrivateKeyMethodError> {
    key_operation(operation).map_err(|_| PrivateKeyMethodError::FAILURE)
}
