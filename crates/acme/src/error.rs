//! Why there is no certificate.

use std::io;

/// Why an order came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The authority cannot be reached, or has trouble of its own. Asking again costs nothing.
    #[error("the certificate authority cannot be asked: {0}")]
    Unreachable(String),
    /// The authority says no. Every further try counts against its limits.
    #[error("the certificate authority refuses: {0}")]
    Refused(String),
    /// The authority does not know the account any more.
    #[error("the certificate authority does not know the account: {0}")]
    NoAccount(String),
    /// What the authority sent is no answer.
    #[error("what the certificate authority sent is of no use: {0}")]
    Garbage(String),
    /// The command that changes DNS failed.
    #[error("`acme.dns_hook`: {0}")]
    Hook(String),
    /// The fleet's Redis cannot be asked.
    #[error("the fleet cannot be asked: {0}")]
    Fleet(String),
    /// Another gateway of the fleet may order now.
    #[error("this gateway has lost the fleet's lease while it ordered; another one goes on")]
    Lease,
    /// A key server does not make a key, or does not sign with it.
    #[error("the key is not to be had: {0}")]
    KeyServer(String),
    /// No key server has a key any more that was made for an order.
    #[error("the key is not to be had: {0}; the next try makes another")]
    NoKey(String),
    /// A file in the state directory, or one that the account needs.
    #[error("{0}")]
    File(String),
}

impl AcmeError {
    /// About a file.
    pub(crate) fn file(what: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Self::File(format!(
            "cannot {what} {}: {error}; check `acme.state` and who may write there",
            path.display()
        ))
    }

    /// Whether the authority counts it.
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
            Error::Timeout(_) => Self::Unreachable("no answer in time".to_owned()),
            Error::Json(_) => {
                Self::Garbage("no JSON of RFC 8555; does `acme.directory` name a directory?".to_owned())
            }
            other => Self::Garbage(other.to_string()),
        }
    }
}

/// What BoringSSL refuses is never what a user wrote: that has been checked.
impl From<boring::error::ErrorStack> for AcmeError {
    fn from(error: boring::error::ErrorStack) -> Self {
        Self::Garbage(format!("BoringSSL: {error}"))
    }
}
