//! `quadrille ctl`: actions by the admin socket and by the admin address.

use crate::support::{
    Certificates, Configuration, Gateway, curl, document, eventually, listener, output, quadrille, succeed,
};
use std::{
    fs,
    io::Write,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::UnixListener,
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

/// A gateway with an admin socket, and without an admin address unless `admin` sets one.
struct Controlled {
    certificates: Certificates,
    configuration: Configuration,
    socket: PathBuf,
    gateway: Gateway,
}

impl Controlled {
    fn new(admin: &str) -> Self {
        let certificates = Certificates::new();
        let socket = certificates.path("admin.sock");
        // Other users reach the socket, and its permissions decide.
        let folder = socket.parent().expect("a folder");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("permissions");
        let text = text(&certificates, &admin.replace("SOCKET", socket.to_str().expect("UTF-8")));
        let configuration = Configuration::new(&text);
        let gateway = Gateway::with_config(&configuration.path(), 1);
        Self { certificates, configuration, socket, gateway }
    }

    /// Runs `quadrille ctl`; returns whether it succeeded, and its output.
    fn ctl(&self, arguments: &[&str]) -> (bool, String) {
        output(quadrille("ctl").arg("--socket").arg(&self.socket).args(arguments))
    }

    fn done(&self, arguments: &[&str]) -> String {
        let (done, text) = self.ctl(arguments);
        assert!(done, "{arguments:?}: {text}");
        text
    }

    fn level(&self) -> String {
        self.done(&["log-level"]).trim().to_owned()
    }
}

fn text(certificates: &Certificates, admin: &str) -> String {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = "app: {servers: ['127.0.0.1:1', '127.0.0.1:2']}";
    let document =
        document(&[listener(&pair, "routes: [{path: /app, upstream: app}, {respond: ok}]")], upstreams);
    assert!(document.contains("admin: 127.0.0.1:0"), "{document}");
    document.replace("admin: 127.0.0.1:0", &format!("admin: {admin}"))
}

/// Returns the number of lines of the log that have the level debug.
fn debug_lines(gateway: &Gateway) -> usize {
    gateway.log().lines().filter(|line| line.contains(" DEBUG ")).count()
}

#[test]
fn the_socket_is_for_its_user_and_has_all_commands() {
    let site = Controlled::new("{address: off, socket: SOCKET}");
    let metadata = fs::symlink_metadata(&site.socket).expect("the socket");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);

    let status = site.done(&["status"]);
    for part in ["(gateway), up ", ", ready", "upstream app", "127.0.0.1:1  in service", "localhost"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let page: serde_json::Value =
        serde_json::from_str(&site.done(&["status", "--json"])).expect("the page /status");
    assert_eq!(page["role"], "gateway");
    assert!(site.done(&["certificates"]).contains("ecdsa-p256"));
    let list: serde_json::Value =
        serde_json::from_str(&site.done(&["certificates", "--json"])).expect("a list");
    assert_eq!(list[0]["names"][0], "localhost");

    assert_eq!(site.done(&["drain", "app", "127.0.0.1:1"]), "draining\n");
    assert!(site.done(&["status"]).contains("127.0.0.1:1  draining"));
    assert_eq!(site.done(&["undrain", "app", "127.0.0.1:1"]), "in service\n");
    let (found, text) = site.ctl(&["drain", "app", "127.0.0.1:9"]);
    assert!(!found && text.contains("no such upstream or server"), "{text}");
}

#[test]
fn the_log_level_changes_until_a_reload_or_a_reset() {
    let site = Controlled::new("{address: off, socket: SOCKET}");
    assert_eq!(site.level(), "info");
    let request = || curl(&site.gateway, &site.certificates, &["--output", "/dev/null"], "/");
    request();
    assert_eq!(debug_lines(&site.gateway), 0, "{}", site.gateway.log());
    assert_eq!(site.done(&["log-level", "debug"]), "debug\n");
    assert_eq!(site.level(), "debug (configured: info)");
    site.gateway.signal("USR1");
    eventually("no line of the level debug", || debug_lines(&site.gateway) > 0);

    let (done, problem) = site.ctl(&["log-level", "dbug"]);
    assert!(!done && problem.contains("`dbug` is not a level; write error, warn, info"), "{problem}");
    assert_eq!(site.level(), "debug (configured: info)", "a mistake changes nothing");
    assert_eq!(site.done(&["log-level", "--reset"]), "info\n");
    assert_eq!(site.level(), "info");

    site.done(&["log-level", "warn"]);
    assert_eq!(site.done(&["reload"]), "configuration reloaded\n");
    assert_eq!(site.level(), "info");
}

#[test]
fn a_reload_has_a_result() {
    let site = Controlled::new("{address: off, socket: SOCKET}");
    let right = fs::read_to_string(site.configuration.path()).expect("the configuration");
    assert_eq!(curl(&site.gateway, &site.certificates, &[], "/"), "ok");
    site.configuration.replace(&right.replace("respond: ok", "respond: new"));
    assert_eq!(site.done(&["reload"]), "configuration reloaded\n");
    assert_eq!(curl(&site.gateway, &site.certificates, &[], "/"), "new");
    site.configuration.replace(&right.replace("threads: 2", "threads: two"));
    let (done, problems) = site.ctl(&["reload"]);
    assert!(!done && problems.contains("threads: `two` is not"), "{problems}");
    assert!(site.done(&["status"]).contains("last reload: failed at "));
    assert_eq!(curl(&site.gateway, &site.certificates, &[], "/"), "new");
}

#[test]
fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
    let certificates = Certificates::new();
    let path = certificates.path("admin.sock");
    let admin = format!("{{address: off, socket: {}}}", path.display());
    let configuration = Configuration::new(&text(&certificates, &admin));
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists(), "the socket is stale");
    let mut gateway = Gateway::with_config(&configuration.path(), 1);
    let status = || output(quadrille("ctl").arg("--config").arg(configuration.path()).arg("status"));
    assert!(status().0, "{}", status().1);
    let (started, text) = output(quadrille("serve").arg(configuration.path()));
    assert!(
        !started && text.contains("admin.socket") && text.contains("another process listens on it"),
        "{text}"
    );
    assert!(status().0, "{}", status().1);
    gateway.signal("TERM");
    assert!(gateway.wait(crate::support::PATIENCE).is_some_and(|status| status.success()));
    assert!(!path.exists(), "the socket stays");
    let (reached, text) = status();
    assert!(
        !reached && text.contains("cannot reach the gateway at ") && text.contains("is the gateway running"),
        "{text}"
    );
    fs::write(&path, "precious").expect("a file");
    let (started, text) = output(quadrille("serve").arg(configuration.path()));
    assert!(!started && text.contains("or it is not a socket"), "{text}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "precious");
}

