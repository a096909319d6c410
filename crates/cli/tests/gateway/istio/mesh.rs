//! Istiod without Kubernetes, and pilot-agent, which starts the gateway in place of Envoy.

use crate::support::{Certificates, PATIENCE, logs, ports, succeed};
use std::{
    fs::File,
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A mesh of one gateway; its processes end when it is dropped.
pub(super) struct Mesh {
    /// Dropped before istiod, because it ends the gateway.
    agent: Option<Running>,
    istiod: Option<Running>,
    directory: TempDir,
    tools: &'static Path,
    /// Ports of istiod: plain gRPC, HTTP, gRPC over TLS, and monitoring.
    ports: [u16; 4],
    /// Ports of the gateway's admin address, and of the agent's bootstrap for metrics and probes.
    pub(super) admin: u16,
    pub(super) metrics: u16,
    pub(super) probes: u16,
    mesh: String,
    /// Istio's environment variables.
    environment: Vec<(&'static str, &'static str)>,
}

/// A process that is killed when it is dropped, and its log.
struct Running(Child, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        // The agent forwards SIGTERM to its proxy, and exits after it.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
        if std::thread::panicking() {
            logs::keep("istio", &self.1);
        }
    }
}

/// Identity of the workload whose proxy the agent starts.
pub(super) struct Workload<'a> {
    /// `router` or `sidecar`.
    pub(super) role: &'a str,
    pub(super) namespace: &'a str,
    pub(super) account: &'a str,
    pub(super) app: &'a str,
    pub(super) pod: &'a str,
    pub(super) address: &'a str,
    /// Unix group of the process.
    pub(super) group: Option<u32>,
}

const INGRESS: Workload<'static> = Workload {
    role: "router",
    namespace: "istio-system",
    account: "ingressgateway",
    app: "ingressgateway",
    pod: "gateway-1",
    address: "192.0.2.2",
    group: None,
};

/// Identity of the gateway.
pub(super) const GATEWAY: &str = "spiffe://cluster.local/ns/istio-system/sa/ingressgateway";

impl Mesh {
    /// Starts a mesh with this mesh configuration and these Istio objects, in files of these names, and a gateway. If
    /// Istio has not been built, prints a note and returns `None`.
    pub(super) fn start(mesh: &str, configuration: &[(&str, &str)]) -> Option<Self> {
        Self::switched(&[], mesh, configuration)
    }

