//! A certificate authority (pebble) with its DNS server, and a gateway that orders from it.

use crate::support::{Certificates, Gateway, eventually, logs, ports, quadrille, serve, succeed};
use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Time that a test waits for a certificate. If a slow machine misses one of the authority's time limits and the
/// order is rejected, it is retried after a minute, and then after four more.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// A running pebble; killed when dropped.
pub struct Pebble {
    directory: TempDir,
    certificates: Certificates,
    programs: PathBuf,
    port: u16,
    management: u16,
    dns: u16,
    dns_management: u16,
    /// Port on which it validates names by TLS-ALPN-01.
    pub tls_port: u16,
    /// Port on which it validates names by HTTP-01.
    pub http_port: u16,
    running: Vec<Child>,
}

/// Settings of pebble.
pub struct Behaviour {
    /// Validity of certificates, in seconds.
    pub life: u32,
    /// Percentage of requests with a valid nonce that are rejected at random, so that some orders fail.
    pub refused_nonces: u32,
    /// `ocspResponderURL`.
    pub ocsp: String,
    /// Key identifier and MAC key, in base64url, for external account binding.
    pub external_account: Option<(&'static str, &'static str)>,
    /// Name of a second profile, for six days. For an order without a profile, pebble chooses any of them.
    pub short_lived: Option<&'static str>,
    /// Maximum random delay before each validation, in seconds.
    pub waits: u32,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            life: 90 * 24 * 3600,
            refused_nonces: 0,
            ocsp: String::new(),
            external_account: None,
            short_lived: None,
            waits: 0,
        }
    }
}

impl Pebble {
    /// Starts pebble; returns `None`, and prints the reason, if it cannot be built.
    pub fn start(behaviour: &Behaviour) -> Option<Self> {
        let mut this = Self::prepare()?;
        this.configure(behaviour);
        this.run(behaviour);
        Some(this)
    }

    /// Prepares everything except the authority itself, which is down.
    pub fn prepare() -> Option<Self> {
        let installed =
            Command::new("bash").args(["../../scripts/install-tools.sh", "pebble"]).output().expect("bash");
        if !installed.status.success() {
            let why = String::from_utf8_lossy(&installed.stderr);
            let _ = writeln!(std::io::stderr(), "SKIPPED: pebble cannot be built: {why}");
            return None;
        }
        let programs = PathBuf::from(String::from_utf8_lossy(&installed.stdout).trim());
        let this = Self {
            directory: tempfile::tempdir().expect("a directory"),
            certificates: Certificates::new(),
            programs,
            port: ports::free(),
            management: ports::free(),
            dns: ports::free(),
            dns_management: ports::free(),
            tls_port: ports::free(),
            http_port: ports::free(),
            running: Vec::new(),
        };
        Some(this)
    }

