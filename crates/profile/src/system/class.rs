//! Classification of samples by the names of their functions.

use super::stacks::{Frame, Stack};
use serde::Serialize;
use std::fmt;

/// Class of work that CPU time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// RSA, in scalar code or in lanes.
    Rsa,
    /// Elliptic curves: ECDSA, ECDH, X25519, Ed25519.
    EllipticCurve,
    /// Diffie-Hellman over finite fields (DHE), still negotiated by clients with old settings.
    FiniteField,
    /// ML-KEM, the post-quantum half of X25519MLKEM768.
    MlKem,
    /// Ciphers and their authentication: AES-GCM, AES-CBC, ChaCha20-Poly1305.
    Symmetric,
    /// SHA, HMAC, and key derivation based on them.
    Hash,
    /// Handshake messages, records, certificates: TLS without its cryptography.
    Tls,
    /// HTTP and proxying.
    Http,
    /// Queues and batches of private-key operations, without the operations themselves.
    Engine,
    /// Event loop and tasks.
    EventLoop,
    /// The operating system: sockets, TCP, scheduling.
    Kernel,
    /// Named functions that belong to none of these classes.
    Other,
    /// No function of the stack has a name.
    Unknown,
}

impl Class {
    /// All classes, in the order of tables.
    pub const ALL: [Self; 13] = [
        Self::Rsa,
        Self::EllipticCurve,
        Self::FiniteField,
        Self::MlKem,
        Self::Symmetric,
        Self::Hash,
        Self::Tls,
        Self::Http,
        Self::Engine,
        Self::EventLoop,
        Self::Kernel,
        Self::Other,
        Self::Unknown,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rsa => "RSA",
            Self::EllipticCurve => "elliptic curves",
            Self::FiniteField => "finite-field DH",
            Self::MlKem => "ML-KEM",
            Self::Symmetric => "symmetric ciphers",
            Self::Hash => "hashes, key derivation",
            Self::Tls => "TLS messages, records",
            Self::Http => "HTTP, proxying",
            Self::Engine => "key-operation engine",
            Self::EventLoop => "event loop",
            Self::Kernel => "kernel",
            Self::Other => "other",
            Self::Unknown => "unknown",
        })
    }
}

