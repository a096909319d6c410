//! Real servers of Debian 12, unmodified: every key exchange, with the key in the server and in a key server.

use crate::support::{Running, Site, free_port, handshake, listens, nginx_module, said, set_mode, until};
use std::{fs, path::PathBuf, process::Command};

/// Starts a server of one kind on a port.
pub(crate) type Start = fn(&Site, key: &str, port: u16) -> Running;

/// Options of each client, and the expected negotiated parameters.
const RSA_HANDSHAKES: [(&str, &str); 4] = [
    ("-tls1_3", "TLSv1.3"),
    ("-tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"),
    ("-tls1_2 -cipher AES128-GCM-SHA256", "Cipher is AES128-GCM-SHA256"),
];

fn all_handshakes(start: Start) {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    site.certificate("large", "rsa:4096");
    site.certificate("curve", "ec:P-256");
    dh_parameters(&site);
    let _server = site.key_server("keys", &["rsa", "large", "curve"]);
    for name in ["rsa", "large", "curve"] {
        site.stand_in(&format!("{name}-remote.key"), &["keys"], name, &[]);
        for key in [format!("{name}.key"), format!("{name}-remote.key")] {
            let port = free_port();
            fs::copy(site.path(&format!("{name}.pem")), site.path("served.pem")).expect("it is there");
            let both = format!("{}{}", site.read(&format!("{name}.pem")), site.read(&key));
            site.write("served.both", &both);
            let mut running = start(&site, &key, port);
            until(&format!("the server listens with {key}: {}", running.log()), || {
                listens(port) || !running.is_alive()
            });
            let wanted: &[(&str, &str)] = if name == "curve" {
                &[("-tls1_3", "TLSv1.3"), ("-tls1_2", "ECDHE-ECDSA")]
            } else {
                &RSA_HANDSHAKES
            };
            for (options, agreed) in wanted {
                let said = handshake(&site, port, options);
                let good = said.as_ref().is_some_and(|said| said.contains(agreed));
                assert!(good, "{key} {options}: {said:?}\n{}", running.log());
            }
            resumes(&site, port, &key);
        }
    }
}

fn resumes(site: &Site, port: u16, key: &str) {
    let session = site.path_text("session");
    handshake(site, port, &format!("-tls1_2 -sess_out {session}"))
        .unwrap_or_else(|| panic!("{key}: no session"));
    let again = handshake(site, port, &format!("-tls1_2 -sess_in {session}")).unwrap_or_default();
    assert!(again.contains("Reused, TLSv1.2"), "{key}: {again}");
}

fn dh_parameters(site: &Site) {
    // The group of RFC 7919, which takes no time to generate.
    site.plain_openssl("genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out dh.pem");
}

pub(crate) fn nginx(site: &Site, key: &str, port: u16) -> Running {
    nginx_with("", site, key, port)
}

fn asynchronous_nginx(site: &Site, key: &str, port: u16) -> Running {
    nginx_with(&format!("load_module {};", nginx_module().display()), site, key, port)
}

fn nginx_with(modules: &str, site: &Site, key: &str, port: u16) -> Running {
    let folder = site.path_text("");
    let text = format!(
        "{modules} daemon off; pid {folder}nginx.pid; error_log stderr; worker_processes 2; env OPENSSL_CONF;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; client_body_temp_path {folder}b; proxy_temp_path {folder}p; fastcgi_temp_path {folder}f;\n\
         uwsgi_temp_path {folder}u; scgi_temp_path {folder}s; ssl_session_cache shared:sessions:1m;\n\
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {folder}served.pem; ssl_certificate_key {folder}{key};\n\
         ssl_dhparam {folder}dh.pem; ssl_ciphers ALL; ssl_protocols TLSv1.2 TLSv1.3; location / {{ return 200 ok; }} }} }}\n"
    );
    let file = site.write(&format!("nginx-{port}.conf"), &text);
    Running::start(
        site,
        "nginx",
        site.with_provider("/usr/sbin/nginx").arg("-c").arg(file).arg("-p").arg(folder),
    )
}

pub(crate) fn haproxy(site: &Site, _key: &str, port: u16) -> Running {
    let file = haproxy_configuration(site, port);
    Running::start(site, "haproxy", site.with_provider("/usr/sbin/haproxy").arg("-db").arg("-f").arg(file))
}

pub(crate) fn haproxy_configuration(site: &Site, port: u16) -> PathBuf {
    let text = format!(
        "global\n  maxconn 2000\n  nbthread 2\n  stats socket {} expose-fd listeners\n  ssl-mode-async\n  ssl-default-bind-ciphers ALL\n\
         \x20 tune.ssl.default-dh-param 2048\n\
         defaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 60s\n\
         frontend f\n  bind 127.0.0.1:{port} ssl crt {}\n  http-request return status 200 content-type text/plain string ok\n",
        // Lets a worker pass its listeners to the next one, so that no connection is lost between them.
        site.path_text("stats.sock"),
        site.path_text("served.both")
    );
    site.write(&format!("haproxy-{port}.cfg"), &text)
}

