//! Attribution of samples to steps of TLS, by the functions on the stack.
//!
//! [`Class`](super::Class) tells which algorithm ran, a step tells its purpose: an ECDSA verification may be part of
//! chain verification or of the key exchange. Steps are meant for programs that use OpenSSL or BoringSSL as a client,
//! where the algorithm alone does not show possible savings. Distributions strip OpenSSL, so the names here are
//! mostly those that a library exports.

use super::stacks::{Frame, Stack};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// A step of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Generation of key pairs, and shared secrets.
    KeyExchange,
    /// Verification of the certificate chain, and lookup of its trust anchors.
    CertificateVerification,
    /// Creation or verification of the handshake signature.
    Signature,
    /// Creation of a context for connections, with reading and decoding of trusted certificates.
    Context,
    /// Decoding or encoding of a session of an earlier connection, with the certificate in it.
    Session,
    /// Protection of records.
    Records,
    /// All other work of a TLS library: messages, key schedule, decoding of certificates.
    Messages,
    /// The operating system: sockets, TCP.
    Kernel,
    /// Work that is not TLS.
    Other,
}

impl Step {
    /// All steps, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::KeyExchange,
        Self::CertificateVerification,
        Self::Signature,
        Self::Context,
        Self::Session,
        Self::Records,
        Self::Messages,
        Self::Kernel,
        Self::Other,
    ];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::KeyExchange => "key exchange",
            Self::CertificateVerification => "certificate verification",
            Self::Signature => "signature",
            Self::Context => "contexts, trust anchors",
            Self::Session => "sessions",
            Self::Records => "records",
            Self::Messages => "other TLS",
            Self::Kernel => "kernel",
            Self::Other => "not TLS",
        })
    }
}

/// Name prefixes of each step; the first step with a match anywhere on the stack wins. Steps that contain others come
/// first: chain verification checks signatures, and a context reads certificates.
const STEPS: &[(Step, &[&str])] = &[
    (
        Step::CertificateVerification,
        &[
            "X509_verify_cert",
            "X509_STORE_CTX_verify",
            "ssl_verify_cert_chain",
            "ssl_crypto_x509_session_verify",
        ],
    ),
    (
        Step::Session,
        &["d2i_SSL_SESSION", "i2d_SSL_SESSION", "SSL_SESSION_from_bytes", "SSL_SESSION_to_bytes"],
    ),
    (
        Step::Context,
        &[
            "SSL_CTX_new",
            "SSL_CTX_use_",
            "SSL_CTX_load_verify",
            "SSL_CTX_set_",
            "X509_STORE_add",
            "X509_STORE_load",
            "X509_load_",
            "X509_LOOKUP",
            "PEM_read_bio",
            "node::crypto::SecureContext::",
            "node::crypto::NewRootCertStore",
        ],
    ),
    (
        Step::KeyExchange,
        &[
            "EVP_PKEY_derive",
            "EVP_PKEY_generate",
            "EVP_PKEY_keygen",
            "EVP_PKEY_encapsulate",
            "EVP_PKEY_decapsulate",
            "EVP_PKEY_Q_keygen",
            // Check of the server's parameters by a client (DHE).
            "EVP_PKEY_param_check",
            "EVP_PKEY_public_check",
            "tls_process_ske_",
            "ssl_derive",
            "ssl_generate_pkey",
            "ssl_decapsulate",
            "ssl_encapsulate",
            "tls_construct_cke",
            "tls_process_cke",
            "X25519",
            "MLKEM",
            "quadrille_kernels::x25519",
            "quadrille_kernels::p256::exchange",
            "quadrille_kernels::p256::multiple",
            "quadrille_kernels::ml_kem",
            "quadrille_engine::key_exchange",
            // BoringSSL's classes of groups.
            "X25519KeyShare",
            "X25519MLKEM768KeyShare",
            "ECKeyShare",
        ],
    ),
    (
        Step::Signature,
        &[
            "EVP_DigestVerify",
            "EVP_DigestSign",
            "EVP_PKEY_verify",
            "EVP_PKEY_sign",
            "EVP_VerifyFinal",
            "ssl_public_key_verify",
            "quadrille_kernels",
            "tls_process_cert_verify",
        ],
    ),
    (
        Step::Records,
        &[
            "ssl3_read_bytes",
            "ssl3_write_bytes",
            "ssl3_get_record",
            "tls13_enc",
            "tls1_enc",
            "tls13_cipher",
            "tls1_cipher",
            "tls_get_more_records",
            "tls_write_records",
            "EVP_EncryptUpdate",
            "EVP_DecryptUpdate",
            "EVP_CipherUpdate",
            "EVP_Cipher",
            "EVP_AEAD_CTX",
            "SSLAEADContext",
            "aes_gcm_",
            "aesni_gcm",
            "ossl_gcm",
            "ChaCha20_",
            "chacha20_poly1305",
        ],
    ),
    (
        Step::Messages,
        &["SSL_", "ssl_", "tls_", "tls1", "X509", "ASN1_", "asn1_", "state_machine", "node::crypto::TLSWrap"],
    ),
];

