//! Files, certificates, and processes that end with the test.

use crate::logs;
pub(crate) use crate::ports::free as free_port;
use std::{
    fs,
    io::Read,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A folder with certificates, keys and an openssl.cnf that loads the module.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self { folder: tempfile::tempdir().expect("a folder") };
        // Servers' workers run as other users.
        set_mode(site.folder.path(), 0o755);
        let cnf = |section: &str, file: &str| {
            let text = format!(
                "{section} = init\n[init]\nproviders = list\n[list]\ndefault = first\nquadrille = second\n\
                 [first]\nactivate = 1\n[second]\nmodule = {}\nactivate = 1\npem-keys = {}\n",
                module().display(),
                site.folder.path().display()
            );
            site.write(file, &text);
        };
        cnf("openssl_conf", "openssl.cnf");
        cnf("nodejs_conf", "node.cnf");
        site
    }

    /// Creates a site whose servers prefer the provider's key exchange.
    pub(crate) fn with_key_exchange() -> Self {
        let site = Self::new();
        for file in ["openssl.cnf", "node.cnf"] {
            let text = site.read(file).replace("[init]\n", "[init]\nalg_section = algorithms\n");
            let properties = "default_properties = ?quadrille.key_exchange=yes";
            site.write(file, &format!("{text}[algorithms]\n{properties}\n"));
        }
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a path as text, for configurations.
    pub(crate) fn path_text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        set_mode(&path, 0o644);
        path
    }

    /// Creates NAME.key and NAME.pem; `kind` is the argument of `openssl req -newkey`.
    pub(crate) fn certificate(&self, name: &str, kind: &str) {
        let mut request = Command::new("openssl");
        request.args(["req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost"]);
        request.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-newkey"]);
        match kind.strip_prefix("ec:") {
            Some(curve) => request.args(["ec", "-pkeyopt", &format!("ec_paramgen_curve:{curve}")]),
            None => request.arg(kind),
        };
        request
            .arg("-keyout")
            .arg(self.path(&format!("{name}.key")))
            .arg("-out")
            .arg(self.path(&format!("{name}.pem")));
        finish(request.env_remove("OPENSSL_CONF"));
        set_mode(&self.path(&format!("{name}.key")), 0o644);
        let both = [format!("{name}.pem"), format!("{name}.key")].map(|file| self.read(&file)).concat();
        self.write(&format!("{name}.both"), &both);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns a command with the module in its OpenSSL.
    pub(crate) fn with_provider(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("OPENSSL_CONF", self.path("openssl.cnf")).current_dir(self.folder.path());
        command
    }

    /// Returns a command with Debian's unmodified OpenSSL.
    pub(crate) fn plain(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_remove("OPENSSL_CONF").current_dir(self.folder.path());
        command
    }

    /// Runs `openssl ARGUMENTS`, words separated by spaces, with the module.
    pub(crate) fn openssl(&self, arguments: &str) -> String {
        said(&finish(self.with_provider("openssl").args(arguments.split(' '))))
    }

    /// Runs `openssl ARGUMENTS` without the module.
    pub(crate) fn plain_openssl(&self, arguments: &str) -> String {
        said(&finish(self.plain("openssl").args(arguments.split(' '))))
    }

    /// Starts a key server with the keys of these certificates, for all users of this machine. It may decrypt.
    pub(crate) fn key_server(&self, name: &str, keys: &[&str]) -> Running {
        let directory = self.path(&format!("{name}.keys"));
        fs::create_dir_all(&directory).expect("a folder");
        for key in keys {
            fs::copy(self.path(&format!("{key}.key")), directory.join(format!("{key}.key"))).expect("a key");
        }
        let policy =
            self.write("policy.yaml", "clients:\n  - client: \"uid:*\"\n    operations: [sign, decrypt]\n");
        let socket = self.path(&format!("{name}.sock"));
        let mut command = Command::new(quadrille());
        command.arg("keyserver").arg("--keys").arg(directory).arg("--unix").arg(&socket);
        // Servers' workers run as other users.
        command.arg("--policy").arg(policy).args(["--unix-mode", "0666", "--admin", "off"]);
        let running = Running::start(self, name, &mut command);
        until("the key server listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        running
    }

    /// Returns the URI of a certificate's key in key servers.
    pub(crate) fn uri(&self, servers: &[&str], certificate: &str) -> String {
        let sockets: Vec<String> =
            servers.iter().map(|name| format!("unix:{}", self.path_text(&format!("{name}.sock")))).collect();
        format!("quadrille:{}?key={}", sockets.join(","), self.path_text(&format!("{certificate}.pem")))
    }

    /// Creates FILE: a PEM file that names the key, as written by `quadrille provider key`.
    pub(crate) fn stand_in(&self, file: &str, servers: &[&str], certificate: &str, more: &[&str]) {
        let mut command = Command::new(quadrille());
        command.args(["provider", "key", "--cert"]).arg(self.path(&format!("{certificate}.pem")));
        for server in servers {
            command.args(["--server", &format!("unix:{}", self.path_text(&format!("{server}.sock")))]);
        }
        finish(command.args(more).arg("--out").arg(self.path(file)));
        set_mode(&self.path(file), 0o644);
        let both = [format!("{certificate}.pem"), file.to_owned()].map(|file| self.read(&file)).concat();
        self.write(&format!("{file}.both"), &both);
    }
}

/// A child process of this test.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub(crate) fn start(site: &Site, name: &str, command: &mut Command) -> Self {
        let log = site.path(&format!("{name}.log"));
        let file = fs::File::create(&log).expect("a log");
        let other = file.try_clone().expect("a log");
        let child = command.stdin(Stdio::null()).stdout(file).stderr(other).spawn();
        Self { child: child.unwrap_or_else(|error| panic!("{name}: {error}")), log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the ids of this process and its descendants.
    pub(crate) fn family(&self) -> Vec<u32> {
        fn add(pid: u32, all: &mut Vec<u32>) {
            all.push(pid);
            children(pid).into_iter().for_each(|child| add(child, all));
        }
        let mut all = Vec::new();
        add(self.pid(), &mut all);
        all
    }

    pub(crate) fn signal(&self, signal: i32) {
        let pid = libc::pid_t::try_from(self.pid()).expect("a process id");
        // SAFETY: the process is this test's child, and has not been waited for.
        unsafe { libc::kill(pid, signal) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(libc::SIGTERM);
        let until = Instant::now() + Duration::from_secs(30);
        while self.is_alive() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            logs::keep(&self.log.file_stem().unwrap_or_default().to_string_lossy(), &self.log);
        }
    }
}

/// Returns the child processes of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// Runs a command that must succeed.
pub(crate) fn finish(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", said(&output));
    output
}

/// Runs a command that must fail, and returns its output.
pub(crate) fn fail(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(!output.status.success(), "{command:?} succeeded:\n{}", said(&output));
    said(&output)
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Time limit of a wait: long enough for a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Waits for a condition.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Performs a handshake with `openssl s_client` and these options; returns its output, or `None` if it failed.
pub(crate) fn handshake(site: &Site, port: u16, options: &str) -> Option<String> {
    let mut client = site.plain("timeout");
    client.args([
        "180",
        "openssl",
        "s_client",
        "-connect",
        &format!("127.0.0.1:{port}"),
        "-servername",
        "localhost",
    ]);
    client.args(options.split(' ').filter(|option| !option.is_empty()));
    let mut child =
        client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("openssl");
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("its output");
    child.wait().expect("its exit").success().then_some(said)
}

/// Returns the module that cargo has built for this test.
pub(crate) fn module() -> PathBuf {
    let file = target().join("libquadrille_provider.so");
    assert!(file.exists(), "{} is missing; run: cargo build --workspace", file.display());
    file
}

/// Returns nginx's module, as built by `make nginx-module`.
pub(crate) fn nginx_module() -> PathBuf {
    let file = target().parent().expect("a folder").join("nginx-module/ngx_quadrille_async_module.so");
    assert!(file.exists(), "{} is missing; run: make nginx-module", file.display());
    file
}

/// Returns the command that cargo has built.
pub(crate) fn quadrille() -> PathBuf {
    let file = target().join("quadrille");
    assert!(file.exists(), "{} is missing; run: cargo build --workspace", file.display());
    file
}

fn target() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    test.parent().and_then(Path::parent).expect("the target folder").to_owned()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}
