//! The certificate that a client has shown, and whom it names.

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

/// A client's certificate. Its names are read when a rule asks for them first, which most never do.
pub(crate) struct ClientCertificate {
    pub(crate) certificate: X509,
    /// What the client has sent behind it.
    pub(crate) links: Vec<X509>,
    /// The certificate that it was shown.
    own: Option<X509>,
    names: OnceLock<CertificateNames>,
    sha256: OnceLock<Option<String>>,
    /// What servers are told of it, if they are told this.
    pub(crate) told: OnceLock<(CertificateDetails, Option<HeaderValue>)>,
}

/// Whom a certificate names.
#[derive(Debug, Default)]
pub(crate) struct CertificateNames {
    /// Of the subject's alternative names (RFC 5280 section 4.2.1.6).
    pub(crate) uris: Vec<String>,
    pub(crate) dns: Vec<String>,
    /// As RFC 2253 writes it.
    pub(crate) subject: String,
}

impl ClientCertificate {
    /// The one that a client has shown in a handshake, if it has shown any.
    pub(crate) fn of(ssl: &SslRef) -> Option<Self> {
        Some(Self {
            certificate: ssl.peer_certificate()?,
            links: ssl.peer_cert_chain().into_iter().flatten().map(ToOwned::to_owned).collect(),
            // What a connection keeps of its own certificate is gone once the handshake is done.
            own: ssl.ssl_context().certificate().map(ToOwned::to_owned),
            names: OnceLock::new(),
            sha256: OnceLock::new(),
            told: OnceLock::new(),
        })
    }

    /// The URIs in the certificate that the client was shown.
    pub(crate) fn own_uris(&self) -> Vec<String> {
        self.own.as_ref().map(|own| CertificateNames::of(own).uris).unwrap_or_default()
    }

    /// SHA-256 of its DER form, in hexadecimal; `None` if memory is short.
    pub(crate) fn sha256(&self) -> Option<&str> {
        let hash = self.sha256.get_or_init(|| {
            let digest = self.certificate.digest(MessageDigest::sha256()).ok()?;
            Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
        });
        hash.as_deref()
    }

    /// The names that rules may ask for.
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

/// As RFC 2253 writes it; empty if it cannot be written.
fn subject(certificate: &X509Ref) -> String {
    const RFC_2253: c_ulong = ffi::XN_FLAG_RFC2253 as c_ulong;
    // SAFETY: the certificate is live, and so is what is written to, which is freed once; BIO_mem_contents names
    // memory that is part of it.
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
