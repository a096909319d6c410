//! Every kind of server and connection for which nginx supports TLS.

use super::{
    batches::exchanges,
    client::Client,
    server::{Configuration, Nginx, kill, rsa_site},
};
use crate::support::{Running, Site, children, finish, free_port, said, until};
use std::path::Path;

/// Returns the number of handshakes run in jobs so far.
fn in_jobs(nginx: &Nginx) -> f64 {
    nginx.status("quadrille_pauses_total")
}

#[test]
fn every_kind_of_listener() {
    let site = rsa_site();
    let [reuse, proxied, h2, deferred] = [free_port(), free_port(), free_port(), free_port()];
    let http = format!(
        "server {{ listen 127.0.0.1:{reuse} ssl reuseport; location / {{ return 200 $request_uri; }} }}\n\
         server {{ listen 127.0.0.1:{proxied} ssl proxy_protocol; location / {{ return 200 $proxy_protocol_addr; }} }}\n\
         server {{ listen 127.0.0.1:{h2} ssl http2; location / {{ return 200 ok; }} }}\n\
         server {{ listen 127.0.0.1:{deferred} ssl deferred; location / {{ return 200 $request_uri; }} }}\n"
    );
    let nginx = Nginx::start(&site, &Configuration { http: &http, workers: 2, ..Configuration::default() });
    exchanges(&nginx, &site, 4, 3);
    let of = |port: u16, version: &str| Client::new(&site, "served", port, version);
    for version in ["1.2", "1.3"] {
        let before = in_jobs(&nginx);
        assert_eq!(of(reuse, version).get("/reuse").expect("a response"), "/reuse");
        assert_eq!(of(deferred, version).get("/deferred").expect("a response"), "/deferred");
        let header = "PROXY TCP4 192.0.2.7 192.0.2.8 1111 443\r\n";
        let address = of(proxied, version).with_preamble(header).get("/").expect("a response");
        assert_eq!(address, "192.0.2.7");
        assert!(in_jobs(&nginx) >= before + 3.0, "{version}");
    }
    assert_eq!(of(h2, "h2").negotiated().expect("a handshake"), "h2");
    let mut curl = site.plain("curl");
    curl.args(["--silent", "--fail", "--http2", "--cacert", "served.pem"])
        .arg(format!("https://localhost:{h2}/"));
    assert!(said(&finish(&mut curl)).contains("ok"));
    nginx.assert_log_is_clean("-");
}

/// Keys of client certificates for upstreams wait in jobs, too.
#[test]
fn upstreams_that_ask_for_certificates() {
    let site = rsa_site();
    site.certificate("client", "rsa:2048");
    let (front, upstream) = (free_port(), free_port());
    let folder = site.path_text("");
    let http = format!(
        "server {{ listen 127.0.0.1:{upstream} ssl; quadrille_async off; ssl_verify_client on;\n\
         ssl_client_certificate {folder}client.pem; location / {{ return 200 \"$ssl_client_s_dn $request_uri\"; }} }}\n\
         server {{ listen 127.0.0.1:{front} ssl; quadrille_async off; location / {{\n\
         proxy_pass https://127.0.0.1:{upstream}; proxy_ssl_session_reuse off;\n\
         proxy_ssl_certificate {folder}client.pem; proxy_ssl_certificate_key {folder}client.key; }} }}\n"
    );
    let nginx = Nginx::start(&site, &Configuration { http: &http, ..Configuration::default() });
    let client = Client::new(&site, "served", front, "1.3");
    let before = in_jobs(&nginx);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let client = &client;
            scope.spawn(move || {
                let path = format!("/{number}");
                let answer = client.get(&path).expect("a response");
                assert_eq!(answer, format!("CN=localhost {path}"));
            });
        }
    });
    assert!(in_jobs(&nginx) >= before + 8.0, "jobs waited for the client's key");
    // A client that disconnects meanwhile makes nginx close the connection to the upstream during its handshake.
    for bytes in (300..4_000).step_by(25) {
        client.leave_after(bytes, bytes % 2 == 0).expect("nginx");
    }
    until("nothing is left", || nginx.status("quadrille_jobs") == 0.0);
    assert_eq!(client.get("/after").expect("a response"), "CN=localhost /after");
    nginx.assert_log_is_clean("-");
}

