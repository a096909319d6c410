//! Errors, by cause.

/// Reason for which a private key was not accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// No PEM block with a private key was found.
    #[error("no private key found (expected a PEM block such as BEGIN PRIVATE KEY)")]
    Missing,
    /// The PEM block is encrypted.
    #[error(
        "the private key is encrypted; decrypt it first, for example: openssl pkey -in KEY -out KEY.plain"
    )]
    Encrypted,
    /// The PEM block does not contain a usable private key.
    #[error("the private key is malformed, or its format is not supported")]
    Malformed,
    /// Key of an unsupported algorithm or curve.
    #[error(
        "unsupported private key type (supported: RSA, ECDSA on P-256, P-384, P-521, Ed25519, ML-DSA-44, -65 and -87)"
    )]
    Unsupported,
    /// Key on an unsupported curve, which is named.
    #[error(
        "unsupported private key type: it is on the curve {0} (supported: P-256, P-384, P-521); generate another key and \
         certificate, for example: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
    )]
    UnsupportedCurve(&'static str),
    /// Key whose curve is written out, and not named.
    #[error(
        "unsupported private key type: its curve is given by explicit parameters, and not by name; if it is P-256, P-384 \
         or P-521, convert the key: openssl ec -in KEY -param_enc named_curve -out KEY.named"
    )]
    ExplicitParameters,
    /// HashML-DSA, whose object identifier is not one of pure ML-DSA.
    #[error(
        "unsupported private key type: HashML-DSA, which certificates cannot have (RFC 9881 section 8.3); generate another \
         key and certificate, for example with OpenSSL 3.5: openssl genpkey -algorithm ML-DSA-44"
    )]
    HashMlDsa,
    /// ML-DSA key with algorithm parameters.
    #[error(
        "the {0} private key has algorithm parameters, which must be absent (RFC 9881 section 2); export it again with \
         current software, or generate another key and certificate"
    )]
    MlDsaParameters(&'static str),
    /// ML-DSA key that is not a seed, an expanded key, or both.
    #[error(
        "malformed {0} private key: it should contain a seed of 32 bytes, an expanded key of {1} bytes, or both (RFC 9881 \
         section 6); restore it, or export it again"
    )]
    MlDsaForm(&'static str, usize),
    /// ML-DSA key whose parts do not belong together.
    #[error(
        "inconsistent {0} private key: its parts contradict each other (seed and expanded key, or t0, tr and the secret \
         vectors); the file is damaged, or was put together from two keys: restore it, or generate another key and \
         certificate"
    )]
    MlDsaInconsistent(&'static str),
    /// ML-DSA key without its seed, where BoringSSL itself has to sign.
    #[error(
        "the {0} private key contains no seed, but only the expanded key, which is supported for certificates of listeners \
         and in key servers; use a key with its seed here (RFC 9881 section 6)"
    )]
    WithoutSeed(&'static str),
    /// Key outside this process's memory, where BoringSSL itself has to sign.
    #[error(
        "the private key is in a PKCS#11 token, which is supported for certificates of listeners and in key servers; use a \
         key in a file here"
    )]
    External,
    /// RSA modulus outside the supported sizes.
    #[error("RSA keys of {0} bits are not supported (supported: 1024 to 8192, in TLS 2048 to 4096)")]
    RsaSize(u32),
}

/// Reason for which a client's key share gets no response.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ExchangeError {
    /// A point of small order or off the curve, or a key that is not reduced; a conforming client does not send it.
    #[error("the client's key share is not valid")]
    InvalidShare,
    /// Too few shares of the group in this turn to pay for the hand-over; the TLS library computes the share.
    #[error("the key share is left to the TLS library")]
    Declined,
    /// No random numbers available, or the backend failed.
    #[error("the key exchange failed")]
    Failed,
}

/// Reason for which an operation has no result.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum OperationError {
    /// Too many operations wait; try again later, or reject the client.
    #[error("the queue of private-key operations is full")]
    QueueFull,
    /// The engine is shutting down.
    #[error("the engine has stopped")]
    Stopped,
    /// The scheme does not match the key type, or the key cannot decrypt.
    #[error("the operation does not fit the key")]
    WrongKeyType,
    /// The length of the ciphertext differs from the modulus's, the ciphertext is not below the modulus, the length
    /// of the digest differs from its hash's, or the modulus has no room for the padding.
    #[error("the input is not valid for the key")]
    InvalidInput,
    /// The backend failed, or its result did not verify and could not be recomputed.
    #[error("the private-key operation failed")]
    Failed,
}
