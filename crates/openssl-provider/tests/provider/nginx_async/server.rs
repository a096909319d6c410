//! nginx with the module, its status and its log.

use super::client::Client;
use crate::support::{Running, Site, free_port, listens, nginx_module, until};
use std::{fs, process::Command};

/// An nginx of one test.
pub(crate) struct Nginx {
    pub(super) running: Running,
    pub(crate) port: u16,
    /// A port without TLS that serves the status.
    status_port: u16,
}

/// Configuration supplied by a test.
pub(crate) struct Configuration<'a> {
    /// Directives outside of `http`.
    pub(crate) main: &'a str,
    /// Directives in `http`, outside the default server.
    pub(crate) http: &'a str,
    /// Directives in the default server.
    pub(crate) server: &'a str,
    pub(crate) workers: usize,
    pub(crate) log_level: &'a str,
}

impl Default for Configuration<'_> {
    fn default() -> Self {
        Self { main: "", http: "", server: "", workers: 1, log_level: "info" }
    }
}

impl Nginx {
    /// Starts nginx with the provider, and `served.pem` and `served.key` of the site. It responds with the path of
    /// the request.
    pub(crate) fn start(site: &Site, configuration: &Configuration<'_>) -> Self {
        Self::start_as(site, site.with_provider("/usr/sbin/nginx"), configuration)
    }

    pub(super) fn start_as(site: &Site, mut nginx: Command, configuration: &Configuration<'_>) -> Self {
        let (port, status_port) = (free_port(), free_port());
        let folder = site.path_text("");
        let Configuration { main, http, server, workers, log_level } = configuration;
        let text = format!(
            "load_module {};\n{main}\ndaemon off; user root; pid {folder}nginx.pid; error_log stderr {log_level};\n\
             worker_processes {workers}; env OPENSSL_CONF; env QUADRILLE_CPU;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ client_body_temp_path {folder}b; proxy_temp_path {folder}p; fastcgi_temp_path {folder}f;\n\
             uwsgi_temp_path {folder}u; scgi_temp_path {folder}s; default_type text/plain;\n\
             log_format took '$request_uri batch=$quadrille_batch wait=$quadrille_wait_us'; access_log off;\n\
             ssl_certificate {folder}served.pem; ssl_certificate_key {folder}served.key;\n\
             ssl_ciphers ALL; ssl_protocols TLSv1.2 TLSv1.3; {http}\n\
             server {{ listen 127.0.0.1:{status_port}; location / {{ quadrille_status; }} }}\n\
             server {{ listen 127.0.0.1:{port} ssl; server_name localhost; {server}\n\
             location / {{ return 200 $request_uri; }} }} }}\n",
            nginx_module().display(),
        );
        let file = site.write("nginx.conf", &text);
        let mut running = Running::start(site, "nginx", nginx.arg("-c").arg(file).arg("-p").arg(folder));
        until("nginx listens", || listens(port) || !running.is_alive());
        assert!(running.is_alive(), "{}", running.log());
        Self { running, port, status_port }
    }

    pub(crate) fn client(&self, site: &Site, version: &str) -> Client {
        Client::new(site, "served", self.port, version)
    }

    /// Returns the worker processes.
    pub(super) fn workers(&self) -> Vec<u32> {
        self.running.family().split_off(1)
    }

    /// Returns one number of the status page.
    pub(crate) fn status(&self, name: &str) -> f64 {
        let page = super::client::get_plain(self.status_port).expect("the status");
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{name}: {page}"))
    }

    /// Checks that the log contains no errors except `expected`.
    pub(crate) fn assert_log_is_clean(&self, expected: &str) {
        let log = self.running.log();
        let bad =
            ["[alert]", "[emerg]", "[crit]", "open socket", "on closed connection", "stale global SSL error"];
        let found =
            log.lines().find(|line| bad.iter().any(|word| line.contains(word)) && !line.contains(expected));
        assert_eq!(found, None);
    }
}

/// Returns a site configured as by `quadrille provider install --async`, with an RSA certificate.
pub(crate) fn rsa_site() -> Site {
    let site = Site::with_key_exchange();
    site.certificate("served", "rsa:2048");
    site
}

/// Returns the number of open descriptors of a process.
pub(super) fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Returns the memory of a process in KiB.
pub(super) fn resident_kib(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

pub(super) fn kill(pid: u32, signal: i32) {
    let pid = libc::pid_t::try_from(pid).expect("a process id");
    // SAFETY: it is a child of this test's child.
    unsafe { libc::kill(pid, signal) };
}
