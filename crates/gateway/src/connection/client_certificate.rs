//! Client certificates and their names.

use boring::{
    hash::MessageDigest,
    ssl::SslRef,
    x509::{X509, X509Ref},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use http::HeaderValue;
use quadrille_config::model::CertificateDetails;
use std::{ffi::c_ulong, ptr, slice, sync::OnceLock};

/// A client's certificate. Its names are parsed when a rule first requires them, which most connections never do.
pub(crate) struct ClientCertificate {
    pub(crate) certificate: X509,
    /// Further certificates that the client has sent.
    pub(crate) links: Vec<X509>,
    /// The server certificate of the connection.
    own: Option<X509>,
    names: OnceLock<CertificateNames>,
    sha256: OnceLock<Option<String>>,
    /// Details for upstreams, computed on first use.
    pub(crate) told: OnceLock<(CertificateDetails, Option<HeaderValue>)>,
}

/// Names in a certificate.
#[derive(Debug, Default)]
pub(crate) struct CertificateNames {
    /// URIs of the subjectAltName extension (RFC 5280 section 4.2.1.6).
    pub(crate) uris: Vec<String>,
    pub(crate) dns: Vec<String>,
    /// Subject in RFC 2253 notation.
    pub(crate) subject: String,
}

impl ClientCertificate {
    /// Returns the certificate that a client has presented in the handshake, if any.
    pub(crate) fn of(ssl: &SslRef) -> Option<Self> {
        Some(Self {
            certificate: ssl.peer_certificate()?,
            links: ssl.peer_cert_chain().into_iter().flatten().map(ToOwned::to_owned).collect(),
            // The connection's own certificate is freed after the handshake; the context's remains.
            own: ssl.ssl_context().certificate().map(ToOwned::to_owned),
            names: OnceLock::new(),
            sha256: OnceLock::new(),
            told: OnceLock::new(),
        })
    }

    /// Returns the URIs in the server certificate of the connection.
    pub(crate) fn own_uris(&self) -> Vec<String> {
        self.own.as_ref().map(|own| CertificateNames::of(own).uris).unwrap_or_default()
    }

    /// Returns the SHA-256 hash of its DER encoding in hexadecimal; `None` if memory is exhausted.
    pub(crate) fn sha256(&self) -> Option<&str> {
        let hash = self.sha256.get_or_init(|| {
            let digest = self.certificate.digest(MessageDigest::sha256()).ok()?;
            Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
        });
        hash.as_deref()
    }

    /// Returns the names for access rules.
    pub(crate) fn names(&self) -> &CertificateNames {
        self.names.get_or_init(|| CertificateNames::of(&self.certificate))
    }
}

impl CertificateNames {
    fn of(certificate: &X509Ref) -> Self {
        let mut names = Self { subject: subject(certificate), ..Self::default() };
        for name in certificate.subject_alt_names().iter().flatten() {
            names.uris.extend(name.uri().map(str::to_owned));
            names.dns.extend(name.dnsname().map(str::to_owned));
        }
        names
    }
}

/// Returns the subject in RFC 2253 notation; empty if it cannot be converted.
fn subject(certificate: &X509Ref) -> String {
    const RFC_2253: c_ulong = ffi::XN_FLAG_RFC2253 as c_ulong;
    // SAFETY: the certificate is live, and so is the BIO, which is freed once; BIO_mem_contents returns memory that
    // is part of it.
    unsafe {
        let written = ffi::BIO_new(ffi::BIO_s_mem());
        if written.is_null() {
            return String::new();
        }
        let (mut bytes, mut len) = (ptr::null(), 0);
        let name = ffi::X509_get_subject_name(certificate.as_ptr());
        let is_written = ffi::X509_NAME_print_ex(written, name, 0, RFC_2253) >= 0
            && ffi::BIO_mem_contents(written, &raw mut bytes, &raw mut len) == 1;
        let text = if is_written && !bytes.is_null() {
            String::from_utf8_lossy(slice::from_raw_parts(bytes, len)).into_owned()
        } else {
            String::new()
        };
        ffi::BIO_free(written);
        text
    }
}
