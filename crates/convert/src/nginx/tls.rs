//! TLS settings, of listeners and of connections to servers.

use super::{scope::Scope, statement::Statement, world::World};
use crate::yaml::Map;
use crate::{
    tls_lists::{self, Added},
    values,
};

/// TLS settings of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServerTls {
    /// Items of `certificates`.
    pub(super) certificates: Vec<Map>,
    /// The value of `tls`.
    pub(super) settings: Map,
    /// Reason to close the server: client certificates that cannot be verified.
    pub(super) closed: Option<String>,
}

/// Converts the TLS settings of a server.
pub(super) fn of_server(scope: &Scope<'_>, world: &World<'_>) -> ServerTls {
    let mut tls = ServerTls { certificates: certificates(scope, world), ..ServerTls::default() };
    versions(scope.one("ssl_protocols"), world, &mut tls.settings);
    lists(scope, world, &mut tls.settings);
    if let Some(one) = scope.one("ssl_stapling") {
        tls.settings.set("ocsp_stapling", if one.is_on() { "on" } else { "off" });
        world.ledger.converted(one.id);
    }
    client_certificates(scope, world, &mut tls);
    tls
}

fn certificates(scope: &Scope<'_>, world: &World<'_>) -> Vec<Map> {
    let keys = scope.all("ssl_certificate_key");
    let mut certificates = Vec::new();
    for (index, chain) in scope.all("ssl_certificate").into_iter().enumerate() {
        let Some(key) = keys.get(index) else {
            world.ledger.refused(chain.id, "add the key: `certificates: [{ chain: ..., key: ... }]`");
            continue;
        };
        let unusable =
            |path: &str| path.contains('$') || path.starts_with("data:") || path.starts_with("engine:");
        if unusable(chain.arg(0)) || unusable(key.arg(0)) {
            for one in [chain, *key] {
                world.ledger.refused(one.id, "write the paths of certificate and key in files");
            }
            continue;
        }
        let mut certificate = Map::of("chain", world.file(chain.arg(0))).with("key", world.file(key.arg(0)));
        if let Some(staple) = scope.one("ssl_stapling_file") {
            certificate.set("ocsp", world.file(staple.arg(0)));
            world.ledger.converted(staple.id);
        }
        world.ledger.converted(chain.id);
        world.ledger.converted(key.id);
        certificates.push(certificate);
    }
    certificates
}

/// Sets the lowest and the highest version.
fn versions(protocols: Option<&Statement>, world: &World<'_>, settings: &mut Map) {
    let Some(one) = protocols else { return };
    let known = [("TLSv1", "1.0"), ("TLSv1.1", "1.1"), ("TLSv1.2", "1.2"), ("TLSv1.3", "1.3")];
    let listed: Vec<_> =
        known.iter().filter(|(name, _)| one.has(name)).map(|(_, version)| *version).collect();
    let (Some(min), Some(max)) = (listed.first(), listed.last()) else {
        return world.ledger.refused(one.id, "TLS 1.0 to 1.3 exist: `tls: { min: 1.2 }`");
    };
    if *min != "1.2" {
        settings.set("min", *min);
    }
    if *max != "1.3" {
        settings.set("max", *max);
    }
    world.ledger.converted(one.id);
}

/// Sets cipher suites and groups, as far as they exist here.
fn lists(scope: &Scope<'_>, world: &World<'_>, settings: &mut Map) {
    for (name, key) in [("ssl_ciphers", "cipher_suites"), ("ssl_ecdh_curve", "groups")] {
        let Some(one) = scope.one(name) else { continue };
        match tls_lists::add(one.arg(0), key, settings) {
            Added::All => world.ledger.converted(one.id),
            Added::Without(others) => {
                world.ledger.differs(one.id, format!("{others} unknown ones are left out"));
            }
            Added::Nothing => {
                world.ledger.differs(one.id, format!("the default `{key}` apply, which are secure"));
            }
        }
    }
}

