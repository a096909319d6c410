//! Whom a client's certificate names.

use crate::connection::CertificateNames;
use boring::x509::X509Ref;
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use std::{ffi::c_ulong, ptr, slice};

/// The names of a certificate that rules may ask for.
pub(crate) fn certificate_names(certificate: &X509Ref) -> CertificateNames {
    let mut names = CertificateNames { subject: subject(certificate), ..CertificateNames::default() };
    for name in certificate.subject_alt_names().iter().flatten() {
        names.uris.extend(name.uri().map(str::to_owned));
        names.dns.extend(name.dnsname().map(str::to_owned));
    }
    names
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