    /// Writes its configuration.
    pub fn configure(&self, behaviour: &Behaviour) {
        let pair = self.certificates.ecdsa("P-256", &["localhost"]);
        let (chain, key) = (pair.chain.display(), pair.key.display());
        let Self { port, management, tls_port, http_port, .. } = self;
        let Behaviour { life, ocsp, external_account, short_lived, .. } = behaviour;
        let mut profiles =
            serde_json::json!({ "default": { "description": "for tests", "validityPeriod": life } });
        if let Some(name) = short_lived {
            profiles[*name] = serde_json::json!({ "description": "six days", "validityPeriod": 518_400 });
        }
        let (required, keys) = match external_account {
            Some((id, key)) => (true, serde_json::json!({ *id: key })),
            None => (false, serde_json::json!({})),
        };
        let text = format!(
            r#"{{ "pebble": {{
                "listenAddress": "127.0.0.1:{port}", "managementListenAddress": "127.0.0.1:{management}",
                "certificate": "{chain}", "privateKey": "{key}", "httpPort": {http_port}, "tlsPort": {tls_port},
                "ocspResponderURL": "{ocsp}", "externalAccountBindingRequired": {required},
                "externalAccountMACKeys": {keys},
                "retryAfter": {{ "authz": 1, "order": 1 }}, "keyAlgorithm": "ecdsa",
                "profiles": {profiles}
            }} }}"#
        );
        fs::write(self.path("pebble.json"), text).expect("writing");
    }

    /// Starts the authority and its DNS server, and waits until they respond.
    pub fn run(&mut self, behaviour: &Behaviour) {
        let dns = format!("127.0.0.1:{}", self.dns);
        let mut server = Command::new(self.programs.join("pebble-challtestsrv"));
        server.args([
            "-http01",
            "",
            "-https01",
            "",
            "-doh",
            "",
            "-tlsalpn01",
            "",
            "-defaultIPv6",
            "",
            "-dnsserver",
            &dns,
        ]);
        server.args(["-management", &format!("127.0.0.1:{}", self.dns_management)]);
        let mut authority = Command::new(self.programs.join("pebble"));
        authority.arg("-config").arg(self.path("pebble.json")).args(["-dnsserver", &dns]);
        match behaviour.waits {
            0 => authority.env("PEBBLE_VA_NOSLEEP", "1"),
            most => authority.env("PEBBLE_VA_SLEEPTIME", most.to_string()),
        };
        authority.env("PEBBLE_AUTHZREUSE", "0");
        authority.env("PEBBLE_WFE_NONCEREJECT", behaviour.refused_nonces.to_string());
        for command in [&mut server, &mut authority] {
            let log = fs::File::options().create(true).append(true).open(self.path("log")).expect("a file");
            command.stdout(log.try_clone().expect("a file")).stderr(log).stdin(Stdio::null());
            self.running.push(command.spawn().expect("starting pebble"));
        }
        for port in [self.port, self.management, self.dns_management] {
            eventually("pebble does not listen", || {
                self.check_that_it_runs();
                TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
        }
        eventually("the DNS server does not respond", || answers_queries(self.dns));
    }

    /// Fails if pebble has exited: another server on one of its ports would be mistaken for it.
    fn check_that_it_runs(&mut self) {
        let ended = self.running.iter_mut().find_map(|child| child.try_wait().expect("waiting"));
        assert!(ended.is_none(), "{ended:?}: {}", self.log());
    }

    pub fn stop(&mut self) {
        for mut child in self.running.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of the gateway's account and certificates.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// URL of its directory.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// CA of its HTTPS server's certificate.
    pub fn ca(&self) -> PathBuf {
        self.certificates.ca()
    }

    /// Root of the certificates that it issues.
    pub fn root(&self) -> PathBuf {
        let root = self.path("root.pem");
        fs::write(&root, self.management(&["--fail"], "/roots/0")).expect("writing");
        root
    }

    /// Returns the response of the management interface.
    pub fn management(&self, arguments: &[&str], path: &str) -> String {
        let url = format!("https://localhost:{}{path}", self.management);
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "300", "--cacert"]).arg(self.ca());
        succeed(curl.args(arguments).arg(url))
    }

    /// Returns pebble's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Returns the number of certificates issued.
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// Writes a command for `acme.dns_hook` that changes its DNS. If there is a file `dns-hook.block-ACTION`, the
    /// command removes it, writes the gateway's process id to `dns-hook.blocked`, and blocks until the test ends.
    pub fn dns_hook(&self) -> PathBuf {
        let hook = self.path("dns-hook");
        let url = format!("http://127.0.0.1:{}", self.dns_management);
        let text = format!(
            "#!/bin/sh\nset -e\necho \"$1 $2\" >> \"$0.calls\"\n\
             if rm \"$0.block-$1\" 2>/dev/null; then\n\
             echo $PPID > \"$0.blocked\"; while [ -e \"$0\" ]; do sleep 0.2; done; exit\nfi\ncase $1 in\n\
             present) exec curl -sS --fail -d \"{{\\\"host\\\":\\\"$2.\\\",\\\"value\\\":\\\"$3\\\"}}\" {url}/set-txt ;;\n\
             cleanup) exec curl -sS --fail -d \"{{\\\"host\\\":\\\"$2.\\\"}}\" {url}/clear-txt ;;\nesac\n"
        );
        fs::write(&hook, text).expect("writing");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("permissions");
        hook
    }

    /// Returns the `acme` section of a configuration.
    pub fn section(&self, more: &str) -> String {
        let [state, ca] = [self.state(), self.ca()].map(|path| path.display().to_string());
        format!(
            "acme: {{ email: ops@example.com, directory: \"{}\", ca_file: {ca}, state: {state}{more} }}\n",
            self.url()
        )
    }

    /// Writes a configuration with one ACME certificate, on the port of its validation.
    pub fn configuration(&self, order: &str, more: &str) -> PathBuf {
        let file = self.path("quadrille.yaml");
        let text = format!(
            "admin: 127.0.0.1:0\n{}listeners:\n  - address: 127.0.0.1:{}\n    certificates: [ {{ acme: {order} }} ]\n    \
             respond: hello\n{more}",
            self.section(""),
            self.tls_port,
        );
        fs::write(&file, text).expect("writing");
        file
    }

    /// Writes that configuration with these challenges and the [hook](Self::dns_hook); returns the hook and the
    /// configuration.
    pub fn configuration_with_hook(&self, order: &str, challenges: &str) -> [PathBuf; 2] {
        let (hook, file) = (self.dns_hook(), self.configuration(order, ""));
        let text = fs::read_to_string(&file).expect("the configuration");
        let acme = format!("acme: {{ challenges: [{challenges}], dns_hook: {}, email", hook.display());
        fs::write(&file, text.replace("acme: { email", &acme)).expect("writing");
        [hook, file]
    }

    /// Starts a gateway with that configuration.
    pub fn gateway(&self, order: &str) -> Gateway {
        Gateway::with_config(&self.configuration(order, ""), 1)
    }

    /// Runs `quadrille cert` for this configuration.
    pub fn cert(&self, arguments: &[&str]) -> String {
        succeed(quadrille("cert").args(arguments).arg("--config").arg(self.path("quadrille.yaml")))
    }

    /// Starts a gateway configured by flags only.
    pub fn gateway_with_flags(&self, domains: &[&str]) -> Gateway {
        let mut command = serve();
        command.args(["--listen", &format!("127.0.0.1:{}", self.tls_port), "--admin", "127.0.0.1:0"]);
        command.args(["--respond", "hello", "--acme", "ops@example.com", "--acme-directory", &self.url()]);
        command.arg("--acme-ca").arg(self.ca()).arg("--state").arg(self.state());
        domains.iter().for_each(|domain| _ = command.args(["--domain", domain]));
        Gateway::start(command, 1)
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            logs::keep("pebble", &self.path("log"));
        }
    }
}

