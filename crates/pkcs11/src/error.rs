//! Failures of tokens, by cause.

use cryptoki::error::{Error, RvError};

/// Reason for which a token or one of its keys cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    /// The vendor's library cannot be loaded or initialised.
    #[error(
        "cannot load the PKCS#11 module {module}: {reason}; install the library of the token's vendor, or correct module-path"
    )]
    Module {
        /// Path of the library.
        module: String,
        /// Reason given by the loader or the library.
        reason: String,
    },
    /// No slot holds such a token.
    #[error(
        "no token {0} is present; insert it, or correct the URI (softhsm2-util --show-slots, pkcs11-tool --list-slots)"
    )]
    Absent(String),
    /// Several slots hold such a token.
    #[error("several tokens match {0}; add serial= or slot-id=")]
    Ambiguous(String),
    /// The token requires a PIN, and none is configured.
    #[error("the token requires a PIN; add pin-source=file:/path or pin-source=env:NAME to the URI")]
    PinMissing,
    /// The PIN cannot be read.
    #[error("cannot read the PIN from {place}: {reason}")]
    PinUnreadable {
        /// File or variable.
        place: String,
        /// Reason.
        reason: String,
    },
    /// The token has rejected the PIN.
    #[error(
        "the token rejected the PIN ({0}); it is not tried again, so that the token is not locked: correct the PIN in its source"
    )]
    PinRejected(String),
    /// The PIN was not tried, because the token would be locked by another failure.
    #[error(
        "the PIN is not tried, because {0}; log in once with the vendor's tool, or unlock the token (pkcs11-tool --login)"
    )]
    PinAtRisk(&'static str),
    /// No key matches.
    #[error("the token has no private key {0}; list its keys with `quadrille keyserver keys --keys URI`")]
    NoKey(String),
    /// Several keys match.
    #[error(
        "several private keys of the token match {0}; add object= or id=, as `quadrille keyserver keys --keys URI` shows them"
    )]
    SeveralKeys(String),
    /// The public half of a key cannot be determined.
    #[error(
        "the token has no public key or certificate with the label and id of {0}; add the certificate in PEM to the file with \
         the URI, or store the public key in the token"
    )]
    NoPublicKey(String),
    /// The public half of a key is not of a supported type.
    #[error("the key {0} is not of a supported type: {1}")]
    Unsupported(String, String),
    /// The token's key is not that of the certificate.
    #[error("the private key {0} does not match the certificate")]
    Mismatch(String),
    /// The token did not respond in time.
    #[error("the token did not respond in time; restart its driver or the connection to it")]
    Timeout,
    /// Too many operations wait for the token.
    #[error("too many operations wait for the token")]
    Full,
    /// The token or its library has failed.
    #[error("the token failed: {0}")]
    Failed(String),
}

impl TokenError {
    /// Returns whether the token may become available without a change of the configuration.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Absent(_) | Self::Timeout | Self::Full | Self::Failed(_))
    }
}

/// Class of an error of the library, by the state of the session after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The session is as before.
    Nothing,
    /// The session is usable only after another login, or with other handles of keys.
    Login,
    /// The session does not exist any more.
    Session,
    /// The token has no room for another session.
    Room,
}

/// Returns the state of the session after this error.
pub(crate) fn loss(error: &Error) -> Loss {
    use RvError as E;
    let Error::Pkcs11(error, _) = error else { return Loss::Nothing };
    match error {
        E::UserNotLoggedIn
        | E::KeyHandleInvalid
        | E::ObjectHandleInvalid
        | E::OperationActive
        | E::OperationNotInitialized
        | E::GeneralError
        | E::FunctionFailed => Loss::Login,
        E::SessionHandleInvalid
        | E::SessionClosed
        | E::DeviceRemoved
        | E::DeviceError
        | E::TokenNotPresent
        | E::TokenNotRecognized
        | E::SlotIdInvalid
        | E::CryptokiNotInitialized => Loss::Session,
        E::SessionCount => Loss::Room,
        _ => Loss::Nothing,
    }
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        Self::Failed(name(&error))
    }
}

/// Returns the name of an error in PKCS#11, and its function.
pub(crate) fn name(error: &Error) -> String {
    match error {
        Error::Pkcs11(error, function) => format!("{function:?}: {error:?}"),
        other => other.to_string(),
    }
}