#[test]
fn the_socket_outlives_its_process() {
    let mut site = Controlled::new("{address: off, socket: SOCKET}");
    let first = site.gateway.pid();
    site.gateway.take_over();
    assert_ne!(site.gateway.pid(), first);
    assert!(site.gateway.wait(crate::support::PATIENCE).is_some_and(|status| status.success()));
    assert!(site.done(&["status"]).contains(", ready"));
    assert_eq!(site.done(&["reload"]), "configuration reloaded\n");
    // The address of the socket is another one for the next process.
    let other = site.certificates.path("other.sock");
    let text = fs::read_to_string(site.configuration.path()).expect("the configuration");
    let moved = text.replace(site.socket.to_str().expect("UTF-8"), other.to_str().expect("UTF-8"));
    site.configuration.replace(&moved);
    site.gateway.take_over();
    assert!(other.exists());
    eventually("the former socket stays", || !site.socket.exists());
    site.socket = other;
    assert!(site.done(&["status"]).contains(", ready"));
    site.gateway.signal("TERM");
    eventually("the socket stays after the last process", || !site.socket.exists());
}

/// Requests an action as another user; returns the status and the text.
fn as_user(user: u32, group: u32, socket: &Path) -> String {
    let mut command = Command::new("curl");
    command.args([
        "-sS",
        "--max-time",
        "180",
        "--request",
        "POST",
        "--write-out",
        " %{http_code}",
        "--unix-socket",
    ]);
    command.arg(socket).arg("http://localhost/log-level?level=info").current_dir("/").uid(user).gid(group);
    output(&mut command).1
}

#[test]
fn other_users_need_permission() {
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: only root can connect as other users");
        return;
    }
    let site = Controlled::new("{address: off, socket: {path: SOCKET, users: [65533]}}");
    assert_eq!(as_user(65_533, 65_533, &site.socket), "info\n 200");
    let refused = as_user(65_534, 65_534, &site.socket);
    assert!(
        refused.contains("the user with the id 65534 is not admitted") && refused.ends_with(" 403"),
        "{refused}"
    );
    assert_eq!(as_user(0, 0, &site.socket), "info\n 200");

    let site = Controlled::new("{address: off, socket: {path: SOCKET, group: '65532', mode: 666}}");
    assert_eq!(as_user(65_534, 65_532, &site.socket), "info\n 200");
    assert!(as_user(65_534, 65_534, &site.socket).ends_with(" 403"));
    let supplementary = succeed(
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--groups", "65531,65532", "curl", "-sS"])
            .args(["--request", "POST", "--unix-socket"])
            .arg(&site.socket)
            .arg("http://localhost/log-level?level=info")
            .current_dir("/"),
    );
    assert_eq!(supplementary, "info\n");

    let closed = Controlled::new("{address: off, socket: SOCKET}");
    let refused = as_user(65_534, 65_534, &closed.socket);
    assert!(refused.contains("curl: (7)"), "the file's mode refuses: {refused}");
}

#[test]
fn an_address_shows_and_acts_if_actions_are_on() {
    let site = Controlled::new("127.0.0.1:0");
    let address = site.gateway.admin("");
    let at = |address: &str, arguments: &[&str]| {
        output(quadrille("ctl").args(["--address", address]).args(arguments))
    };
    assert!(at(&address, &["status"]).1.contains("upstream app"));
    assert_eq!(at(&address, &["log-level"]), (true, "info\n".to_owned()));
    for action in [&["reload"][..], &["log-level", "debug"], &["drain", "app", "127.0.0.1:1"]] {
        let (done, text) = at(&address, action);
        assert!(!done && text.contains("actions are off; set `admin: {actions: on}`"), "{action:?}: {text}");
    }
    let open = Controlled::new("{address: 127.0.0.1:0, actions: on}");
    let address = open.gateway.admin("");
    assert_eq!(at(&address, &["log-level", "debug"]), (true, "debug\n".to_owned()));
    assert_eq!(at(&address, &["reload"]), (true, "configuration reloaded\n".to_owned()));
    assert!(!at("127.0.0.1:1", &["status"]).0);
}
