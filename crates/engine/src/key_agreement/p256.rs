//! ECDH on P-256 (SP 800-56A, section 5.7.1.2), computed in lanes. Without lanes BoringSSL computes it in its own
//! handshake: no implementation is faster by enough for a single operation to pay for the hand-over.

use crate::Batching;
use quadrille_kernels::{P256_BYTES, P256_POINT_BYTES};
use zeroize::Zeroize;

/// Computes ECDH on P-256 of several connections at once.
pub trait P256: Send + Sync + 'static {
    /// Name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Number of operations that one pass computes at the price of one. Does not change.
    fn width(&self) -> usize;

    /// Smallest number of handshakes for which a pass is cheaper than BoringSSL, which computes smaller batches. Does
    /// not change.
    fn crossover(&self) -> usize;

    /// Width and crossover.
    fn batching(&self) -> Batching {
        Batching::new(self.width(), self.crossover())
    }

    /// Computes shared secrets: whole passes, and one partial pass. If an operation is not
    /// [`complete`](P256SecretOperation::complete) afterwards, its peer is not a point on the curve.
    fn secrets(&self, operations: &mut [P256SecretOperation<'_>]);

    /// Computes the public keys of the private keys, in whole passes. The public key is all zeros for a private key
    /// that is zero or not below the group's order.
    fn public_keys(&self, private: &[[u8; P256_BYTES]], public: &mut [[u8; P256_POINT_BYTES]]);
}

/// Shared secret to compute. Numbers are big-endian, and points uncompressed (SEC 1, section 2.3.3).
pub struct P256SecretOperation<'a> {
    /// The server's private key, below the group's order.
    pub private: &'a [u8; P256_BYTES],
    /// Public key sent by the client.
    pub peer: &'a [u8; P256_POINT_BYTES],
    /// Result: an x-coordinate.
    pub secret: &'a mut [u8; P256_BYTES],
    /// Whether the result is computed; initially `false`.
    pub complete: bool,
}

/// Key pair. Its owner must wipe it.
#[derive(Clone, Copy)]
pub struct P256KeyPair {
    /// The scalar.
    pub private: [u8; P256_BYTES],
    /// The point.
    pub public: [u8; P256_POINT_BYTES],
}

impl Default for P256KeyPair {
    fn default() -> Self {
        Self { private: [0; P256_BYTES], public: [0; P256_POINT_BYTES] }
    }
}

impl Zeroize for P256KeyPair {
    fn zeroize(&mut self) {
        self.private.zeroize();
        self.public.zeroize();
    }
}