/// Performs a handshake with this SNI; returns the leaf as printed by openssl, or the error.
pub fn shown(address: SocketAddr, ca: &Path, name: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("openssl");
    command.args([
        "s_client",
        "-verify_return_error",
        "-verify_hostname",
        name,
        "-servername",
        name,
        "-showcerts",
    ]);
    command
        .arg("-CAfile")
        .arg(ca)
        .args(["-connect", &address.to_string()])
        .args(arguments)
        .stdin(Stdio::null());
    let output = command.output().expect("openssl");
    let succeeded = output.status.success();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    // openssl prints `ok` for a missing session if the handshake failed because of the certificate.
    if succeeded
        && text.contains("Verify return code: 0 (ok)")
        && text.contains("-----BEGIN CERTIFICATE-----")
    {
        Ok(text)
    } else {
        Err(text)
    }
}

/// Waits until a client that trusts the authority receives a certificate for this name.
#[track_caller]
pub fn wait_for_certificate(gateway: &Gateway, ca: &Path, name: &str, arguments: &[&str]) -> String {
    wait_for_certificate_at(gateway.address(0), ca, name, arguments, || gateway.log())
}

/// Waits for the certificate at this address; `logs` returns the logs for the failure message.
#[track_caller]
pub fn wait_for_certificate_at(
    address: SocketAddr,
    ca: &Path,
    name: &str,
    arguments: &[&str],
    logs: impl Fn() -> String,
) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        match shown(address, ca, name, arguments) {
            Ok(text) => return text,
            Err(text) => assert!(Instant::now() < end, "{name}: {text}\n{}", logs()),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns whether a DNS server responds to a query over UDP.
fn answers_queries(port: u16) -> bool {
    // A query for the TXT records of `a.` (RFC 1035 section 4).
    let query = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 16, 0, 1];
    let ask = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        socket.connect((Ipv4Addr::LOCALHOST, port))?;
        socket.send(&query)?;
        socket.recv(&mut [0; 512])
    };
    ask().is_ok()
}

/// Returns the first certificate in a text.
pub fn leaf(text: &str) -> &str {
    let begin = text.find("-----BEGIN CERTIFICATE-----").expect("a certificate");
    let end = text[begin..].find("-----END CERTIFICATE-----").expect("its end");
    &text[begin..begin + end]
}

/// Returns substrings of the stored private keys, to search for in logs.
pub fn secrets(state: &Path) -> Vec<String> {
    let mut secrets = Vec::new();
    for entry in fs::read_dir(state).expect("the state").map(|entry| entry.expect("an entry").path()) {
        let text = fs::read_to_string(&entry).unwrap_or_default();
        if entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("account-")) {
            let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            secrets.push(json["key_pkcs8"].as_str().expect("a key")[60..100].to_owned());
        }
    }
    for entry in fs::read_dir(state.join("certificates")).expect("certificates") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("PEM");
        secrets.push(text.lines().nth(1).expect("a line of the key").to_owned());
    }
    secrets
}
