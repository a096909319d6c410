//! TLS to servers: the `proxy-ssl` family.

use super::Annotations;
use crate::tls::{Pem, certificate_of};
use quadrille_draft::{
    tls_lists::{self, Added},
    yaml::{Map, Value},
};

/// Sets TLS of an upstream whose `backend-protocol` is HTTPS or GRPCS.
///
/// # Errors
/// If servers must be verified, or the gateway's certificate be presented, and that cannot be done.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, upstream: &mut Map) -> Result<(), String> {
    let Some(Value::Map(tls)) = upstream.get("tls") else {
        if annotations.value("proxy-ssl-secret").is_some() {
            annotations.differ("proxy-ssl-secret", "no effect: `backend-protocol` is not HTTPS or GRPCS");
        }
        return Ok(());
    };
    let mut tls = tls.clone();
    let verifies = annotations.value("proxy-ssl-verify").is_some_and(|word| word.eq_ignore_ascii_case("on"));
    if verifies {
        tls.remove("verify");
    }
    if let Some(name) = annotations.value("proxy-ssl-secret") {
        secret(annotations, name, verifies, &mut tls).map_err(|problem| {
            annotations
                .refuse("proxy-ssl-secret", format!("{problem}; its paths respond with 503 meanwhile"));
            format!("{}: {problem}", annotations.shown("proxy-ssl-secret"))
        })?;
    } else if verifies {
        annotations.differ(
            "proxy-ssl-verify",
            "certificates are verified against the CAs of the system, since `proxy-ssl-secret` is missing",
        );
    }
    if let Some(name) = annotations.value("proxy-ssl-name") {
        match quadrille_config::values::host(name) {
            Ok(_) => tls.set("server_name", name),
            Err(problem) => {
                annotations
                    .refuse("proxy-ssl-name", format!("{problem}; its paths respond with 503 meanwhile"));
                return Err(format!("{}: {problem}", annotations.shown("proxy-ssl-name")));
            }
        }
    }
    if let Some(list) = annotations.value("proxy-ssl-ciphers") {
        let suites = list.split(':').filter(|word| !word.starts_with(['!', '+', '-']));
        let mut probe = Map::new();
        match tls_lists::add_all(suites, "cipher_suites", &mut probe) {
            Added::Nothing => annotations.differ(
                "proxy-ssl-ciphers",
                "classes of suites are not known: the default suites are offered",
            ),
            Added::All | Added::Without(0) => tls.extend(probe),
            Added::Without(count) => {
                tls.extend(probe);
                annotations.differ("proxy-ssl-ciphers", format!("{count} of its suites do not exist here"));
            }
        }
    }
    if let Some(versions) = annotations.value("proxy-ssl-protocols") {
        match crate::tls::versions(versions) {
            Some(range) => tls.extend(range),
            None => {
                annotations
                    .refuse("proxy-ssl-protocols", "write some of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3");
            }
        }
    }
    if let Some(word) = annotations.value("proxy-ssl-server-name") {
        match word.eq_ignore_ascii_case("on") {
            true => annotations.works("proxy-ssl-server-name"),
            false => annotations.differ("proxy-ssl-server-name", "the name is always sent"),
        }
    }
    upstream.set("tls", if tls.is_empty() { Value::from("on") } else { Value::Map(tls) });
    Ok(())
}

fn secret(
    annotations: &Annotations<'_, '_>,
    name: &str,
    verifies: bool,
    tls: &mut Map,
) -> Result<(), String> {
    let (secret, name) = annotations.secret(name)?;
    let named = |problem: String| format!("Secret {name}: {problem}");
    match secret.text("ca.crt") {
        Ok(ca) => tls.set("ca", Pem::Certificates.checked(ca).map_err(named)?),
        Err(problem) if verifies => return Err(named(problem)),
        Err(_) => {}
    }
    if secret.text("tls.crt").is_ok() {
        tls.set("certificate", certificate_of(secret, annotations.world.options).map_err(named)?);
    }
    Ok(())
}