/// Returns the TLS step that a sample belongs to.
///
/// Kernel samples count as the kernel's for any caller. A handshake also reads its messages with `ssl3_read_bytes`,
/// so a handshake step on the stack takes precedence over it.
pub fn step_of(stack: &Stack) -> Step {
    if stack.frames.first().is_some_and(Frame::in_kernel) {
        return Step::Kernel;
    }
    let names: Vec<&str> = stack.frames.iter().filter_map(|frame| frame.name.as_deref()).map(bare).collect();
    let under_way =
        |prefixes: &[&str]| names.iter().any(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    let handshake = under_way(&["state_machine", "SSL_do_handshake", "SSL_connect", "SSL_accept"]);
    let holds = |(step, prefixes): &&(Step, &[&str])| {
        // In a handshake's state machine, records are few and small; their readers wait or parse.
        !(*step == Step::Records && handshake) && under_way(prefixes)
    };
    STEPS.iter().find(holds).map_or(Step::Other, |(step, _)| *step)
}

/// Strips BoringSSL's C++ namespaces and the angle bracket of a Rust implementation.
fn bare(name: &str) -> &str {
    let name = name.strip_prefix("bssl::").unwrap_or(name);
    let name = name.strip_prefix("(anonymous namespace)::").unwrap_or(name);
    name.strip_prefix('<').unwrap_or(name)
}

/// Samples by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    counts: BTreeMap<Step, u64>,
}

impl Steps {
    /// Counts samples by step.
    pub fn from_stacks(stacks: &[Stack]) -> Self {
        let mut counts = BTreeMap::new();
        for stack in stacks {
            *counts.entry(step_of(stack)).or_default() += 1;
        }
        Self { counts }
    }

    /// Returns the fraction of samples in `step`, 0 to 1.
    pub fn share(&self, step: Step) -> f64 {
        let all = self.counts.values().sum::<u64>().max(1);
        self.counts.get(&step).copied().unwrap_or_default() as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Stack {
        let frame = |name: &&str| Frame { name: Some((*name).to_owned()), object: "node".to_owned() };
        Stack { thread: "node".into(), frames: names.iter().map(frame).collect() }
    }

    #[test]
    fn the_widest_step_that_is_under_way_holds() {
        let cases: &[(&[&str], Step)] = &[
            (
                &["bn_mul_mont", "EVP_DigestVerify", "X509_verify_cert", "SSL_do_handshake"],
                Step::CertificateVerification,
            ),
            (&["bn_mul_mont", "EVP_DigestVerify", "SSL_do_handshake"], Step::Signature),
            (&["x25519_fe51_mul", "EVP_PKEY_derive", "ssl_derive", "SSL_do_handshake"], Step::KeyExchange),
            (
                &[
                    "ossl_sa_doall_arg",
                    "x509_pubkey_ex_d2i_ex",
                    "d2i_SSL_SESSION",
                    "node::crypto::TLSWrap::SetSession",
                ],
                Step::Session,
            ),
            (
                &["asn1_item_embed_d2i", "PEM_read_bio_X509", "node::crypto::SecureContext::AddCACert"],
                Step::Context,
            ),
            (&["aesni_gcm_decrypt", "tls13_enc", "ssl3_read_bytes", "SSL_read"], Step::Records),
            (&["malloc", "ssl3_read_bytes", "SSL_read", "SSL_do_handshake"], Step::Messages),
            (&["bn_mulx4x_mont", "EVP_PKEY_param_check", "tls_process_key_exchange"], Step::KeyExchange),
            (&["bssl::(anonymous namespace)::X25519KeyShare::Decap", "SSL_do_handshake"], Step::KeyExchange),
            (
                &["quadrille_p256_windows_add", "quadrille_kernels::p256::multiple::multiply"],
                Step::KeyExchange,
            ),
            (&["quadrille_p256_comb_add", "quadrille_kernels::p256::batch::sign"], Step::Signature),
            (&["v8::internal::Scavenger::Process"], Step::Other),
        ];
        for (names, step) in cases {
            assert_eq!(step_of(&stack(names)), *step, "{names:?}");
        }
        let mut kernel = stack(&["tcp_sendmsg", "SSL_write"]);
        kernel.frames[0].object = "[kernel.kallsyms]".into();
        assert_eq!(step_of(&kernel), Step::Kernel);
        let steps = Steps::from_stacks(&[kernel, stack(&["SSL_read"])]);
        assert_eq!((steps.share(Step::Kernel), steps.share(Step::Messages)), (0.5, 0.5));
    }
}