fn client_certificates(scope: &Scope<'_>, world: &World<'_>, tls: &mut ServerTls) {
    let ca = scope.one("ssl_client_certificate").or_else(|| {
        // Without a list of names to send, the CAs of this directive verify clients.
        scope.one("ssl_verify_client").and_then(|_| scope.one("ssl_trusted_certificate"))
    });
    for name in ["ssl_trusted_certificate", "ssl_client_certificate", "ssl_crl"] {
        scope.all(name).iter().for_each(|one| world.ledger.converted(one.id));
    }
    let Some(verify) = scope.one("ssl_verify_client") else { return };
    let mode = match verify.arg(0) {
        "off" => return world.ledger.converted(verify.id),
        "on" => "required",
        "optional" => "optional",
        other => {
            world.ledger.refused(verify.id, "use `optional` or `required` with the CA of the clients");
            tls.closed = Some(format!("{}: `ssl_verify_client {other}`", world.ledger.shown(verify.id)));
            return;
        }
    };
    let Some(ca) = ca else {
        world.ledger.refused(verify.id, "add the CA: `tls: { client_auth: { mode: required, ca: ... } }`");
        tls.closed = Some(format!("{}: no CA for client certificates", world.ledger.shown(verify.id)));
        return;
    };
    let mut auth = Map::of("mode", mode).with("ca", world.file(ca.arg(0)));
    if let Some(crl) = scope.one("ssl_crl") {
        auth.set("crl", world.file(crl.arg(0)));
    }
    tls.settings.set("client_auth", auth);
    world.ledger.converted(verify.id);
}

/// Returns `tls` of an upstream whose servers speak TLS.
pub(super) fn of_upstream(authority: &str, scope: &Scope<'_>, world: &World<'_>) -> Map {
    let mut tls = Map::new();
    let note = |name: &str| {
        let one = scope.one(name)?;
        world.ledger.converted(one.id);
        Some(one)
    };
    let verify = note("proxy_ssl_verify").is_some_and(Statement::is_on);
    let sends_name = note("proxy_ssl_server_name").is_some_and(Statement::is_on);
    let name = note("proxy_ssl_name").map(|one| one.arg(0)).filter(|name| !name.contains('$'));
    let host = authority.split(':').next().unwrap_or_default();
    let name = name.unwrap_or(host);
    if (verify || sends_name) && quadrille_config::values::host(name).is_ok() {
        tls.set("server_name", name);
    }
    let ca = note("proxy_ssl_trusted_certificate");
    match (verify, ca) {
        (true, Some(ca)) => tls.set("ca", world.file(ca.arg(0))),
        (true, None) => {}
        (false, _) => tls.set("verify", "off"),
    }
    if let (Some(chain), Some(key)) = (note("proxy_ssl_certificate"), note("proxy_ssl_certificate_key")) {
        let pair = Map::of("chain", world.file(chain.arg(0))).with("key", world.file(key.arg(0)));
        tls.set("certificate", pair);
    }
    versions(scope.one("proxy_ssl_protocols"), world, &mut tls);
    tls
}

/// Converts settings of sessions, which concern the whole process: the top level's `resumption`.
pub(super) fn resumption(scope: &Scope<'_>, world: &World<'_>) {
    let mut resumption = Map::new();
    let ledger = world.ledger;
    if let Some(one) = scope.one("ssl_session_cache") {
        let shared = one.args.iter().find_map(|arg| arg.strip_prefix("shared:"));
        match shared.and_then(|shared| values::bytes(shared.rsplit(':').next()?)) {
            // nginx keeps about 4,000 sessions in a megabyte.
            Some(bytes) => resumption.set("cache_size", (bytes / 256).clamp(1, 10_000_000)),
            None if one.has("off") || one.has("none") => resumption.set("cache", "off"),
            None => {}
        }
        ledger.converted(one.id);
    }
    if let Some(one) = scope.one("ssl_session_timeout") {
        const WEEK: u64 = 7 * 86_400_000;
        if let Some(time) = values::milliseconds(one.arg(0)).and_then(|time| values::shown(time.min(WEEK))) {
            resumption.set("lifetime", time);
        }
        ledger.converted(one.id);
    }
    let keys = scope.all("ssl_session_ticket_key");
    if !keys.is_empty() {
        resumption.set("tickets", keys.iter().map(|one| world.file(one.arg(0))).collect::<Vec<_>>());
        keys.iter().for_each(|one| ledger.converted(one.id));
    }
    if let Some(one) = scope.one("ssl_session_tickets") {
        if !one.is_on() {
            resumption.set("tickets", "off");
        }
        ledger.converted(one.id);
    }
    if let Some(one) = scope.one("ssl_early_data") {
        if one.is_on() {
            resumption.set("early_data", "on");
        }
        ledger.converted(one.id);
    }
    if !resumption.is_empty() {
        world.draft.borrow_mut().top.inner("resumption").extend(resumption);
    }
}
