//! Validation of peer certificates.

use crate::{
    common::{base64, data_source, string_matcher},
    reader::{Field, ReadMessage},
    schema,
    values::enumeration,
};
use quadrille_config::{
    Problem,
    model::{AltName, AltNameKind, ClientCheck, Place, Source},
};

/// `envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext`, for clients or upstreams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    pub(crate) ca: Option<(Source, Place)>,
    pub(crate) revoked: Option<(Source, Place)>,
    pub(crate) certificates: Vec<[u8; 32]>,
    pub(crate) public_keys: Vec<[u8; 32]>,
    pub(crate) names: Vec<AltName>,
    /// Whether the system's CAs are trusted.
    pub(crate) system: bool,
}

impl Validation {
    /// Merges another context into this one, like messages: single values replace, lists are appended.
    pub(crate) fn merged(mut self, over: Self) -> Self {
        self.ca = over.ca.or(self.ca);
        self.revoked = over.revoked.or(self.revoked);
        self.certificates.extend(over.certificates);
        self.public_keys.extend(over.public_keys);
        self.names.extend(over.names);
        self.system |= over.system;
        self
    }

    /// Returns the validation of clients; `None` if not configured.
    ///
    /// # Errors
    /// If the validation would not authenticate clients.
    pub(crate) fn client_check(&self) -> Result<Option<ClientCheck>, Problem> {
        let pinned = !self.certificates.is_empty() || !self.public_keys.is_empty();
        match (self.ca.is_some(), pinned, self.names.is_empty()) {
            _ if self.system => {
                Err(Problem::new("the system's CAs are not supported for clients", "set a `trusted_ca`"))
            }
            (false, false, true) => Ok(None),
            (false, false, false) => {
                Err("subjectAltNames prove nothing without a `trusted_ca` that vouches for them".into())
            }
            _ => Ok(Some(ClientCheck {
                ca: self.ca.clone(),
                revoked: self.revoked.clone(),
                certificates: self.certificates.clone(),
                public_keys: self.public_keys.clone(),
                names: self.names.clone(),
            })),
        }
    }
}

/// Reads `envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext`.
pub(crate) fn validation(field: &Field<'_>) -> Option<Validation> {
    const TRUST: &[(&str, u32, ())] = &[("VERIFY_TRUST_CHAIN", 0, ())];
    let message = field.message(&schema::VALIDATION)?;
    if let Some(trust) = message.get("trust_chain_verification") {
        trust.parse(enumeration(TRUST))?;
    }
    let source = |name| match message.get(name) {
        Some(field) => data_source(&field).map(|source| Some((source, field.place()))),
        None => Some(None),
    };
    let ca = source("trusted_ca")?;
    let revoked = source("crl")?;
    let hashes = |name, parse: fn(&str) -> Result<[u8; 32], Problem>| {
        let items = message.list(name);
        items.iter().map(|item| item.parse(parse)).collect::<Option<Vec<_>>>()
    };
    let certificates = hashes("verify_certificate_hash", hexadecimal)?;
    let public_keys = hashes("verify_certificate_spki", pin)?;
    let typed = message.list("match_typed_subject_alt_names");
    let mut names: Vec<AltName> = typed.iter().map(alt_name).collect::<Option<_>>()?;
    for matcher in message.list("match_subject_alt_names") {
        let text = string_matcher(&matcher)?;
        let kinds = [AltNameKind::Dns, AltNameKind::Uri, AltNameKind::Email, AltNameKind::Ip];
        names.extend(kinds.map(|kind| AltName { kind, text: text.clone() }));
    }
    let system = message.get("system_root_certs").is_some();
    Some(Validation { ca, revoked, certificates, public_keys, names, system })
}

fn alt_name(field: &Field<'_>) -> Option<AltName> {
    const KINDS: &[(&str, u32, AltNameKind)] = &[
        ("EMAIL", 1, AltNameKind::Email),
        ("DNS", 2, AltNameKind::Dns),
        ("URI", 3, AltNameKind::Uri),
        ("IP_ADDRESS", 4, AltNameKind::Ip),
    ];
    let message = field.message(&schema::SAN_MATCHER)?;
    let kind = message.require("san_type")?.parse(enumeration(KINDS))?;
    let text = string_matcher(&message.require("matcher")?)?;
    Some(AltName { kind, text })
}

/// Parses a hexadecimal SHA-256, with or without colons between the bytes.
fn hexadecimal(text: &str) -> Result<[u8; 32], Problem> {
    let digits: String = text.chars().filter(|letter| *letter != ':').collect();
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes = (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        Problem::new(
            "not a SHA-256 in hexadecimal",
            "create one with: openssl x509 -in cert.pem -outform DER | sha256sum",
        )
    })
}

/// Parses the SHA-256 of a public key, in base64 (RFC 7469 section 2.4).
fn pin(text: &str) -> Result<[u8; 32], Problem> {
    let bytes = base64(text).ok().and_then(|bytes| bytes.as_slice().try_into().ok());
    bytes.ok_or_else(|| "not a SHA-256 in base64".into())
}
