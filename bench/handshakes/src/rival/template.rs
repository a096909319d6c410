//! Configuration files from templates.

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use nix::unistd::Uid;

use super::{
    envoy,
    provider::stand_in,
    server::{Job, Rival},
    setup::{Protocol, Setup},
};
use crate::scenario::Resumption;

/// Files that a server may need in addition to its connections, and again for its upstream side.
const SPARE_FILES: usize = 1_000;

/// Writes `rival`'s configuration file for `setup` and returns its path.
pub(super) fn configuration(rival: Rival, setup: &Setup<'_>, name: &str, template: &str) -> Result<OsString> {
    let special = special(rival, setup);
    let text = special.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value));
    write(&setup.directory.join(format!("{rival}-{name}")), &fill(&text, setup))
}

/// Writes the configuration file of the upstream, and returns its path.
pub(crate) fn upstream(address: SocketAddr, connections: usize, directory: &Path) -> Result<OsString> {
    let place = placed(include_str!("../../rivals/upstream.conf"), address, connections, directory);
    write(&directory.join("upstream.conf"), &place)
}

fn write(path: &Path, text: &str) -> Result<OsString> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.into())
}

/// Replaces the placeholders that all servers share.
fn fill(template: &str, setup: &Setup<'_>) -> String {
    let values = [
        ("@version@", setup.version.number().to_owned()),
        ("@groups@", setup.groups.clone()),
        ("@version_underscored@", setup.version.number().replace('.', "_")),
        ("@chain@", setup.certificate.chain.display().to_string()),
        ("@key@", setup.certificate.key.display().to_string()),
        ("@combined@", setup.certificate.combined.display().to_string()),
    ];
    let text = values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value));
    placed(&text, setup.address, setup.connections, setup.directory)
}

