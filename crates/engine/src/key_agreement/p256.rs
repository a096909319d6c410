//! ECDH on P-256 (SP 800-56A, section 5.7.1.2): who computes it in lanes. Without them it is BoringSSL's, in its own
//! handshake: nobody computes one operation so much faster that it would pay for the hand-over.

use crate::Batching;
use quadrille_kernels::{P256_BYTES, P256_POINT_BYTES};
use zeroize::Zeroize;

/// Computes ECDH on P-256 of several connections at once.
pub trait P256: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// How many operations one pass computes for the price of one. Does not change.
    fn width(&self) -> usize;

    /// From how many handshakes on a pass is cheaper than BoringSSL, which keeps the smaller batches. Does not change.
    fn crossover(&self) -> usize;

    /// Width and crossover.
    fn batching(&self) -> Batching {
        Batching::new(self.width(), self.crossover())
    }

    /// Computes shared secrets: whole passes, and one in part. An operation whose secret is not
    /// [`complete`](P256SecretOperation::complete) afterwards has a peer that is no point on the curve.
    fn secrets(&self, operations: &mut [P256SecretOperation<'_>]);

    /// Computes the public keys of as many private keys, in whole passes. Zeros for a private key that is zero or not
    /// below the group's order.
    fn public_keys(&self, private: &[[u8; P256_BYTES]], public: &mut [[u8; P256_POINT_BYTES]]);
}

/// A shared secret to be computed. Numbers are big-endian, and points uncompressed (SEC 1, section 2.3.3).
pub struct P256SecretOperation<'a> {
    /// The server's private key, below the group's order.
    pub private: &'a [u8; P256_BYTES],
    /// The client's public key, as it has sent it.
    pub peer: &'a [u8; P256_POINT_BYTES],
    /// The result: an x-coordinate.
    pub secret: &'a mut [u8; P256_BYTES],
    /// Whether the result is there; `false` before.
    pub complete: bool,
}

/// A key pair. Whoever has it wipes it.
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
