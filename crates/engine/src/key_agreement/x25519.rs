//! X25519 (RFC 7748) backends.

use crate::Batching;
use boring_sys as ffi;
use zeroize::{Zeroize, Zeroizing};

/// Computes X25519 of several connections at once.
pub trait X25519: Send + Sync + 'static {
    /// Name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Number of operations that one pass computes at the price of one. Does not change.
    fn width(&self) -> usize;

    /// Smallest number of secrets for which a pass is cheaper than scalar operations, which compute smaller batches.
    /// Does not change.
    fn crossover(&self) -> usize;

    /// Width and crossover.
    fn batching(&self) -> Batching {
        Batching::new(self.width(), self.crossover())
    }

    /// Computes shared secrets: whole passes, and one partial pass.
    fn secrets(&self, operations: &mut [SecretOperation<'_>]);

    /// Computes the public keys of the private keys, in whole passes.
    fn public_keys(&self, private: &[[u8; 32]], public: &mut [[u8; 32]]);
}

/// Shared secret to compute. Scalars and coordinates are in the encoding of RFC 7748, section 5.
pub struct SecretOperation<'a> {
    /// The server's private key.
    pub private: &'a [u8; 32],
    /// The client's public key.
    pub peer: &'a [u8; 32],
    /// The result; all zeros for a point of small order.
    pub secret: &'a mut [u8; 32],
}

/// AWS-LC, one operation after the other: on every CPU measured it is faster than BoringSSL (docs/decisions/key-exchange.md).
pub(crate) struct Scalar;

impl X25519 for Scalar {
    fn name(&self) -> &'static str {
        "aws-lc"
    }

    fn width(&self) -> usize {
        1
    }

    fn crossover(&self) -> usize {
        1
    }

    fn secrets(&self, operations: &mut [SecretOperation<'_>]) {
        for SecretOperation { private, peer, secret } in operations {
            // SAFETY: three buffers of 32 bytes each. The caller checks for a zero result.
            unsafe { aws_lc_sys::X25519(secret.as_mut_ptr(), private.as_ptr(), peer.as_ptr()) };
        }
    }

    fn public_keys(&self, private: &[[u8; 32]], public: &mut [[u8; 32]]) {
        for (private, public) in private.iter().zip(public) {
            // SAFETY: two buffers of 32 bytes each.
            unsafe { aws_lc_sys::X25519_public_from_private(public.as_mut_ptr(), private.as_ptr()) };
        }
    }
}

/// Returns whether a shared secret is valid: RFC 8446 section 7.4.2 rejects the all-zero value. Constant time.
pub fn is_contributory(secret: &[u8; 32]) -> bool {
    const ZEROS: [u8; 32] = [0; 32];
    // SAFETY: two buffers of 32 bytes each.
    unsafe { ffi::CRYPTO_memcmp(secret.as_ptr().cast(), ZEROS.as_ptr().cast(), 32) != 0 }
}

/// Key pair, in the encoding of RFC 7748, section 5. Its owner must wipe it.
#[derive(Clone, Copy, Default)]
pub struct KeyPair {
    /// The scalar.
    pub private: [u8; 32],
    /// The coordinate.
    pub public: [u8; 32],
}

/// Computes the shared secret by the fastest scalar code; `None` for a point of small order.
pub fn secret(private: &[u8; 32], peer: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let mut secret = Zeroizing::new([0; 32]);
    Scalar.secrets(&mut [SecretOperation { private, peer, secret: &mut secret }]);
    is_contributory(&secret).then_some(secret)
}

/// Computes the public key of a private key.
pub fn public_key(private: &[u8; 32]) -> [u8; 32] {
    let mut public = [[0; 32]];
    Scalar.public_keys(std::slice::from_ref(private), &mut public);
    public[0]
}

impl Zeroize for KeyPair {
    fn zeroize(&mut self) {
        self.private.zeroize();
        self.public.zeroize();
    }
}