fn placed(template: &str, address: SocketAddr, connections: usize, directory: &Path) -> String {
    let values = [
        ("@port@", address.port().to_string()),
        // Both sides of each connection.
        ("@connections@", (2 * connections + SPARE_FILES).to_string()),
        ("@files@", (2 * connections + 2 * SPARE_FILES).to_string()),
        ("@directory@", directory.display().to_string()),
    ];
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// Returns the placeholders of each server: sessions, source of the response, and the provider.
fn special(rival: Rival, setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let module = setup.provider.map(|provider| provider.module.display().to_string());
    let mut all = of_rival(rival, setup);
    all.push(("@module@", module.unwrap_or_default()));
    all
}

fn of_rival(rival: Rival, setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let upstream = setup.upstream.map(|address| address.port());
    let own = |answer: &str, instead: &str| if upstream.is_some() { instead } else { answer }.to_owned();
    let resumes = setup.resumption == Resumption::On;
    let sessions = |on: &str, off: &str| ("@sessions@", if resumes { on } else { off }.to_owned());
    let behind = |text: &dyn Fn(u16) -> String| upstream.map(text).unwrap_or_default();
    match rival {
        Rival::Nginx => vec![
            ("@workers@", setup.workers.to_string()),
            ("@dh@", dh_parameters(setup).display().to_string()),
            // Several workers block on operations: an idle worker takes the next connection, as is nginx's default.
            ("@reuseport@", if setup.workers == 1 { "reuseport" } else { "" }.to_owned()),
            (
                "@modules@",
                setup
                    .nginx_module()
                    .map_or_else(String::new, |file| format!("load_module {};", file.display())),
            ),
            // With the provider alone, the key is in a key server, and this file refers to it.
            (
                "@key@",
                match setup.provider {
                    Some(_) if setup.nginx_module().is_none() => stand_in(setup),
                    _ => setup.certificate.key.clone(),
                }
                .display()
                .to_string(),
            ),
            sessions(
                "        ssl_session_tickets on;",
                // Without the second line OpenSSL sends two TLS 1.3 tickets nevertheless.
                "        ssl_session_tickets off;\n        ssl_conf_command NumTickets 0;",
            ),
            (
                "@answer@",
                own(
                    "            return 200 \"ok\";",
                    // No buffering in a temporary file when the client is slower than the upstream.
                    "            proxy_pass http://upstream;\n            proxy_http_version 1.1;\n            \
                     proxy_set_header Connection \"\";\n            proxy_buffers 16 64k;\n            \
                     proxy_busy_buffers_size 512k;\n            proxy_max_temp_file_size 0;\n            \
                     location /websocket {\n                proxy_pass http://upstream;\n                \
                     proxy_http_version 1.1;\n                proxy_set_header Upgrade $http_upgrade;\n                \
                     proxy_set_header Connection upgrade;\n            }",
                ),
            ),
            (
                "@upstreams@",
                behind(&|port| {
                    format!(
                        "    upstream upstream {{ server 127.0.0.1:{port}; keepalive 512; \
                         keepalive_requests 100000000; }}"
                    )
                }),
            ),
        ],
        Rival::Haproxy | Rival::HaproxyAwsLc | Rival::HaproxyTcp => {
            let http = rival.job() == Job::Answer;
            vec![
                sessions("", "no-tls-tickets"),
                ("@async@", setup.provider.map_or("", |_| "ssl-mode-async").to_owned()),
                ("@mode@", if http { "http" } else { "tcp" }.to_owned()),
                ("@alpn@", if http { "h2,http/1.1" } else { "http/1.1" }.to_owned()),
                (
                    "@answer@",
                    own(
                        "http-request return status 200 content-type text/plain string ok",
                        "default_backend upstream",
                    ),
                ),
                (
                    "@upstreams@",
                    behind(&|port| {
                        // By default, the first request of each client gets a connection of its own.
                        let reuse = if http { "    http-reuse always\n" } else { "" };
                        let protocol = if setup.behind.origin == Protocol::Http2 { " proto h2" } else { "" };
                        format!("\nbackend upstream\n{reuse}    server upstream 127.0.0.1:{port}{protocol}\n")
                    }),
                ),
            ]
        }
        Rival::Envoy => envoy::placeholders(setup),
        // With filters it has Envoy's configuration file.
        Rival::Quadrille => {
            let mut all = envoy::placeholders(setup);
            all.extend([
                ("@resumption@", if resumes { "{}" } else { "{ tickets: off, cache: off }" }.to_owned()),
                ("@http3_switch@", if setup.http3 { "on" } else { "off" }.to_owned()),
                ("@upstream_port@", behind(&|port| port.to_string())),
                ("@admin_port@", setup.beside.port().to_string()),
            ]);
            all
        }
        Rival::Hitch => {
            // As root it requires an unprivileged user.
            let user = if Uid::effective().is_root() { "user = \"nobody\"" } else { "" };
            vec![("@user@", user.to_owned()), ("@upstream_port@", behind(&|port| port.to_string()))]
        }
        Rival::Rustls | Rival::QuadrilleTcp | Rival::Keyless => Vec::new(),
    }
}

/// Returns the path of nginx's parameters; HAProxy has its own.
pub(super) fn dh_parameters(setup: &Setup<'_>) -> PathBuf {
    setup.directory.join("ffdhe2048.pem")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        certificate::CertificateFiles,
        rival::setup::{Behind, Filters},
    };
    use quadrille_profile::load::TlsVersion;

    #[test]
    fn no_placeholder_is_left_in_a_configuration() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = CertificateFiles {
            chain: "/d/chain.pem".into(),
            key: "/d/key.pem".into(),
            combined: "/d/combined.pem".into(),
        };
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let http2 = Behind { origin: Protocol::Http2, filters: None };
        let filters = Some(Filters { authorization: address(8081), mirror: address(8082) });
        for (resumption, upstream, behind) in [
            (Resumption::Off, None, Behind::default()),
            (Resumption::On, None, Behind::default()),
            (Resumption::Off, Some(address(8080)), Behind::default()),
            (Resumption::On, Some(address(8080)), http2),
            (Resumption::On, Some(address(8080)), Behind { filters, ..http2 }),
        ] {
            let setup = Setup {
                address: address(8443),
                beside: address(8444),
                version: TlsVersion::V1_2,
                groups: "X25519:P-256".into(),
                certificate: &certificate,
                connections: 32,
                directory: directory.path(),
                resumption,
                upstream,
                behind,
                workers: 1,
                http3: resumption == Resumption::On,
                provider: None,
            };
            for (rival, template) in [
                (Rival::Nginx, include_str!("../../rivals/nginx.conf")),
                (Rival::Haproxy, include_str!("../../rivals/haproxy.cfg")),
                (Rival::HaproxyTcp, include_str!("../../rivals/haproxy.cfg")),
                (Rival::Envoy, include_str!("../../rivals/envoy.yaml")),
                (Rival::Quadrille, include_str!("../../rivals/envoy.yaml")),
                (Rival::Quadrille, include_str!("../../rivals/quadrille.yaml")),
                (Rival::Hitch, include_str!("../../rivals/hitch.conf")),
            ] {
                let file = configuration(rival, &setup, "conf", template).unwrap();
                let filled = fs::read_to_string(file).unwrap().replace("\"@type\"", "");
                assert!(!filled.contains('@'), "{filled}");
                assert!(filled.contains("8443"));
                assert_eq!(filled.contains("8080"), upstream.is_some(), "{filled}");
                let has_filters = filled.contains("8081") && filled.contains("8082");
                let is_envoys = template.starts_with("# One worker (--concurrency 1)");
                assert_eq!(has_filters, behind.filters.is_some() && is_envoys, "{filled}");
            }
        }
    }
}
