//! Servers of Caddy's `http` app, as listeners.

use super::{
    handler::Walk,
    json::{Json, Notes},
};
use crate::{
    draft::{Action, Draft, Listener, Path, Route},
    ways::{Conjunction, routes},
    yaml::{Map, Value, document},
};
use std::cell::RefCell;

/// Converts a server.
pub(super) fn convert(
    name: &str,
    server: Json<'_>,
    apps: Json<'_>,
    notes: &Notes<'_>,
    draft: &RefCell<Draft>,
) {
    let id = notes.add(&format!("server {name}"));
    notes.ledger.converted(id);
    let policies = server.at(&["tls_connection_policies"]);
    let automatic = server.at(&["automatic_https", "disable"]).value.as_bool() != Some(true);
    let mut addresses = Vec::new();
    for listen in server.at(&["listen"]).texts() {
        match address(&listen) {
            Some(address) => addresses.push(address),
            None => _ = notes.refused(&format!("listen {listen}"), "listen on an IP address and a port"),
        }
    }
    for address in &addresses {
        let port = address.rsplit(':').next().unwrap_or_default();
        let tls = policies.items().next().is_some() || port == "443" && automatic;
        let walk = Walk { notes, draft, tls };
        let mut listener = Listener { address: address.clone(), ..Listener::default() };
        let base = Conjunction { ignore_case: true, ..Conjunction::default() };
        let ways = walk.list(server.at(&["routes"]), &base, Vec::new());
        listener.routes = routes(&ways);
        if listener.routes.is_empty() {
            listener.keys.set("respond", Map::of("status", "404"));
        }
        match tls {
            false => listener.keys.set("tls", "off"),
            true => {
                let hosts = hosts(&listener.routes);
                certificates(&mut listener, &hosts, apps, notes, draft);
                if let Err(text) = tls_settings(&mut listener, policies, notes) {
                    listener.routes.iter_mut().for_each(|route| route.close(503, &text));
                }
                let protocols = server.at(&["protocols"]).texts();
                if protocols.is_empty() || protocols.iter().any(|one| one == "h3") {
                    listener.keys.set("http3", "on");
                }
            }
        }
        settings(&mut listener, server, notes);
        let mut draft = draft.borrow_mut();
        draft.listeners.push(listener);
        let redirects = server.at(&["automatic_https", "disable_redirects"]).value.as_bool() != Some(true);
        let is_free = !draft.listeners.iter().any(|other| other.address.ends_with(":80"));
        if tls && port == "443" && automatic && redirects && is_free && !serves_port_80(apps) {
            draft.listeners.push(redirection());
        }
    }
    if !server.at(&["logs"]).is_missing() {
        draft.borrow_mut().top.set("access_log", "stdout");
        notes.converted("log");
    }
    if !server.at(&["errors"]).is_missing() {
        notes.refused("handle_errors", "write `error_pages: [{ status: ..., file: ... }]`");
    }
}

fn serves_port_80(apps: Json<'_>) -> bool {
    let servers = apps.at(&["http", "servers"]).entries();
    servers.flat_map(|(_, server)| server.at(&["listen"]).texts()).any(|listen| listen.ends_with(":80"))
}

/// Returns the listener that redirects to HTTPS, as Caddy adds it.
fn redirection() -> Listener {
    let redirect = Map::of("scheme", "https").with("status", "308");
    let route = Route::new(Path::Prefix(String::new()), Action::Redirect(redirect));
    Listener {
        address: "[::]:80".to_owned(),
        keys: Map::of("tls", "off"),
        routes: vec![route],
        ..Listener::default()
    }
}

fn address(text: &str) -> Option<String> {
    let text = text.strip_prefix("tcp/").unwrap_or(text);
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    match host.trim_start_matches('[').trim_end_matches(']') {
        "" => Some(format!("[::]:{port}")),
        "localhost" => Some(format!("127.0.0.1:{port}")),
        other => match other.parse::<std::net::IpAddr>().ok()? {
            std::net::IpAddr::V6(ip) => Some(format!("[{ip}]:{port}")),
            ip => Some(format!("{ip}:{port}")),
        },
    }
}