fn apache(site: &Site, key: &str, port: u16) -> Running {
    let modules = ["mpm_event", "authz_core", "ssl", "socache_shmcb"];
    let load = modules
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    let folder = site.path_text("");
    fs::create_dir_all(site.path("www")).expect("it is there");
    site.write("www/index.html", "ok");
    set_mode(&site.path("www"), 0o755);
    let text = format!(
        "ServerRoot {folder}\n{load}ServerName localhost\nUser nobody\nGroup nogroup\nPidFile {folder}apache-{port}.pid\n\
         ErrorLog {folder}apache.err\nMutex file:{folder} default\nListen 127.0.0.1:{port}\nDocumentRoot {folder}www\n\
         SSLSessionCache shmcb:{folder}sessions-{port}(512000)\n\
         <VirtualHost 127.0.0.1:{port}>\nSSLEngine on\nSSLCipherSuite ALL\nSSLCertificateFile {folder}served.pem\n\
         SSLCertificateKeyFile {folder}{key}\n</VirtualHost>\n"
    );
    let file = site.write(&format!("apache-{port}.conf"), &text);
    Running::start(
        site,
        "apache",
        site.with_provider("/usr/sbin/apache2").arg("-f").arg(file).arg("-DFOREGROUND"),
    )
}

fn node(site: &Site, key: &str, port: u16) -> Running {
    let script = "const fs = require('fs'), [, , cert, key, port] = process.argv;\
        require('https').createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key), ciphers: 'ALL', dhparam: 'auto' },\
        (_, response) => response.end('ok')).listen(+port, '127.0.0.1');";
    let file = site.write("server.js", script);
    let mut command = site.plain("node");
    command.env("OPENSSL_CONF", site.path("node.cnf")).arg(file);
    command.arg(site.path("served.pem")).arg(site.path(key)).arg(port.to_string());
    Running::start(site, "node", &mut command)
}

#[test]
fn nginx_serves_every_key_exchange() {
    all_handshakes(nginx);
}

#[test]
fn nginx_serves_every_key_exchange_asynchronously() {
    all_handshakes(asynchronous_nginx);
}

#[test]
fn haproxy_serves_every_key_exchange_asynchronously() {
    all_handshakes(haproxy);
}

#[test]
fn apache_serves_every_key_exchange() {
    all_handshakes(apache);
}

#[test]
fn node_serves_every_key_exchange() {
    all_handshakes(node);
}

/// `openssl s_server` reads keys through OpenSSL's store, so it accepts URIs.
#[test]
fn s_server_by_uri_with_and_without_jobs() {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    let _server = site.key_server("keys", &["rsa"]);
    for key in [
        site.path_text("rsa.key"),
        format!("quadrille:file:{}", site.path_text("rsa.key")),
        site.uri(&["keys"], "rsa"),
    ] {
        for mode in ["", "-async"] {
            let port = free_port();
            let mut command = site.with_provider("openssl");
            command
                .args(["s_server", "-accept", &format!("127.0.0.1:{port}"), "-www", "-cert"])
                .arg(site.path("rsa.pem"));
            command.args(["-key", &key]).args(Some(mode).filter(|mode| !mode.is_empty()));
            let running = Running::start(&site, "s_server", &mut command);
            until("s_server listens", || listens(port));
            for (options, agreed) in RSA_HANDSHAKES {
                let said = handshake(&site, port, options).unwrap_or_default();
                assert!(said.contains(agreed), "{key} {mode} {options}: {said}\n{}", running.log());
            }
        }
    }
}

#[test]
fn curl_shows_a_client_certificate() {
    let site = Site::new();
    site.certificate("server", "ec:P-256");
    site.certificate("client", "rsa:2048");
    let _server = site.key_server("keys", &["client"]);
    site.stand_in("client-remote.key", &["keys"], "client", &[]);
    let port = free_port();
    let mut command = site.plain("openssl");
    command.args([
        "s_server",
        "-www",
        "-Verify",
        "1",
        "-verify_return_error",
        "-accept",
        &format!("127.0.0.1:{port}"),
    ]);
    command.arg("-cert").arg(site.path("server.pem")).arg("-key").arg(site.path("server.key"));
    command.arg("-CAfile").arg(site.path("client.pem"));
    let _running = Running::start(&site, "s_server", &mut command);
    until("s_server listens", || listens(port));
    for key in ["client.key", "client-remote.key"] {
        for version in ["--tls-max=1.2", "--tlsv1.3"] {
            let mut curl = site.with_provider("curl");
            curl.args([
                "--silent",
                "--show-error",
                "--fail",
                "--cert",
                "client.pem",
                "--key",
                key,
                "--cacert",
                "server.pem",
            ]);
            curl.args(version.split('=')).arg(format!("https://127.0.0.1:{port}/"));
            let page = said(&crate::support::finish(&mut curl));
            assert!(page.contains("Client certificate"), "{key} {version}: {page}");
        }
    }
}

/// Killed workers are forked again after the master has loaded keys; a reload starts new ones.
#[test]
fn nginx_workers_come_and_go() {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    dh_parameters(&site);
    fs::copy(site.path("rsa.pem"), site.path("served.pem")).expect("it is there");
    let port = free_port();
    let running = nginx(&site, "rsa.key", port);
    until("nginx serves", || handshake(&site, port, "").is_some());
    for round in 0..3 {
        let workers = running.family().split_off(1);
        assert_eq!(workers.len(), 2, "{}", running.log());
        match round {
            2 => running.signal(libc::SIGHUP),
            _ => workers.iter().for_each(|pid| {
                // SAFETY: they are children of this test's child.
                unsafe { libc::kill(libc::pid_t::try_from(*pid).expect("it is there"), libc::SIGKILL) };
            }),
        }
        until("other workers", || {
            running.family()[1..].iter().all(|pid| !workers.contains(pid)) && running.family().len() == 3
        });
        until("nginx serves", || handshake(&site, port, "").is_some());
    }
    let other = Command::new("/usr/sbin/nginx").arg("-v").output().expect("nginx");
    println!("with {}", said(&other).trim());
}
