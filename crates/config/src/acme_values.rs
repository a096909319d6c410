//! Single values of ACME settings: names, directories, mail addresses.

use crate::{model::Problem, suggest::quote, values::route_host};
use std::net::IpAddr;

/// Parses a name in an ordered certificate: `example.com`, `*.example.com` or an IP address.
pub fn certificate_name(text: &str) -> Result<String, Problem> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let shown = quote(text);
    let name =
        route_host(text)?.ok_or_else(|| Problem::new(format!("{shown} is not a name"), "name each host"))?;
    if !name.contains('.') || name.contains('_') {
        return Err(Problem::new(
            format!("{shown} is not a public name"),
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
