//! Signature algorithms that the certificates of peers are verified with (RFC 8446 section 4.2.3): BoringSSL's
//! defaults leave out P-521, Ed25519 and ML-DSA, so every context that authenticates a peer gets the list of this crate.
//!
//! A client of TLS 1.2 also needs the curve of a server's certificate among its groups (RFC 8422 section 5.1).

use boring::{
    error::ErrorStack,
    ssl::{SslContextBuilder, SslSignatureAlgorithm as Algorithm},
};

/// Algorithms of the list, most preferred first: BoringSSL's own, then those of the keys that it leaves out, then
/// SHA-1, which old servers of TLS 1.2 have only, then ML-DSA, of TLS 1.3 (RFC 9881).
const VERIFIED: [Algorithm; 14] = [
    Algorithm::ECDSA_SECP256R1_SHA256,
    Algorithm::RSA_PSS_RSAE_SHA256,
    Algorithm::RSA_PKCS1_SHA256,
    Algorithm::ECDSA_SECP384R1_SHA384,
    Algorithm::RSA_PSS_RSAE_SHA384,
    Algorithm::RSA_PKCS1_SHA384,
    Algorithm::ECDSA_SECP521R1_SHA512,
    Algorithm::RSA_PSS_RSAE_SHA512,
    Algorithm::RSA_PKCS1_SHA512,
    Algorithm::ED25519,
    Algorithm::RSA_PKCS1_SHA1,
    Algorithm::ML_DSA_44,
    Algorithm::ML_DSA_65,
    Algorithm::ML_DSA_87,
];

/// Groups of clients, most preferred first: BoringSSL's own, and the curve that it leaves out.
pub const CLIENT_GROUPS: &str = "X25519MLKEM768:X25519:P-256:P-384:P-521";

/// Makes the connections of a context verify peers with RSA, P-256, P-384, P-521, Ed25519 and ML-DSA
/// keys.
///
/// # Errors
/// If memory is exhausted.
pub fn verify_all(builder: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    builder.set_verify_algorithm_prefs(&VERIFIED)
}

/// Makes a context of clients verify servers with keys of all these kinds, also in TLS 1.2.
///
/// # Errors
/// If memory is exhausted.
pub fn verify_all_servers(builder: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    verify_all(builder)?;
    builder.set_curves_list(CLIENT_GROUPS)
}