    /// Starts the mesh with these environment variables for istiod.
    pub(super) fn switched(
        environment: &[(&'static str, &'static str)],
        mesh: &str,
        configuration: &[(&str, &str)],
    ) -> Option<Self> {
        let tools = tools()?;
        let mut found = Self {
            agent: None,
            istiod: None,
            directory: tempfile::tempdir().expect("a temporary directory"),
            tools,
            ports: std::array::from_fn(|_| ports::free()),
            admin: ports::free(),
            metrics: ports::free(),
            probes: ports::free(),
            mesh: mesh.to_owned(),
            environment: environment.to_vec(),
        };
        for directory in ["configuration", "objects", "cacerts", "identity", "agent"] {
            std::fs::create_dir(found.path(directory)).expect("a directory");
        }
        std::fs::write(found.path("mesh.yaml"), mesh).expect("writing");
        for (name, text) in configuration {
            found.configure(name, text);
        }
        found.make_identities();
        found.start_istiod();
        Some(found)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the CA of the mesh.
    pub(super) fn root(&self) -> PathBuf {
        self.path("cacerts/root-cert.pem")
    }

    /// Writes an Istio object atomically.
    pub(super) fn configure(&self, name: &str, text: &str) {
        self.replace(&format!("configuration/{name}.yaml"), text);
    }

    /// Writes a Secret with a new RSA key and a certificate for this host.
    pub(super) fn secret(&self, name: &str, host: &str) {
        self.secret_of(&Certificates::new(), name, &[host]);
    }

    /// Writes the Secret with a certificate of this CA.
    pub(super) fn secret_of(&self, certificates: &Certificates, name: &str, hosts: &[&str]) {
        let pair = certificates.rsa(2048, hosts);
        let base64 = |path: &Path| succeed(Command::new("base64").arg("--wrap=0").arg(path));
        // In block style: Kubernetes' reader treats a document that starts with a brace as JSON.
        let text = format!(
            "apiVersion: v1
kind: Secret
metadata: {{ name: {name}, namespace: istio-system }}
type: kubernetes.io/tls
data: {{ tls.crt: {}, tls.key: {} }}
",
            base64(&pair.chain).trim(),
            base64(&pair.key).trim()
        );
        self.replace(&format!("objects/{name}.yaml"), &text);
        let ca = std::fs::read(certificates.ca()).expect("the CA");
        std::fs::write(self.path(&format!("{name}-ca.pem")), ca).expect("writing");
    }

    /// Writes a Kubernetes object atomically.
    pub(super) fn object(&self, name: &str, text: &str) {
        self.replace(&format!("objects/{name}.yaml"), text);
    }

    /// Writes a file atomically: readers never see a partial file.
    fn replace(&self, name: &str, text: &str) {
        let part = self.path("part");
        std::fs::write(&part, text).expect("writing");
        std::fs::rename(part, self.path(name)).expect("replacing");
    }

    /// Creates the mesh's CA, and the gateway's client certificate for istiod.
    fn make_identities(&self) {
        let ca = self.path("cacerts/ca-cert.pem");
        succeed(
            Command::new("openssl")
                .args([
                    "req",
                    "-x509",
                    "-newkey",
                    "rsa:2048",
                    "-nodes",
                    "-days",
                    "30",
                    "-subj",
                    "/O=Istio/CN=CA",
                ])
                .args(["-addext", "basicConstraints=critical,CA:TRUE"])
                .args(["-addext", "keyUsage=critical,digitalSignature,keyCertSign,cRLSign", "-keyout"])
                .arg(self.path("cacerts/ca-key.pem"))
                .arg("-out")
                .arg(&ca),
        );
        for name in ["cacerts/root-cert.pem", "cacerts/cert-chain.pem", "identity/root-cert.pem"] {
            std::fs::copy(&ca, self.path(name)).expect("copying");
        }
        self.identity("identity", GATEWAY);
    }

    /// Writes `cert-chain.pem` and `key.pem` of a workload of the mesh to this directory.
    pub(super) fn identity(&self, directory: &str, uri: &str) {
        std::fs::create_dir_all(self.path(directory)).expect("a directory");
        succeed(
            Command::new("openssl")
                .args([
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/O=mesh", "-CA",
                ])
                .arg(self.path("cacerts/ca-cert.pem"))
                .arg("-CAkey")
                .arg(self.path("cacerts/ca-key.pem"))
                .args(["-addext", "basicConstraints=critical,CA:FALSE"])
                .args(["-addext", "keyUsage=critical,digitalSignature,keyEncipherment"])
                .args(["-addext", "extendedKeyUsage=serverAuth,clientAuth", "-addext"])
                .arg(format!("subjectAltName=critical,URI:{uri}"))
                .arg("-keyout")
                .arg(self.path(&format!("{directory}/key.pem")))
                .arg("-out")
                .arg(self.path(&format!("{directory}/cert-chain.pem"))),
        );
    }

    pub(super) fn start_istiod(&mut self) {
        let [plain, http, secure, monitoring] = self.ports;
        let address = |port: u16| format!("127.0.0.1:{port}");
        let mut command = Command::new(self.tools.join("istiod"));
        command
            .args(["discovery"])
            .arg(self.path("objects"))
            .arg("--configDir")
            .arg(self.path("configuration"))
            .arg("--meshConfig")
            .arg(self.path("mesh.yaml"))
            .args([
                "--networksConfig",
                "/nonexistent",
                "--clusterID",
                "Kubernetes",
                "--namespace",
                "istio-system",
            ])
            .args(["--domain", "cluster.local", "--httpsAddr", "", "--ctrlz_port", "0"])
            .args(["--grpcAddr", &address(plain), "--httpAddr", &address(http)])
            .args(["--secureGRPCAddr", &address(secure), "--monitoringAddr", &address(monitoring)])
            .args(["--log_output_level", "default:info,ads:debug"])
            .env("POD_NAME", "istiod")
            .env("POD_NAMESPACE", "istio-system")
            .env("ROOT_CA_DIR", self.path("cacerts"))
            .env("ISTIOD_CUSTOM_HOST", "localhost")
            .envs(self.environment.iter().copied());
        self.istiod = Some(self.run(command, "istiod.log"));
        let url = format!("http://127.0.0.1:{http}/ready");
        self.await_or_show("istiod.log", || is_answered(&url));
    }

    /// Starts the agent, which starts the gateway with Envoy's arguments.
    pub(super) fn start_gateway(&mut self) {
        self.start_proxy(Path::new(env!("CARGO_BIN_EXE_quadrille")));
    }

    /// Starts the agent with another program, after the previous one has ended.
    pub(super) fn start_proxy(&mut self, program: &Path) {
        self.start_agent(program, &INGRESS);
    }

    /// Starts the agent with this workload's identity and this program in place of Envoy.
    pub(super) fn start_agent(&mut self, program: &Path, workload: &Workload<'_>) {
        drop(self.agent.take());
        let [_, http, secure, _] = self.ports;
        let Workload { role, namespace, account, app, pod, address, group } = *workload;
        // Istio's template, with the listeners for probes and metrics on loopback.
        let template =
            std::fs::read_to_string(self.tools.join("envoy_bootstrap.json")).expect("the template");
        let template = template.replace("{{ .wildcard }}", "{{ .localhost }}");
        std::fs::write(self.path("template.json"), template).expect("writing");
        // The agent opens its status port on every address: with a port in use it continues without.
        let proxy = format!(
            "{{ binaryPath: {}, configPath: ./etc/istio/proxy, discoveryAddress: 'localhost:{secure}', statusPort: \
             {http}, proxyAdminPort: {}, terminationDrainDuration: 1s, concurrency: 2 }}",
            program.display(),
            self.admin
        );
        let root = self.root();
        let mut command = Command::new(self.tools.join("pilot-agent"));
        command
            .current_dir(self.path("agent"))
            .args([
                "proxy",
                role,
                "--domain",
                &format!("{namespace}.svc.cluster.local"),
                "--proxyLogLevel",
                "info",
            ])
            .arg("--meshConfig")
            .arg(self.path("mesh.yaml"))
            .arg("--templateFile")
            .arg(self.path("template.json"))
            .env("PROXY_CONFIG", proxy)
            .env("PROV_CERT", self.path("identity"))
            .env("XDS_ROOT_CA", &root)
            .env("CA_ROOT_CA", &root)
            .env("CA_ADDR", format!("localhost:{secure}"))
            .env("PILOT_CERT_PROVIDER", "istiod")
            .env("INSTANCE_IP", address)
            .env("POD_NAME", pod)
            .env("POD_NAMESPACE", namespace)
            .env("SERVICE_ACCOUNT", account)
            .env("ISTIO_META_CLUSTER_ID", "Kubernetes")
            .env("ISTIO_META_INTERCEPTION_MODE", "REDIRECT")
            .env("ISTIO_META_WORKLOAD_NAME", app)
            .env("ISTIO_METAJSON_LABELS", format!(r#"{{"istio":"{app}","app":"{app}"}}"#))
            .env("ENVOY_STATUS_PORT", self.probes.to_string())
            .env("ENVOY_PROMETHEUS_PORT", self.metrics.to_string());
        if let Some(group) = group {
            command.gid(group);
        }
        self.agent = Some(self.run(command, "agent.log"));
        let url = format!("http://127.0.0.1:{}/ready", self.admin);
        self.await_or_show("agent.log", || is_answered(&url));
    }

    fn run(&self, mut command: Command, log_name: &str) -> Running {
        let log = || File::options().create(true).append(true).open(self.path(log_name)).expect("a log");
        let child = command.stdin(Stdio::null()).stdout(log()).stderr(log()).spawn().expect("starting");
        Running(child, self.path(log_name))
    }

    /// Kills istiod.
    pub(super) fn stop_istiod(&mut self) {
        let mut istiod = self.istiod.take().expect("istiod");
        istiod.0.kill().expect("killing istiod");
    }

    /// Returns the id of the process started by the agent.
    pub(super) fn proxy(&self) -> Option<u32> {
        let agent = self.agent.as_ref()?.0.id();
        // A child belongs to the thread that started it.
        let threads = std::fs::read_dir(format!("/proc/{agent}/task")).ok()?.flatten();
        let children =
            threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        children.collect::<String>().split_whitespace().find_map(|child| child.parse().ok())
    }

    pub(super) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns the configuration errors reported to istiod.
    pub(super) fn refused(&self) -> Vec<String> {
        let log = self.log("istiod.log");
        log.lines().filter(|line| line.contains("ACK ERROR")).map(str::to_owned).collect()
    }

    /// Returns a page of the gateway's admin address.
    pub(super) fn admin_page(&self, path: &str) -> String {
        let url = format!("http://127.0.0.1:{}{path}", self.admin);
        succeed(Command::new("curl").args(["-sS", "--noproxy", "*", "--globoff", "--max-time", "300", &url]))
    }

    /// Waits for this response to an HTTPS request to a host on this port; prints both logs on failure.
    pub(super) fn await_answer(&self, secret: &str, host: &str, port: u16, path: &str, expected: &str) {
        let mut seen = String::new();
        self.await_or_show("agent.log", || {
            let answer = self.get(secret, host, port, path);
            if answer != seen {
                println!("{host}{path} on port {port}: {answer:?}, and {expected:?} is expected");
            }
            seen = answer;
            seen == expected
        });
    }

    /// Returns the body and status of an HTTPS request to a host on this port.
    pub(super) fn get(&self, secret: &str, host: &str, port: u16, path: &str) -> String {
        self.ask(secret, host, port, path, &[])
    }

    /// Sends the request with further arguments for curl.
    pub(super) fn ask(&self, secret: &str, host: &str, port: u16, path: &str, arguments: &[&str]) -> String {
        let output = Command::new("curl")
            .args(arguments)
            .args(["-s", "--max-time", "300", "--noproxy", "*", "--write-out", " %{http_code}", "--cacert"])
            .arg(self.path(&format!("{secret}-ca.pem")))
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1"), &format!("https://{host}:{port}{path}")])
            .output()
            .expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(super) fn await_or_show(&self, log: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done() {
            let in_time = Instant::now() < end;
            assert!(
                in_time,
                "{}\n{}\n{}\nrefused: {:#?}",
                self.mesh,
                self.log("istiod.log"),
                self.log(log),
                self.refused()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_answered(url: &str) -> bool {
    let mut command = Command::new("curl");
    command.args(["-s", "--fail", "--noproxy", "*", "--max-time", "60", "--output", "/dev/null", url]);
    command.status().is_ok_and(|status| status.success())
}

/// Returns the directory of Istio's programs; prints a note once if they are missing.
fn tools() -> Option<&'static Path> {
    static TOOLS: OnceLock<Option<PathBuf>> = OnceLock::new();
    TOOLS
        .get_or_init(|| {
            // Bypasses the output capture of tests, because a skipped test passes.
            let skipped = |why: &str| _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
            let found =
                Command::new("../../scripts/istio/build.sh").arg("--cached").output().expect("build.sh");
            let path = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
            if path.is_empty() {
                skipped("Istio is not built: make test-istio builds it (needs Go 1.26)");
                return None;
            }
            Some(path.into())
        })
        .as_deref()
}
