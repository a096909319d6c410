//! An nginx upstream: Debian's binary, one process, its own directory, without root.

use super::{PATIENCE, logs, ports};
use std::{
    fmt::Write as _,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A running nginx with one server; killed when dropped.
pub struct Nginx {
    child: Option<Child>,
    directory: TempDir,
    port: u16,
}

impl Nginx {
    /// Starts a plain-text server with these directives; its root is an empty directory.
    pub fn new(directives: &str) -> Self {
        Self::listening("", directives)
    }

    /// Starts a server with options after `listen`, such as `ssl http2`.
    pub fn listening(options: &str, directives: &str) -> Self {
        Self::with(|nginx| nginx.configuration(options, directives))
    }

    /// Starts a server with this content of `http`, in which `PORT` stands for its port, and `DIRECTORY` for its own.
    pub fn of_http(http: &str) -> Self {
        Self::with(|nginx| nginx.around(http))
    }

    fn with(configuration: impl FnOnce(&Self) -> String) -> Self {
        let mut nginx = Self {
            child: None,
            directory: tempfile::tempdir().expect("a temporary directory"),
            port: ports::free(),
        };
        std::fs::create_dir(nginx.path("www")).expect("the root");
        std::fs::write(nginx.path("nginx.conf"), configuration(&nginx)).expect("nginx.conf");
        nginx.start();
        nginx
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Returns the path of a file in the document root.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path("www").join(name)
    }

    /// Starts a stopped server at the same address, with the same files.
    pub fn start(&mut self) {
        let child = Command::new(binary())
            .arg("-p")
            .arg(self.directory.path())
            .arg("-c")
            .arg(self.path("nginx.conf"))
            .arg("-e")
            .arg(self.path("error.log"))
            .stderr(Stdio::null())
            .spawn()
            .expect("starting nginx");
        self.child = Some(child);
        self.wait_until_it_answers();
    }

    /// Kills the server; connections to its address are refused from now on.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn wait_until_it_answers(&mut self) {
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address()).is_err() {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().expect("waiting"));
            let log = || std::fs::read_to_string(self.path("error.log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < end, "nginx: {ended:?}\n{}", log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn configuration(&self, options: &str, directives: &str) -> String {
        self.around(&format!(
            "log_format counted '$connection_requests $ssl_session_reused'; sendfile on; client_max_body_size 0;
            keepalive_requests 1000000; keepalive_timeout 600s;
            types {{ text/html html; text/css css; text/javascript js; image/png png; text/plain txt; }}
            default_type application/octet-stream;
            server {{ listen 127.0.0.1:PORT {options}; root DIRECTORY/www; {directives} }}"
        ))
    }

    /// Returns the whole configuration with this content of `http`.
    fn around(&self, http: &str) -> String {
        let directory = self.directory.path().display().to_string();
        let mut temporary = String::new();
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            let _ = writeln!(temporary, "{kind}_temp_path {directory}/{kind};");
        }
        let http = http.replace("PORT", &self.port.to_string()).replace("DIRECTORY", &directory);
        format!(
            "daemon off; master_process off; pid {directory}/pid; error_log {directory}/error.log;
            events {{ worker_connections 1024; }}
            http {{ access_log off; {temporary} {http} }}"
        )
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
        if thread::panicking() {
            logs::keep("nginx-error", &self.path("error.log"));
        }
    }
}

fn binary() -> &'static Path {
    let known = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].map(Path::new);
    known.into_iter().find(|path| path.exists()).expect("nginx is missing; install the package nginx")
}
