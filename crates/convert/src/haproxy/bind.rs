//! Addresses and TLS of `bind`.

use super::{
    section::{Line, Section},
    world::World,
};
use crate::yaml::Map;

/// An address that a frontend accepts connections on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bind {
    pub(super) address: String,
    pub(super) tls: bool,
    /// `certificates`, `tls`, `proxy_protocol` and `http3` of the listener.
    pub(super) keys: Map,
    pub(super) requests_certificates: bool,
}

/// Reads the addresses of a section; those that cannot be used are refused.
pub(super) fn binds(section: &Section, world: &World<'_>) -> Vec<Bind> {
    let mut binds: Vec<Bind> = Vec::new();
    for line in section.lines.iter().filter(|line| line.word(0) == "bind") {
        world.converted(line);
        for text in line.word(1).split(',') {
            let quic = text.starts_with("quic");
            let text = ["ipv4@", "ipv6@", "quic4@", "quic6@"]
                .iter()
                .find_map(|kind| text.strip_prefix(kind))
                .unwrap_or(text);
            let Some(address) = address(text, line) else {
                world.refused(line, "listen on an IP address and a port: `address: 0.0.0.0:8443`");
                continue;
            };
            if quic {
                // HTTP/3 has the address of HTTPS.
                match binds.iter_mut().find(|bind| bind.address == address) {
                    Some(bind) => bind.keys.set("http3", "on"),
                    None => world.refused(line, "add `http3: on` to the listener of HTTPS on this port"),
                }
                continue;
            }
            match bind(address, line, section, world) {
                Ok(bind) => {
                    // IPv4 and IPv6 of all addresses are one listener.
                    let same = |known: &Bind| {
                        port(&known.address) == port(&bind.address)
                            && is_all(&known.address)
                            && is_all(&bind.address)
                    };
                    match binds.iter_mut().find(|known| same(known)) {
                        Some(known) => known.address = format!("[::]:{}", port(&bind.address)),
                        None => binds.push(bind),
                    }
                }
                Err(problem) => world.refused(line, problem),
            }
        }
    }
    binds
}

fn is_all(address: &str) -> bool {
    address.starts_with("0.0.0.0:") || address.starts_with("[::]:")
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

fn address(text: &str, line: &Line) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    let host = match host.trim_start_matches('[').trim_end_matches(']') {
        "" | "*" if line.has("v4v6") => "[::]".to_owned(),
        "" | "*" | "0.0.0.0" => "0.0.0.0".to_owned(),
        "::" | ":" => "[::]".to_owned(),
        "localhost" => "127.0.0.1".to_owned(),
        other => match other.parse::<std::net::IpAddr>().ok()? {
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        },
    };
    Some(format!("{host}:{port}"))
}

fn bind(address: String, line: &Line, section: &Section, world: &World<'_>) -> Result<Bind, String> {
    let mut keys = Map::new();
    if line.has("accept-proxy") {
        keys.set("proxy_protocol", "required");
    }
    if !line.has("ssl") {
        keys.set("tls", "off");
        return Ok(Bind { address, tls: false, keys, requests_certificates: false });
    }
    let mut certificates = Vec::new();
    for pair in line.words.windows(2) {
        let [word, path] = pair else { continue };
        if word != "crt" {
            continue;
        }
        certificates.extend(pairs(&world.file(path, "crt-base")));
    }
    if certificates.is_empty() {
        return Err(
            "list certificate and key under `certificates`: files of `crt`, not a list or a directory"
                .to_owned(),
        );
    }
    keys.set("certificates", certificates);
    let mut tls = Map::new();
    versions(line, world, &mut tls);
    let is_http = section.last(&["mode"]).is_some_and(|line| line.word(1) == "http");
    if let Some(alpn) = line.after("alpn").filter(|_| is_http) {
        let protocols: Vec<_> = alpn.split(',').filter(|one| ["h2", "http/1.1"].contains(one)).collect();
        if protocols != ["h2", "http/1.1"] && !protocols.is_empty() {
            tls.set("alpn", protocols);
        }
    } else if let (false, Some(alpn)) = (is_http, line.after("alpn")) {
        tls.set("alpn", alpn.split(',').collect::<Vec<_>>());
    }
    let requests_certificates = client_certificates(line, world, &mut tls)?;
    if !tls.is_empty() {
        keys.set("tls", tls);
    }
    Ok(Bind { address, tls: true, keys, requests_certificates })
}

/// Returns the certificates of a path: a file with certificate and key, or a directory of them.
fn pairs(path: &str) -> Vec<Map> {
    let pair = |path: &str| Map::of("chain", path).with("key", path);
    let Ok(entries) = std::fs::read_dir(path) else {
        return if path.ends_with('/') { Vec::new() } else { vec![pair(path)] };
    };
    let is_pair = |path: &std::path::PathBuf| {
        !path
            .extension()
            .is_some_and(|one| ["ocsp", "key", "issuer", "sctl"].iter().any(|other| one == *other))
    };
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_pair).collect();
    files.sort();
    files.iter().map(|file| pair(&file.display().to_string())).collect()
}

fn versions(line: &Line, world: &World<'_>, tls: &mut Map) {
    let defaults = world.global.and_then(|global| global.last(&["ssl-default-bind-options"]));
    for (word, key, default) in [("ssl-min-ver", "min", "1.2"), ("ssl-max-ver", "max", "1.3")] {
        let version = line.after(word).or_else(|| defaults.and_then(|line| line.after(word)));
        let version = version.and_then(|version| version.strip_prefix("TLSv"));
        if let Some(version) = version.filter(|version| *version != default) {
            tls.set(key, version);
        }
    }
    let ciphers = line.after("ciphers").or_else(|| {
        let line = world.global?.last(&["ssl-default-bind-ciphers"])?;
        Some(line.word(1))
    });
    if let Some(ciphers) = ciphers {
        crate::tls_lists::add(ciphers, "cipher_suites", tls);
    }
    if let Some(curves) = line.after("curves") {
        crate::tls_lists::add(curves, "groups", tls);
    }
}

/// Sets client certificates; returns whether they are requested.
fn client_certificates(line: &Line, world: &World<'_>, tls: &mut Map) -> Result<bool, String> {
    let mode = match line.after("verify") {
        None | Some("none") => return Ok(false),
        Some("optional") => "optional",
        Some("required") => "required",
        Some(other) => return Err(format!("`verify {other}` is not known")),
    };
    let ca = line.after("ca-file").ok_or("client certificates need a CA: add `ca-file`")?;
    let mut auth = Map::of("mode", mode).with("ca", world.file(ca, "ca-base"));
    if let Some(crl) = line.after("crl-file") {
        auth.set("crl", world.file(crl, "ca-base"));
    }
    tls.set("client_auth", auth);
    Ok(true)
}