/// Pattern of a function name. C and assembly names have prefixes, Rust names have paths.
enum Mark {
    Prefix(&'static str),
    Contains(&'static str),
}
use Mark::{Contains, Prefix};

/// Patterns that decide the class, from the innermost frame outwards; the first match wins.
///
/// The names are those of BoringSSL and OpenSSL (C and the assembly of CRYPTOGAMS, s2n-bignum, fiat), and of this
/// project's crates.
const DECISIVE: &[(Mark, Class)] = &[
    (Contains("quadrille_kernels::ml_kem"), Class::MlKem),
    (Contains("quadrille_kernels::x86_64::avx512"), Class::MlKem),
    (Contains("quadrille_kernels::x25519"), Class::EllipticCurve),
    (Contains("quadrille_kernels::x86_64::x25519"), Class::EllipticCurve),
    (Contains("quadrille_kernels::key_exchange"), Class::EllipticCurve),
    (Contains("quadrille_kernels::p256"), Class::EllipticCurve),
    (Contains("quadrille_kernels::x86_64::p256"), Class::EllipticCurve),
    (Contains("quadrille_kernels::signatures"), Class::EllipticCurve),
    (Prefix("quadrille_x25519"), Class::EllipticCurve),
    (Prefix("quadrille_p256"), Class::EllipticCurve),
    (Contains("quadrille_kernels"), Class::Rsa),
    (Prefix("quadrille_ifma"), Class::Rsa),
    (Prefix("quadrille_fma"), Class::Rsa),
    (Prefix("quadrille_avx2"), Class::Rsa),
    (Prefix("rsaz_"), Class::Rsa),
    (Prefix("RSAZ_"), Class::Rsa),
    (Prefix("rsa_"), Class::Rsa),
    (Prefix("RSA_"), Class::Rsa),
    (Prefix("RSAImpl"), Class::Rsa),
    (Prefix("ossl_rsa"), Class::Rsa),
    (Prefix("ec_"), Class::EllipticCurve),
    (Prefix("EC_"), Class::EllipticCurve),
    (Prefix("ECDSA_"), Class::EllipticCurve),
    (Prefix("ecdsa_"), Class::EllipticCurve),
    (Prefix("ECDH_"), Class::EllipticCurve),
    (Prefix("ECKey"), Class::EllipticCurve),
    (Prefix("ECCustomGroup"), Class::EllipticCurve),
    (Prefix("ecp_"), Class::EllipticCurve),
    (Prefix("__ecp_"), Class::EllipticCurve),
    (Prefix("nistz"), Class::EllipticCurve),
    (Prefix("p256"), Class::EllipticCurve),
    (Prefix("p384"), Class::EllipticCurve),
    (Prefix("beeu_"), Class::EllipticCurve),
    (Prefix("fiat_"), Class::EllipticCurve),
    (Prefix("fe_"), Class::EllipticCurve),
    (Prefix("ge_"), Class::EllipticCurve),
    (Prefix("x25519_"), Class::EllipticCurve),
    (Prefix("X25519"), Class::EllipticCurve),
    (Prefix("curve25519_"), Class::EllipticCurve),
    (Prefix("ED25519_"), Class::EllipticCurve),
    (Prefix("ossl_ec"), Class::EllipticCurve),
    (Prefix("ecx_"), Class::EllipticCurve),
    (Prefix("ossl_x25519"), Class::EllipticCurve),
    (Prefix("ossl_ecx"), Class::EllipticCurve),
    (Prefix("ossl_dh"), Class::FiniteField),
    (Prefix("ossl_ffc"), Class::FiniteField),
    (Prefix("dh_"), Class::FiniteField),
    (Prefix("DH_"), Class::FiniteField),
    (Contains("mlkem::"), Class::MlKem),
    (Prefix("mlkem"), Class::MlKem),
    (Prefix("MLKEM"), Class::MlKem),
    (Prefix("ml_kem"), Class::MlKem),
    (Prefix("ossl_ml_kem"), Class::MlKem),
    // Keccak is used for ML-KEM only.
    (Prefix("keccak"), Class::MlKem),
    (Prefix("BORINGSSL_keccak"), Class::MlKem),
    (Prefix("Keccak"), Class::MlKem),
    (Prefix("sha3_"), Class::MlKem),
    (Prefix("SHA3"), Class::MlKem),
    (Prefix("aes_"), Class::Symmetric),
    (Prefix("AES_"), Class::Symmetric),
    (Prefix("aesni_"), Class::Symmetric),
    (Prefix("_aesni_"), Class::Symmetric),
    (Prefix("vpaes_"), Class::Symmetric),
    (Prefix("_vpaes_"), Class::Symmetric),
    (Prefix("gcm_"), Class::Symmetric),
    (Prefix("ghash"), Class::Symmetric),
    (Prefix("CRYPTO_gcm"), Class::Symmetric),
    (Prefix("CRYPTO_ghash"), Class::Symmetric),
    (Prefix("chacha"), Class::Symmetric),
    (Prefix("ChaCha"), Class::Symmetric),
    (Prefix("CRYPTO_chacha"), Class::Symmetric),
    (Prefix("CRYPTO_poly1305"), Class::Symmetric),
    (Prefix("poly1305"), Class::Symmetric),
    (Prefix("CTR_DRBG"), Class::Symmetric),
    (Prefix("ctr_drbg"), Class::Symmetric),
    (Prefix("EVP_AEAD"), Class::Symmetric),
    (Prefix("EVP_Cipher"), Class::Symmetric),
    (Prefix("sha1_"), Class::Hash),
    (Prefix("sha256_"), Class::Hash),
    (Prefix("sha512_"), Class::Hash),
    (Prefix("SHA"), Class::Hash),
    (Prefix("md5_"), Class::Hash),
    (Prefix("MD5"), Class::Hash),
    (Prefix("HMAC"), Class::Hash),
    (Prefix("HKDF"), Class::Hash),
    (Prefix("hkdf_"), Class::Hash),
    (Prefix("BCM_sha"), Class::Hash),
    (Prefix("EVP_Digest"), Class::Hash),
    (Prefix("EVP_MD"), Class::Hash),
    (Prefix("CRYPTO_tls"), Class::Hash),
    (Prefix("tls1_prf"), Class::Hash),
    (Prefix("SSL"), Class::Tls),
    (Prefix("ssl"), Class::Tls),
    (Prefix("tls"), Class::Tls),
    (Prefix("ext_"), Class::Tls),
    (Prefix("CBS_"), Class::Tls),
    (Prefix("CBB_"), Class::Tls),
    (Prefix("X509"), Class::Tls),
    (Prefix("ASN1"), Class::Tls),
    (Prefix("asn1_"), Class::Tls),
    (Contains("quadrille_gateway::tls"), Class::Tls),
    (Contains("quadrille_gateway::accept"), Class::Tls),
    (Contains("tokio_boring"), Class::Tls),
    (Contains("boring::"), Class::Tls),
    (Contains("quadrille_engine"), Class::Engine),
    (Contains("quadrille_keyless"), Class::Engine),
    (Contains("hyper::"), Class::Http),
    (Contains("quadrille_gateway::http"), Class::Http),
    (Contains("quadrille_gateway::upstream"), Class::Http),
    (Contains("quadrille_gateway::tcp"), Class::Http),
    (Contains("httparse"), Class::Http),
    (Contains("http::"), Class::Http),
    (Contains("h2::"), Class::Http),
    (Prefix("ngx_http"), Class::Http),
    (Contains("tokio::"), Class::EventLoop),
    (Contains("mio::"), Class::EventLoop),
    (Prefix("epoll_"), Class::EventLoop),
    (Prefix("ngx_epoll"), Class::EventLoop),
];

/// Patterns that decide if no decisive one matches: functions that serve several classes, and mostly this one.
const OTHERWISE: &[(Mark, Class)] = &[
    // Elliptic curves without dedicated code use them too, but then an ec_ function is on the stack.
    (Prefix("bn_"), Class::Rsa),
    (Prefix("__bn_"), Class::Rsa),
    (Prefix("BN_"), Class::Rsa),
];

/// Classifies a sample.
///
/// A sample in the kernel belongs to the kernel. Otherwise the innermost function that has a class decides: copying
/// memory for HTTP is HTTP, allocating for the handshake is TLS.
pub fn classify(stack: &Stack) -> Class {
    if stack.frames.first().is_some_and(Frame::in_kernel) {
        return Class::Kernel;
    }
    let names: Vec<&str> = stack.frames.iter().filter_map(|frame| frame.name.as_deref()).map(bare).collect();
    let by = |rules: &[(Mark, Class)]| {
        let class_of = |name: &&str| rules.iter().find(|(mark, _)| mark.fits(name)).map(|(_, class)| *class);
        names.iter().find_map(class_of)
    };
    let nameless = if names.is_empty() { Class::Unknown } else { Class::Other };
    by(DECISIVE).or_else(|| by(OTHERWISE)).unwrap_or(nameless)
}

/// Strips namespaces and prefixes that do not identify a class: BoringSSL's C++ namespace `bssl` contains both
/// cryptography and protocol, and AWS-LC's prefix is its version: `aws_lc_0_47_0_`.
fn bare(name: &str) -> &str {
    if let Some(version) = name.strip_prefix("aws_lc_") {
        return version.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '_');
    }
    let name = name.strip_prefix("bssl::").unwrap_or(name);
    name.strip_prefix("(anonymous namespace)::").unwrap_or(name)
}

impl Mark {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Prefix(prefix) => name.starts_with(prefix),
            Self::Contains(part) => name.contains(part),
        }
    }
}