fn hosts(routes: &[Route]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for host in routes.iter().flat_map(|route| &route.hosts) {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    hosts
}

/// Sets the certificates: files, orders from an authority, or files to be made.
fn certificates(
    listener: &mut Listener,
    hosts: &[String],
    apps: Json<'_>,
    notes: &Notes<'_>,
    draft: &RefCell<Draft>,
) {
    let files = apps.at(&["tls", "certificates", "load_files"]);
    let mut certificates: Vec<Map> = files
        .items()
        .filter(|file| !file.at(&["certificate"]).text().is_empty() && !file.at(&["key"]).text().is_empty())
        .map(|file| Map::of("chain", file.at(&["certificate"]).text()).with("key", file.at(&["key"]).text()))
        .collect();
    if !certificates.is_empty() {
        notes.converted("tls CERTIFICATE KEY");
        listener.keys.set("certificates", certificates);
        return;
    }
    let policies = apps.at(&["tls", "automation", "policies"]);
    let internal = |host: &String| {
        policies.items().any(|policy| {
            let subjects = policy.at(&["subjects"]).texts();
            let is_internal =
                policy.at(&["issuers"]).items().any(|issuer| issuer.at(&["module"]).text() == "internal");
            is_internal && (subjects.is_empty() || subjects.contains(host))
        })
    };
    let (own, ordered): (Vec<_>, Vec<_>) =
        hosts.iter().cloned().partition(|host| internal(host) || !is_orderable(host));
    if !ordered.is_empty() {
        certificates.push(Map::of("acme", Map::of("names", ordered)));
        let mut draft = draft.borrow_mut();
        let acme = draft.top.inner("acme");
        acme.set("state", "/var/lib/quadrille/acme");
        let issuer = policies.items().flat_map(|policy| policy.at(&["issuers"]).items().collect::<Vec<_>>());
        for issuer in issuer.filter(|issuer| issuer.at(&["module"]).text() == "acme") {
            for (key, name) in [("email", "email"), ("ca", "directory")] {
                let text = issuer.at(&[key]).text();
                if !text.is_empty() {
                    acme.set(name, text);
                }
            }
        }
        notes.converted("tls by ACME");
    }
    if certificates.is_empty() || !own.is_empty() {
        let name = own.first().map_or("site", String::as_str).replace('*', "wildcard");
        certificates.push(Map::of("chain", format!("{name}.pem")).with("key", format!("{name}.key")));
        notes.refused(
            &format!("tls internal {}", own.join(" ")),
            "no certificates are made here: create the files that `certificates` names",
        );
    }
    listener.keys.set("certificates", certificates);
}

/// Returns whether a public authority can issue a certificate for the name.
fn is_orderable(host: &str) -> bool {
    let order = Map::of("acme", Map::of("names", vec![host]));
    let https = Map::of("address", "127.0.0.1:1").with("certificates", vec![order]).with("respond", "x");
    let http = Map::of("address", "127.0.0.1:2").with("tls", "off").with("respond", "x");
    let text = document(&Map::of("listeners", vec![https, http]).with("acme", Map::of("state", "/s")));
    quadrille_config::parse(&text, "probe").is_ok()
}

/// Sets versions, suites and client certificates.
///
/// # Errors
/// If client certificates cannot be verified; the routes must be closed.
fn tls_settings(listener: &mut Listener, policies: Json<'_>, notes: &Notes<'_>) -> Result<(), String> {
    let mut tls = Map::new();
    let versions = [("tls1.0", "1.0"), ("tls1.1", "1.1"), ("tls1.2", "1.2"), ("tls1.3", "1.3")];
    let known = |text: &str| versions.iter().find(|(name, _)| *name == text).map(|(_, version)| *version);
    let mut outcome = Ok(());
    for policy in policies.items() {
        for (key, name, default) in [("protocol_min", "min", "1.2"), ("protocol_max", "max", "1.3")] {
            if let Some(version) = known(policy.at(&[key]).text()).filter(|version| *version != default) {
                tls.set(name, version);
            }
        }
        let suites = policy.at(&["cipher_suites"]).texts();
        if !suites.is_empty() {
            crate::tls_lists::add_all(suites.iter().map(String::as_str), "cipher_suites", &mut tls);
            notes.converted("ciphers");
        }
        let curves = policy.at(&["curves"]).texts();
        if !curves.is_empty() {
            crate::tls_lists::add_all(curves.iter().map(String::as_str), "groups", &mut tls);
            notes.converted("curves");
        }
        let auth = policy.at(&["client_authentication"]);
        if auth.is_missing() {
            continue;
        }
        let files = [auth.at(&["trusted_ca_certs_pem_files"]).texts(), auth.at(&["ca", "pem_files"]).texts()]
            .concat();
        let mode = match auth.at(&["mode"]).text() {
            "verify_if_given" => Some("optional"),
            "" | "require_and_verify" => Some("required"),
            _ => None,
        };
        match (mode, &files[..]) {
            (Some(mode), [file]) => {
                tls.set("client_auth", Map::of("mode", mode).with("ca", file));
                notes.converted("client_auth");
            }
            _ => {
                let remedy = "write `tls: { client_auth: { mode: required, ca: ... } }`";
                outcome = Err(notes.refused("client_auth", remedy));
            }
        }
    }
    if !tls.is_empty() {
        listener.keys.set("tls", tls);
    }
    outcome
}

/// Sets timeouts, limits and proxies in front.
fn settings(listener: &mut Listener, server: Json<'_>, notes: &Notes<'_>) {
    for (key, name) in
        [("read_header_timeout", "header"), ("read_timeout", "request"), ("idle_timeout", "idle")]
    {
        if let Some(time) = server.at(&[key]).duration() {
            listener.keys.inner("timeouts").set(name, time);
            notes.converted(key);
        }
    }
    if let Some(size) = server.at(&["max_header_bytes"]).number() {
        listener.keys.inner("limits").set("header", crate::values::size(size.clamp(4 << 10, 8 << 20)));
        notes.converted("max_header_size");
    }
    let proxies = server.at(&["trusted_proxies"]);
    if proxies.is_missing() {
        return;
    }
    let ranges = proxies.at(&["ranges"]).texts();
    let good =
        |range: &String| range.split('/').next().is_some_and(|ip| ip.parse::<std::net::IpAddr>().is_ok());
    match proxies.at(&["source"]).text() == "static" && !ranges.is_empty() && ranges.iter().all(good) {
        true => {
            listener.keys.set("trusted_proxies", ranges.into_iter().map(Value::from).collect::<Vec<_>>());
            notes.converted("trusted_proxies");
        }
        false => _ = notes.refused("trusted_proxies", "list networks under `trusted_proxies`"),
    }
}
