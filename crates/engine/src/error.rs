//! What can go wrong, and whose fault it is.

/// Why a private key was not accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// No PEM block with a private key was found.
    #[error("there is no private key in it (expected a PEM block such as BEGIN PRIVATE KEY)")]
    Missing,
    /// The PEM block is encrypted.
    #[error(
        "the private key is encrypted; decrypt it first, for example: openssl pkey -in KEY -out KEY.plain"
    )]
    Encrypted,
    /// The block is there, but what it holds is not a private key that can be used.
    #[error("the private key is damaged or of a form that is not supported")]
    Malformed,
    /// A key of another algorithm or curve.
    #[error(
        "private keys of this kind are not supported (supported: RSA, ECDSA on P-256, P-384, P-521, Ed25519)"
    )]
    Unsupported,
    /// RSA outside the supported sizes.
    #[error("RSA keys of {0} bits are not supported (supported: 1024 to 8192, in TLS 2048 to 4096)")]
    RsaSize(u32),
}

/// Why a client's key share has no answer.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ExchangeError {
    /// A point of small order or off the curve, or a key that is not reduced: the client must not have sent it.
    #[error("the client's key share is not valid")]
    InvalidShare,
    /// Too few of its group came together to be worth the hand-over: let the TLS library compute it.
    #[error("the key share is left to the TLS library")]
    Declined,
    /// There are no random numbers, or the backend failed.
    #[error("the key exchange failed")]
    Failed,
}

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum OperationError {
    /// Too many operations wait; try again later, or shed the client.
    #[error("the queue of private-key operations is full")]
    QueueFull,
    /// The engine is shutting down.
    #[error("the engine has stopped")]
    Stopped,
    /// The scheme does not fit the key, or the key cannot decrypt.
    #[error("the operation does not fit the key")]
    WrongKeyType,
    /// The ciphertext is not of the modulus's length or not below the modulus, the digest is not of its hash's length,
    /// or the modulus has no room for the padding.
    #[error("the input is not valid for the key")]
    InvalidInput,
    /// The backend failed, or its result did not verify and could not be recomputed.
    #[error("the private-key operation failed")]
    Failed,
}
