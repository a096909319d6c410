//! Expiry of certificate revocation lists and CA certificates, which verify peers, and of OCSP responses from files.

use quadrille_config::model::Source;
use std::fmt;

/// A list, a CA certificate or an OCSP response in use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expiry {
    pub(crate) kind: ExpiryKind,
    /// The file.
    pub(crate) source: String,
    /// Common name of the list's issuer, or of the CA; names of the response's certificate.
    pub(crate) name: String,
    /// Expiry time, in Unix time.
    pub(crate) not_after: i64,
}

impl Expiry {
    /// Returns those of one source, by name and expiry time.
    pub(crate) fn all(
        kind: ExpiryKind,
        source: &Source,
        found: impl IntoIterator<Item = (String, i64)>,
    ) -> impl Iterator<Item = Self> {
        let source = source.to_string();
        let of = move |(name, not_after)| Self { kind, source: source.clone(), name, not_after };
        found.into_iter().map(of)
    }
}

/// The kind of an [`Expiry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ExpiryKind {
    RevocationList,
    Ca,
    OcspResponse,
}

/// Writes the message for the log after the expiry.
impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, source, name, .. } = self;
        let name = name.escape_debug();
        match kind {
            ExpiryKind::RevocationList => write!(
                f,
                "the certificate revocation list of `{name}` in {source} has expired; certificates of this CA are \
                 rejected until the list is replaced"
            ),
            ExpiryKind::Ca => write!(
                f,
                "the CA certificate `{name}` in {source} has expired; certificates that it issued are rejected until it \
                 is replaced"
            ),
            ExpiryKind::OcspResponse => write!(
                f,
                "the OCSP response for `{name}` in {source} has expired; clients that require one reject the certificate \
                 until it is replaced"
            ),
        }
    }
}
