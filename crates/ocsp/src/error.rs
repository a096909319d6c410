//! Reasons for a missing OCSP response.

/// Reason for which a certificate's status cannot be requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// The certificate names no responder.
    #[error("it names no OCSP responder")]
    NoResponder,
    /// Requests over TLS would require an OCSP response themselves, and other schemes are not in use.
    #[error("its OCSP responder `{0}` does not use http://")]
    Scheme(String),
    /// The response could not be verified.
    #[error("its chain does not contain the issuer's certificate; append it to the chain")]
    NoIssuer,
    /// The certificate is not encoded according to RFC 5280.
    #[error("it cannot be parsed: {0}")]
    Unreadable(String),
}

/// Reason for which a response is not stapled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No response was received.
    #[error("{0}")]
    Unreachable(String),
    /// An unusable response was received.
    #[error("the response is unusable: {0}")]
    Unusable(String),
    /// The certificate authority has revoked the certificate.
    #[error("the authority has revoked it")]
    Revoked,
}

impl Failure {
    /// Returns the value of the metric's label.
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
        Self::Unusable(format!("it is not an OCSP response in DER: {error}"))
    }
}