#[test]
fn certificates_by_variable() {
    let site = rsa_site();
    site.certificate("localhost", "rsa:2048");
    let port = free_port();
    let folder = site.path_text("");
    let http = format!(
        "server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {folder}$ssl_server_name.pem;\n\
         ssl_certificate_key {folder}$ssl_server_name.key; location / {{ return 200 $request_uri; }} }}\n"
    );
    let nginx = Nginx::start(&site, &Configuration { http: &http, ..Configuration::default() });
    for version in ["1.2", "1.3"] {
        let client = Client::new(&site, "localhost", port, version);
        for _ in 0..10 {
            assert_eq!(client.get("/variable").expect("a response"), "/variable");
        }
    }
    assert!(in_jobs(&nginx) >= 20.0);
    nginx.assert_log_is_clean("-");
}

/// Sends a ticket and early data: the request arrives before the handshake has completed.
#[test]
fn early_data() {
    let site = rsa_site();
    let early = "ssl_early_data on; ssl_session_tickets on;";
    let nginx = Nginx::start(&site, &Configuration { server: early, ..Configuration::default() });
    exchanges(&nginx, &site, 4, 4);
    connect_for_a_session(&site, nginx.port, "");
    let answer = resume_with_early_data(&site, nginx.port, "");
    assert!(answer.contains("/early"), "{answer}");
    nginx.assert_log_is_clean("-");
}

/// A certificate that is revoked after its session started: nginx checks it again when the session is resumed.
#[test]
fn early_data_of_a_client_whose_certificate_is_revoked() {
    let site = rsa_site();
    site.certificate("ca", "rsa:2048");
    site.plain_openssl(
        "req -new -newkey rsa:2048 -nodes -subj /CN=client -keyout client.key -out client.csr",
    );
    site.plain_openssl(
        "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -set_serial 0x1234 -out client.pem",
    );
    let responder = free_port();
    let server = format!(
        "ssl_early_data on; ssl_verify_client on; ssl_client_certificate {0}ca.pem; ssl_ocsp leaf;\n\
         ssl_ocsp_responder http://127.0.0.1:{responder}/;",
        site.path_text("")
    );
    let nginx = Nginx::start(&site, &Configuration { server: &server, ..Configuration::default() });
    let certificate = "-cert client.pem -key client.key";
    {
        let _good = ocsp_responder(&site, responder, "V\t400101000000Z\t");
        let answer = connect_for_a_session(&site, nginx.port, certificate);
        assert!(answer.contains("/early"), "{answer}");
        let answer = resume_with_early_data(&site, nginx.port, certificate);
        assert!(answer.contains("/early"), "{answer}");
    }
    let _revoked = ocsp_responder(&site, responder, "R\t400101000000Z\t250101000000Z");
    let answer = resume_with_early_data(&site, nginx.port, certificate);
    assert!(answer.contains("400 Bad Request") && !answer.contains("/early\n"), "{answer}");
    until("it is logged", || nginx.running.log().contains("certificate revoked"));
}

/// Starts a responder that reports the status in this line of the `openssl ca` database for the certificate 1234.
fn ocsp_responder(site: &Site, port: u16, line: &str) -> Running {
    site.write("index.txt", &format!("{line}\t1234\tunknown\t/CN=client\n"));
    let mut responder = site.plain("openssl");
    responder.args(["ocsp", "-index", "index.txt", "-CA", "ca.pem", "-rsigner", "ca.pem", "-rkey", "ca.key"]);
    let mut running = Running::start(site, "ocsp", responder.args(["-port", &port.to_string()]));
    // A probing connection without data would block it forever.
    until("the responder listens", || running.log().contains("waiting") || !running.is_alive());
    assert!(running.is_alive(), "{}", running.log());
    running
}

