//! `X-Forwarded-Client-Cert`: details of the client certificate for upstreams, in Envoy's format.

use crate::connection::{ClientCertificate, Connection};
use boring::x509::X509Ref;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode, utf8_percent_encode};
use quadrille_config::model::{CertificateDetails, ForwardedCertificate};

pub(crate) const FORWARDED_CERTIFICATE: HeaderName = HeaderName::from_static("x-forwarded-client-cert");

/// Sets the header according to the configuration. A certificate that cannot be encoded is omitted.
pub(crate) fn apply(policy: ForwardedCertificate, connection: &Connection, headers: &mut HeaderMap) {
    let own = match (policy, &connection.certificate) {
        (ForwardedCertificate::KeepAlways, _) | (ForwardedCertificate::Keep, Some(_)) => None,
        (ForwardedCertificate::Append(details), Some(certificate)) => element(certificate, details),
        (ForwardedCertificate::Set(details), Some(certificate)) => {
            headers.remove(FORWARDED_CERTIFICATE);
            element(certificate, details)
        }
        (ForwardedCertificate::Remove, _) | (_, None) => {
            headers.remove(FORWARDED_CERTIFICATE);
            return;
        }
    };
    let said = headers.get_all(FORWARDED_CERTIFICATE).iter();
    let all: Vec<_> = said.chain(&own).map(HeaderValue::as_bytes).collect();
    if let Ok(all) = HeaderValue::from_bytes(&all.join(&b","[..]))
        && !all.is_empty()
    {
        headers.insert(FORWARDED_CERTIFICATE, all);
    }
}

/// Returns the header element of a certificate, cached for all requests of its connection.
fn element(certificate: &ClientCertificate, details: CertificateDetails) -> Option<HeaderValue> {
    let written = || HeaderValue::try_from(written(certificate, details)?).ok();
    let (of, told) = certificate.told.get_or_init(|| (details, written()));
    if *of == details { told.clone() } else { written() }
}

fn written(certificate: &ClientCertificate, details: CertificateDetails) -> Option<String> {
    let mut parts: Vec<String> =
        certificate.own_uris().iter().map(|uri| format!("By={}", name(uri))).collect();
    parts.push(format!("Hash={}", certificate.sha256()?));
    let leaf = encoded(&certificate.certificate)?;
    if details.certificate {
        parts.push(format!("Cert=\"{leaf}\""));
    }
    if details.chain {
        let links = certificate.links.iter().map(|link| encoded(link)).collect::<Option<String>>()?;
        parts.push(format!("Chain=\"{leaf}{links}\""));
    }
    let names = certificate.names();
    if details.subject {
        parts.push(format!("Subject=\"{}\"", names.subject));
    }
    if details.uris {
        let none = [String::new()];
        let uris = if names.uris.is_empty() { &none[..] } else { &names.uris };
        parts.extend(uris.iter().map(|uri| format!("URI={}", name(uri))));
    }
    if details.dns {
        parts.extend(names.dns.iter().map(|dns| format!("DNS={}", name(dns))));
    }
    Some(parts.join(";"))
}

/// Encodes a certificate as URL-encoded PEM. Returns `None` if memory is exhausted.
fn encoded(certificate: &X509Ref) -> Option<String> {
    const IN_PEM: &AsciiSet = &AsciiSet::EMPTY.add(b'\n').add(b' ').add(b'+').add(b'/').add(b'=');
    Some(percent_encode(&certificate.to_pem().ok()?, IN_PEM).to_string())
}

/// Escapes a name so that it cannot be read as several elements: a certificate may contain any name.
fn name(text: &str) -> String {
    const IN_NAMES: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b';').add(b'"');
    utf8_percent_encode(text, IN_NAMES).to_string()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_name_is_one_name() {
        assert_eq!(name("spiffe://a/ns/b/sa/c"), "spiffe://a/ns/b/sa/c");
        assert_eq!(name("spiffe://a;By=b,URI=\"\r\n\u{e4}"), "spiffe://a%3BBy=b%2CURI=%22%0D%0A%C3%A4");
    }
}
