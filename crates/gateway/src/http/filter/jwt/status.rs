//! Problems with tokens, in the texts of Envoy's JWT library, which clients rely on.

/// Reason why the tokens of a request are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Missing,
    NotYetValid,
    Expired,
    BadFormat,
    HeaderBadBase64,
    HeaderBadJson,
    HeaderBadAlg,
    HeaderBadKid,
    AlgNotImplemented,
    PayloadBadBase64,
    PayloadBadJson,
    IssNotString,
    SubNotString,
    IatNotInteger,
    IatOutOfRange,
    NbfNotInteger,
    NbfOutOfRange,
    ExpNotInteger,
    ExpOutOfRange,
    JtiNotString,
    AudNotString,
    SignatureBadBase64,
    UnknownIssuer,
    AudienceNotAllowed,
    NoKeyMatches,
    NoValidKey,
    VerificationFails,
    MultipleTokens,
    FetchFailed,
}

impl Problem {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Missing => "Jwt is missing",
            Self::NotYetValid => "Jwt not yet valid",
            Self::Expired => "Jwt is expired",
            Self::BadFormat => {
                "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections"
            }
            Self::HeaderBadBase64 => "Jwt header is an invalid Base64url encoded",
            Self::HeaderBadJson => "Jwt header is an invalid JSON",
            Self::HeaderBadAlg => "Jwt header [alg] field is required and must be a string",
            Self::HeaderBadKid => "Jwt header [kid] field is not a string",
            Self::AlgNotImplemented => "Jwt header [alg] is not supported",
            Self::PayloadBadBase64 => "Jwt payload is an invalid Base64url encoded",
            Self::PayloadBadJson => "Jwt payload is an invalid JSON",
            Self::IssNotString => "Jwt payload [iss] field is not a string",
            Self::SubNotString => "Jwt payload [sub] field is not a string",
            Self::IatNotInteger => "Jwt payload [iat] field is not an integer",
            Self::IatOutOfRange => "Jwt payload [iat] field is not a positive 64 bit integer",
            Self::NbfNotInteger => "Jwt payload [nbf] field is not an integer",
            Self::NbfOutOfRange => "Jwt payload [nbf] field is not a positive 64 bit integer",
            Self::ExpNotInteger => "Jwt payload [exp] field is not an integer",
            Self::ExpOutOfRange => "Jwt payload [exp] field is not a positive 64 bit integer",
            Self::JtiNotString => "Jwt payload [jti] field is not a string",
            Self::AudNotString => "Jwt payload [aud] field is not a string or string list",
            Self::SignatureBadBase64 => "Jwt signature is an invalid Base64url encoded",
            Self::UnknownIssuer => "Jwt issuer is not configured",
            Self::AudienceNotAllowed => "Audiences in Jwt are not allowed",
            Self::NoKeyMatches => "Jwks doesn't have key to match kid or alg from Jwt",
            Self::NoValidKey => "Jwks doesn't have any valid public key",
            Self::VerificationFails => "Jwt verification fails",
            Self::MultipleTokens => "Found multiple Jwt tokens",
            Self::FetchFailed => "Jwks remote fetch is failed",
        }
    }
}