/// Sends a request on a connection whose session is stored.
fn connect_for_a_session(site: &Site, port: u16, options: &str) -> String {
    site.write("request", "GET /early HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    s_client(site, port, &format!("-sess_out session {options} < request"))
}

/// Sends that request in the early data of a connection that resumes the session.
fn resume_with_early_data(site: &Site, port: u16, options: &str) -> String {
    let answer = s_client(site, port, &format!("-sess_in session -early_data request {options} < /dev/null"));
    assert!(answer.contains("Early data was accepted"), "{answer}");
    answer
}

fn s_client(site: &Site, port: u16, options: &str) -> String {
    let command = format!("timeout 300 openssl s_client -connect 127.0.0.1:{port} -ign_eof {options}");
    said(&finish(site.plain("bash").args(["-c", &command])))
}

/// nginx's stream module is a separate package in Debian.
const STREAM: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

#[test]
fn streams() {
    assert!(Path::new(STREAM).exists(), "run: scripts/install-packages.sh test");
    // Uses OpenSSL's key exchange, so that each handshake is paused once.
    let site = Site::new();
    site.certificate("served", "rsa:2048");
    site.certificate("client", "rsa:2048");
    let [plain, off, upstream, behind, preread] = [(); 5].map(|()| free_port());
    let folder = site.path_text("");
    let main = format!(
        "load_module {STREAM};\n\
         stream {{ ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {folder}served.pem; ssl_certificate_key {folder}served.key;\n\
         server {{ listen 127.0.0.1:{plain} ssl; return 'stream'; }}\n\
         server {{ listen 127.0.0.1:{off} ssl; quadrille_async off; return 'off'; }}\n\
         server {{ listen 127.0.0.1:{behind} ssl; ssl_verify_client on; ssl_client_certificate {folder}client.pem;\n\
         return $ssl_client_s_dn; }}\n\
         server {{ listen 127.0.0.1:{upstream} ssl; proxy_pass 127.0.0.1:{behind}; proxy_ssl on; proxy_ssl_session_reuse off;\n\
         proxy_ssl_certificate {folder}client.pem; proxy_ssl_certificate_key {folder}client.key; }}\n\
         server {{ listen 127.0.0.1:{preread}; ssl_preread on; proxy_pass 127.0.0.1:{plain}; }} }}\n"
    );
    let nginx = Nginx::start(&site, &Configuration { main: &main, ..Configuration::default() });
    let of = |port: u16, version: &str| Client::new(&site, "served", port, version).read_all();
    for version in ["1.2", "1.3"] {
        let before = in_jobs(&nginx);
        assert_eq!(of(plain, version).expect("a response"), "stream");
        assert_eq!(of(preread, version).expect("a response"), "stream");
        assert_eq!(in_jobs(&nginx), before + 2.0);
        assert_eq!(of(off, version).expect("a response"), "off");
        assert_eq!(in_jobs(&nginx), before + 2.0, "jobs are disabled there");
        assert_eq!(of(upstream, version).expect("a response"), "CN=localhost");
        assert_eq!(in_jobs(&nginx), before + 5.0, "both sides of the proxy, and the upstream");
    }
    nginx.assert_log_is_clean("-");
}

/// Starts nginx and exits, as a service manager's helper does: nginx upgrades its binary only if its parent has
/// exited.
const LAUNCHER: &str = "
    (/usr/sbin/nginx \"$@\" & until [ -s nginx.pid ]; do sleep 0.02; done)
    trap 'kill $(cat nginx.pid) $(cat nginx.pid.oldbin); exit' TERM
    sleep 600 & wait
";

/// The old binary starts a new one, which serves on the same sockets with the same environment.
#[test]
fn binary_upgrade() {
    let site = rsa_site();
    let mut launcher = site.with_provider("bash");
    launcher.args(["-c", LAUNCHER, "launcher"]);
    let nginx = Nginx::start_as(&site, launcher, &Configuration::default());
    exchanges(&nginx, &site, 2, 2);
    let pid = |file: &str| site.read(file).trim().parse::<u32>();
    let old = pid("nginx.pid").expect("a process id");
    kill(old, libc::SIGUSR2);
    until("there is another master", || pid("nginx.pid.oldbin") == Ok(old) && pid("nginx.pid").is_ok());
    let new = pid("nginx.pid").expect("a process id");
    until("it has a worker", || children(new).len() == 1);
    kill(old, libc::SIGQUIT);
    until("the old one has finished", || !Path::new(&format!("/proc/{old}")).exists());
    assert_eq!(in_jobs(&nginx), 0.0, "the counters of the new one are its own");
    exchanges(&nginx, &site, 4, 4);
    assert!(in_jobs(&nginx) >= 16.0);
}
