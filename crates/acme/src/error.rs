//! Errors of certificate orders.

use std::io;

/// Reason why an order failed.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The authority cannot be reached or has an internal error. A retry does not count against its limits.
    #[error("cannot reach the certificate authority: {0}")]
    Unreachable(String),
    /// The authority rejects the request. Every retry counts against its limits.
    #[error("the certificate authority rejects the request: {0}")]
    Refused(String),
    /// The account no longer exists at the authority.
    #[error("the certificate authority does not know the account: {0}")]
    NoAccount(String),
    /// The data that the authority sent is invalid.
    #[error("invalid data from the certificate authority: {0}")]
    Garbage(String),
    /// The command that changes DNS failed.
    #[error("`acme.dns_hook`: {0}")]
    Hook(String),
    /// The fleet's Redis cannot be reached.
    #[error("the fleet's Redis is unavailable: {0}")]
    Fleet(String),
    /// Another gateway of the fleet has taken over the lease.
    #[error("lost the fleet's lease during the order; another gateway continues")]
    Lease,
    /// A key server does not generate a key, or does not sign with it.
    #[error("the key is unavailable: {0}")]
    KeyServer(String),
    /// No key server holds the key that was generated for an order any longer.
    #[error("the key is unavailable: {0}; the next attempt generates another")]
    NoKey(String),
    /// A file in the state directory, or one that the account needs, is unusable.
    #[error("{0}")]
    File(String),
}

impl AcmeError {
    /// Error about a file.
    pub(crate) fn file(what: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Self::File(format!(
            "cannot {what} {}: {error}; check `acme.state` and its permissions",
            path.display()
        ))
    }

    /// Returns whether a retry counts against the authority's limits.
    pub(crate) fn counts(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Garbage(_) | Self::Hook(_))
    }
}

impl From<instant_acme::Error> for AcmeError {
    fn from(error: instant_acme::Error) -> Self {
        use instant_acme::Error;
        match error {
            Error::Api(problem) => {
                let kind =
                    problem.r#type.as_deref().unwrap_or_default().rsplit(':').next().unwrap_or_default();
                match (kind, problem.status) {
                    ("accountDoesNotExist", _) => Self::NoAccount(problem.to_string()),
                    ("badNonce" | "serverInternal", _) | (_, Some(500..)) => {
                        Self::Unreachable(problem.to_string())
                    }
                    _ => Self::Refused(problem.to_string()),
                }
            }
            Error::Other(source) => Self::Unreachable(source.to_string()),
            Error::Timeout(_) => Self::Unreachable("no response in time".to_owned()),
            Error::Json(_) => {
                Self::Garbage("not JSON of RFC 8555; does `acme.directory` name a directory?".to_owned())
            }
            other => Self::Garbage(other.to_string()),
        }
    }
}

/// BoringSSL errors never stem from user input, which has been validated before.
impl From<boring::error::ErrorStack> for AcmeError {
    fn from(error: boring::error::ErrorStack) -> Self {
        Self::Garbage(format!("BoringSSL: {error}"))
    }
}
