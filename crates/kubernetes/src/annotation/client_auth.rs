//! Client certificates: the `auth-tls` family, which applies to whole hosts.

use super::Annotations;
use crate::tls::Pem;
use quadrille_draft::{draft::Route, yaml::Map};

/// Client certificates of a host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientAuth {
    /// The value of `tls.client_auth`.
    pub(crate) tls: Map,
    /// Names of certificates that routes require; empty for all.
    pub(crate) names: Vec<String>,
    pub(crate) is_required: bool,
    /// Reason to close the host.
    pub(crate) closed: Option<String>,
}

/// Reads the settings of an Ingress; `None` if it does not request certificates.
pub(crate) fn read(annotations: &Annotations<'_, '_>) -> Option<ClientAuth> {
    let name = annotations.value("auth-tls-secret")?;
    let mode = annotations.value("auth-tls-verify-client").unwrap_or("on");
    if mode == "off" {
        annotations.works("auth-tls-secret");
        return None;
    }
    let mut auth = ClientAuth { tls: Map::new(), names: Vec::new(), is_required: true, closed: None };
    match mode {
        "on" => auth.tls.set("mode", "required"),
        "optional" => {
            auth.tls.set("mode", "optional");
            auth.is_required = false;
        }
        "optional_no_ca" => {
            auth.tls.set("mode", "optional");
            auth.is_required = false;
            annotations.differ(
                "auth-tls-verify-client",
                "a certificate that the CA has not signed ends the handshake",
            );
        }
        _ => {
            auth.tls.set("mode", "required");
            annotations.refuse(
                "auth-tls-verify-client",
                "write \"on\", \"off\", \"optional\" or \"optional_no_ca\"; \"on\" applies",
            );
        }
    }
    match ca(annotations, name) {
        Ok(ca) => auth.tls.set("ca", ca),
        Err(problem) => {
            annotations.refuse("auth-tls-secret", format!("{problem}; its hosts respond with 503 meanwhile"));
            auth.closed = Some(format!("{}: {problem}", annotations.shown("auth-tls-secret")));
        }
    }
    if let Some(text) = annotations.value("auth-tls-match-cn") {
        match names(text) {
            Some(names) => {
                auth.names = names;
                auth.is_required = true;
            }
            None => {
                annotations.refuse(
                    "auth-tls-match-cn",
                    "write \"CN=name\" or \"CN=(one|another)\"; its hosts respond with 503 meanwhile",
                );
                auth.closed =
                    Some(format!("{}: not a list of names", annotations.shown("auth-tls-match-cn")));
            }
        }
    }
    Some(auth)
}

impl ClientAuth {
    /// Requires the certificate on a route of the host, and describes it to servers.
    pub(crate) fn apply(&self, route: &mut Route) {
        if let Some(reason) = &self.closed {
            route.close(503, reason);
            return;
        }
        if self.is_required {
            match self.names.is_empty() {
                true => route.keys.set("client_auth", "required"),
                false => route.keys.set("client_auth", Map::of("names", self.names.clone())),
            }
        }
        let mut changes = vec![
            Map::of("set", "ssl-client-subject-dn").with("value", "{client_certificate_subject}"),
            Map::of("remove", "ssl-client-issuer-dn"),
            Map::of("remove", "ssl-client-cert"),
        ];
        changes.push(match self.is_required {
            true => Map::of("set", "ssl-client-verify").with("value", "SUCCESS"),
            false => Map::of("remove", "ssl-client-verify"),
        });
        changes.into_iter().for_each(|change| route.keys.push("request_headers", change));
    }
}

fn ca(annotations: &Annotations<'_, '_>, name: &str) -> Result<String, String> {
    let (secret, name) = annotations.secret(name)?;
    let ca = secret.text("ca.crt").and_then(|ca| Pem::Certificates.checked(ca));
    ca.map_err(|problem| format!("Secret {name}: {problem}"))
}

/// Returns the names that a subject (RFC 2253) with one of the listed common names matches.
fn names(text: &str) -> Option<Vec<String>> {
    let name = text.trim_start_matches('^').trim_end_matches('$').strip_prefix("CN=")?;
    let inside = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')).unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _.-@".contains(c);
    let mut names = Vec::new();
    for one in inside.split('|') {
        if one.is_empty() || !one.chars().all(is_plain) {
            return None;
        }
        names.extend([format!("CN={one}"), format!("CN={one},*"), format!("*,CN={one}")]);
    }
    Some(names)
}
