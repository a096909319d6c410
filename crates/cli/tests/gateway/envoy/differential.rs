//! The stock Envoy and Quadrille read the same bootstrap, and answer the same requests in the same way.

use super::upstream;
use crate::support::{Configuration, Gateway, eventually, output, ports, serve};
use std::{
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

const BOOTSTRAP: &str = include_str!("routes.yaml");

/// curl's arguments after the URL's path. A `!` in front: Quadrille answers by itself, and only the status is Envoy's.
const REQUESTS: &[(&str, &[&str])] = &[
    ("/", &["-H", "Host: exact.example"]),
    ("/", &["-H", "Host: EXACT.example"]),
    ("/", &["-H", "Host: exact.example:99"]),
    ("/", &["-H", "Host: a.example"]),
    ("/", &["-H", "Host: a.b.long.example"]),
    ("/", &["-H", "Host: prefix.test"]),
    ("!/", &["-H", "Host: none.test"]),
    ("/only", &["-H", "Host: none.test"]),
    ("/a?b=c", &["-H", "Host: tls.test"]),
    ("/exact", &[]),
    ("/exact?x=1", &[]),
    ("!/exact/", &[]),
    ("/CASE", &[]),
    ("/v12/x", &[]),
    ("!/v12/x/y", &[]),
    ("/segment", &[]),
    ("/segment/a", &[]),
    ("!/segmented", &[]),
    ("//segment//a/../b", &[]),
    ("/x/../exact", &[]),
    ("/header", &["-H", "x-a: a"]),
    ("/header", &["-H", "x-a: BCD"]),
    ("/header", &["-H", "x-n: 9"]),
    ("!/header", &["-H", "x-n: 10"]),
    ("/header", &["-H", "x-p: 1"]),
    ("/header", &["-X", "POST"]),
    ("!/header", &["-H", "x-z: z"]),
    ("!/header", &[]),
    ("/header", &["-H", "x-z: y"]),
    ("/query?q=1", &[]),
    ("/query?a=b&q=2", &[]),
    ("!/query?z", &[]),
    ("/redirect/https/a?b=c", &[]),
    ("/redirect/https", &["-H", "Host: h.test:81"]),
    ("/redirect/host/a?b=c", &[]),
    ("/redirect/path?b=c", &[]),
    ("/redirect/prefix/a?b=c", &[]),
    ("/redirect/regex/a/b?c=d", &[]),
    ("/gone", &[]),
    ("/up/prefix/a?b=c", &[]),
    ("/up/regex/abc/12?x=y", &[]),
    ("/up/host/z", &[]),
    (
        "/up/headers",
        &[
            "-H",
            "x-a: 1",
            "-H",
            "x-set: old",
            "-H",
            "x-absent: mine",
            "-H",
            "x-gone: g",
            "-H",
            "x-added: zero",
        ],
    ),
    ("/up/headers", &[]),
    ("/up/weighted", &[]),
    ("/up/retry", &[]),
    ("!/up/nowhere", &[]),
    ("!/up/refused", &[]),
    ("!/up/slow", &[]),
    ("!/nothing", &[]),
];

#[test]
fn both_answer_the_same_way() {
    let Some(program) = envoy() else {
        // Past the capture of what tests print, since a skipped test passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: no Envoy to compare with; set ENVOY=PATH");
        return;
    };
    let upstream = upstream::start().port();
    let bootstrap = |admin: u16, listen: u16| {
        let text = BOOTSTRAP.replace("port_value: ADMIN", &format!("port_value: {admin}"));
        let text = text.replace("port_value: LISTEN", &format!("port_value: {listen}"));
        Configuration::new(&text.replace("port_value: UPSTREAM", &format!("port_value: {upstream}")))
    };
    let file = bootstrap(0, 0);
    let mut command = serve();
    command.arg("--envoy-config").arg(file.path());
    let gateway = Gateway::start(command, 1);
    let port = ports::free();
    let theirs = bootstrap(ports::free(), port);
    let _envoy = Envoy::start(&program, &theirs);
    eventually("Envoy does not serve", || ask(port, "/exact", &[])[0].contains("200"));
    let mut differences = Vec::new();
    for (path, arguments) in REQUESTS {
        let (path, status_only) = path.strip_prefix('!').map_or((*path, false), |path| (path, true));
        let [mut ours, mut theirs] = [gateway.port(), port].map(|port| ask(port, path, arguments));
        if status_only {
            ours.truncate(1);
            theirs.truncate(1);
        }
        if ours != theirs {
            differences.push(format!("{path} {arguments:?}\n  Quadrille {ours:?}\n  Envoy     {theirs:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The status, the headers that routes decide about, in order, and the body.
fn ask(port: u16, path: &str, arguments: &[&str]) -> Vec<String> {
    const OWN: [&str; 7] = [
        "date",
        "server",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "x-envoy-upstream-service-time",
    ];
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "20", "--path-as-is", "--globoff", "--include"]).args(arguments);
    let (_, said) = output(command.arg(format!("http://127.0.0.1:{port}{path}")));
    let said = said.replace('\r', "").replace(&port.to_string(), "PORT");
    let (head, body) = said.split_once("\n\n").unwrap_or((&said, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("none");
    let kept = |line: &&str| {
        !OWN.contains(&line.split(':').next().unwrap_or_default().to_ascii_lowercase().as_str())
    };
    let mut headers: Vec<String> = lines.filter(kept).map(str::to_ascii_lowercase).collect();
    headers.sort();
    [vec![status.to_owned()], headers, vec![body.to_owned()]].concat()
}

/// The stock Envoy: the one that is named, or the one that the script finds or fetches.
fn envoy() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ENVOY").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/fetch-envoy.sh");
    let found = Command::new(script).stderr(Stdio::inherit()).output().expect("fetch-envoy.sh");
    let path = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
    (!path.is_empty()).then(|| path.into())
}

/// A running Envoy; killed when dropped.
struct Envoy(Child);

impl Envoy {
    fn start(program: &PathBuf, bootstrap: &Configuration) -> Self {
        let mut command = Command::new(program);
        command.arg("-c").arg(bootstrap.path()).args(["--concurrency", "1", "--use-dynamic-base-id"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("Envoy"))
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
