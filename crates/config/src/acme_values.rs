//! Single values of ACME settings: names, directories, mail addresses.

use crate::{model::Problem, suggest::quote, values::route_host};
use std::net::IpAddr;

/// Domains of public authorities with ACME. They issue for public names only (CA/Browser Forum, Baseline Requirements,
/// section 7.1.4.2).
const PUBLIC_AUTHORITIES: &[&str] = &[
    "actalis.com",
    "amazontrust.com",
    "buypass.com",
    "certum.pl",
    "digicert.com",
    "entrust.net",
    "globalsign.com",
    "harica.gr",
    "identrust.com",
    "letsencrypt.org",
    "pki.goog",
    "sectigo.com",
    "ssl.com",
    "swisssign.com",
    "zerossl.com",
];

/// Checks that the authority of a directory may issue for a name: for `localhost` and other names of one label, private
/// authorities only.
///
/// # Errors
/// If it is a public authority, and the name is not public.
pub fn refuse_private_name(name: &str, directory: &str) -> Result<(), Problem> {
    let is_private = !name.contains('.') && name.parse::<IpAddr>().is_err();
    let uri = directory.parse::<http::Uri>().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default().to_ascii_lowercase();
    let is_of = |domain: &&&str| {
        host.strip_suffix(**domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match PUBLIC_AUTHORITIES.iter().find(is_of) {
        Some(authority) if is_private => Err(Problem::new(
            format!("{} is not a public name, and {authority} issues for public names only", quote(name)),
            "write the whole name, such as `www.example.com`, or the directory of a private authority",
        )),
        _ => Ok(()),
    }
}

/// Parses a name in an ordered certificate: `example.com`, `*.example.com`, a name of one label or an IP address.
pub fn certificate_name(text: &str) -> Result<String, Problem> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let shown = quote(text);
    let name =
        route_host(text)?.ok_or_else(|| Problem::new(format!("{shown} is not a name"), "name each host"))?;
    if name.contains('_') || name.starts_with('-') {
        return Err(Problem::new(
            format!("{shown} is not a name for a certificate"),
            "write the whole name, such as `www.example.com`",
        ));
    }
    Ok(name)
}

/// Parses the URL of an ACME directory.
pub fn directory_url(text: &str) -> Result<String, Problem> {
    let host = text.strip_prefix("https://").map(|rest| rest.split('/').next().unwrap_or_default());
    let good =
        text.parse::<http::Uri>().is_ok() && host.is_some_and(|host| !host.is_empty() && !host.contains('@'));
    match good {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("{} is not the URL of a directory", quote(text)),
            "write the whole URL, such as `https://acme-v02.api.letsencrypt.org/directory`",
        )),
    }
}

/// Parses the URL of the service that decides whether a name may be ordered.
pub fn ask_url(text: &str) -> Result<String, Problem> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let good = text.parse::<http::Uri>().is_ok()
        && !text.contains('#')
        && host.is_some_and(|host| !host.is_empty() && !host.contains('@'));
    match good {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("{} is not an http:// or https:// URL", quote(text)),
            "write the whole URL, such as `http://127.0.0.1:8080/may-be-ordered`",
        )),
    }
}

/// Parses a mail address.
pub fn email(text: &str) -> Result<String, Problem> {
    let (user, host) = text.split_once('@').unwrap_or_default();
    let good = !user.is_empty()
        && host.contains('.')
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    match good {
        true => Ok(text.to_owned()),
        false => {
            Err(Problem::new(format!("{} is not a mail address", quote(text)), "write `name@example.com`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_authorities_issue_for_names_of_one_label() {
        for (name, directory, good) in [
            ("localhost", "https://acme-v02.api.letsencrypt.org/directory", false),
            ("localhost", "https://ACME.ZeroSSL.com/v2/DV90", false),
            ("printer", "https://dv.acme-v02.api.pki.goog/directory", false),
            ("printer", "https://api.buypass.com/acme/directory", false),
            ("printer", "https://acme.ssl.com/sslcom-dv-rsa", false),
            ("www.example.com", "https://acme-v02.api.letsencrypt.org/directory", true),
            ("2001:db8::1", "https://acme-v02.api.letsencrypt.org/directory", true),
            ("localhost", "https://ca.internal:9000/acme/acme/directory", true),
            ("localhost", "https://notletsencrypt.org/directory", true),
            ("localhost", "https://127.0.0.1:14000/dir", true),
        ] {
            assert_eq!(refuse_private_name(name, directory).is_ok(), good, "{name} {directory}");
        }
    }

    #[test]
    fn names_in_certificates() {
        for good in
            ["localhost", "printer", "a.example", "*.a.example", "*.local", "192.0.2.1", "2001:db8::1"]
        {
            assert_eq!(certificate_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "*", "a_b.example", "a..example", "-", "https://a.example"] {
            assert!(certificate_name(bad).is_err(), "{bad}");
        }
    }
}