/// Samples by class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    counts: std::collections::BTreeMap<Class, u64>,
}

impl Shares {
    /// Counts samples by class.
    pub fn from_stacks(stacks: &[Stack]) -> Self {
        let mut counts = std::collections::BTreeMap::new();
        for stack in stacks {
            *counts.entry(classify(stack)).or_default() += 1;
        }
        Self { counts }
    }

    /// Returns the number of samples.
    pub fn samples(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns the fraction of samples in `class`, 0 to 1.
    pub fn share(&self, class: Class) -> f64 {
        let count = self.counts.get(&class).copied().unwrap_or_default();
        count as f64 / self.samples().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Stack {
        let frame = |name: &&str| Frame {
            name: (!name.is_empty()).then(|| (*name).to_owned()),
            object: "quadrille".to_owned(),
        };
        Stack { thread: "worker-0".into(), frames: names.iter().map(frame).collect() }
    }

    #[test]
    fn the_innermost_function_with_a_class_decides() {
        let cases: &[(&[&str], Class)] = &[
            (&["quadrille_ifma_20_square"], Class::Rsa),
            (&["__memmove_avx512", "<quadrille_kernels::lanes::Pool<A>>::run"], Class::Rsa),
            (&["__memmove_avx512", "quadrille_kernels::p256::batch::sign"], Class::EllipticCurve),
            (&["quadrille_x25519_ladders", "quadrille_kernels::lanes::agree"], Class::EllipticCurve),
            (&["quadrille_kernels::ml_kem::encapsulate::pass"], Class::MlKem),
            (&["aws_lc_0_47_0_curve25519_x25519_byte"], Class::EllipticCurve),
            (&["aws_lc_0_47_0_mlkem_ntt_avx2_asm"], Class::MlKem),
            (&["aws_lc_0_47_0_rsaz_amm52x20_x1_ifma256"], Class::Rsa),
            (&["fiat_curve25519_adx_mul", "bssl::x25519_scalar_mult_adx"], Class::EllipticCurve),
            (&["bssl::(anonymous namespace)::X25519MLKEM768KeyShare::Encap"], Class::EllipticCurve),
            (&["keccak_f_x4", "mlkem::(anonymous namespace)::encrypt_cpa<3>"], Class::MlKem),
            (&["aes_gcm_enc_update_vaes_avx10_512", "bssl::SSLAEADContext::SealScatter"], Class::Symmetric),
            (&["sha256_block_data_order_hw", "bssl::tls13_derive"], Class::Hash),
            (&["mi_malloc", "bssl::ssl_read_buffer_extend_to"], Class::Tls),
            (&["mi_malloc", "boring::ssl::Ssl::new", "quadrille_gateway::listener::accept"], Class::Tls),
            (
                &["hyper::proto::h1::dispatch::Dispatcher::poll_catch", "tokio::runtime::task::raw::poll"],
                Class::Http,
            ),
            (&["<quadrille_engine::queue::Queue>::push", "bssl::ssl_run_handshake"], Class::Engine),
            (&["core::ptr::drop_in_place", "tokio::runtime::task::raw::poll"], Class::EventLoop),
            (
                &["bn_mulx4x_mont", "BN_mod_exp_mont", "ossl_dh_compute_key", "EVP_PKEY_derive"],
                Class::FiniteField,
            ),
            (&["x25519_fe51_mul", "ossl_x25519", "x25519_derive"], Class::EllipticCurve),
            (&["main"], Class::Other),
            (&["", ""], Class::Unknown),
            (&["", "SSL_do_handshake"], Class::Tls),
        ];
        for (names, class) in cases {
            assert_eq!(classify(&stack(names)), *class, "{names:?}");
        }
    }

    #[test]
    fn big_numbers_are_those_of_rsa_unless_a_curve_called_for_them() {
        assert_eq!(classify(&stack(&["bn_mulx4x_mont", "bn_mul_mont"])), Class::Rsa);
        assert_eq!(classify(&stack(&["bn_mul_mont", "bssl::ec_GFp_mont_felem_mul"])), Class::EllipticCurve);
    }

    #[test]
    fn kernel_samples_belong_to_the_kernel_for_any_caller() {
        let mut stack = stack(&["tcp_sendmsg", "SSL_write"]);
        stack.frames[0].object = "[kernel.kallsyms]".into();
        assert_eq!(classify(&stack), Class::Kernel);
    }

    #[test]
    fn shares_add_up() {
        let stacks = [stack(&["bn_mul_mont"]), stack(&["bn_mul_mont"]), stack(&[""]), stack(&["SSL_read"])];
        let shares = Shares::from_stacks(&stacks);
        assert_eq!((shares.samples(), shares.share(Class::Rsa)), (4, 0.5));
        assert_eq!(shares.share(Class::Unknown), 0.25);
        let sum: f64 = Class::ALL.iter().map(|class| shares.share(*class)).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}
