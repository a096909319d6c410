//! Why there is nothing to staple.

/// Why nobody can be asked about a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// It has no responder.
    #[error("it names no OCSP responder")]
    NoResponder,
    /// Asking over TLS would need an answer of its own, and no other scheme is in use.
    #[error("its OCSP responder `{0}` is not reached by http://")]
    Scheme(String),
    /// The answer could not be checked.
    #[error("its chain lacks the certificate of its issuer; append it to the chain")]
    NoIssuer,
    /// It is not what RFC 5280 says.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// Why an answer is not stapled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There was no answer.
    #[error("{0}")]
    Unreachable(String),
    /// There was one, of no use.
    #[error("the responder's answer is of no use: {0}")]
    Unusable(String),
    /// The authority has revoked the certificate.
    #[error("the authority has revoked it")]
    Revoked,
}

impl Failure {
    /// As metrics call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Unusable(_) => "unusable",
            Self::Revoked => "revoked",
        }
    }

    pub(crate) fn unusable(problem: impl Into<String>) -> Self {
        Self::Unusable(problem.into())
    }
}

impl From<der::Error> for Failure {
    fn from(error: der::Error) -> Self {
        Self::Unusable(format!("it is no OCSP response in DER: {error}"))
    }
}
