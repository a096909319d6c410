//! Runs the guide's pages exactly as written.

use crate::support::{free_port, module, nginx_module, quadrille, set_mode};
use std::{
    fs,
    io::Read,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

/// Runs the code blocks of a page as one script, in a new folder, with a free port in place of 8443. Background
/// processes end with the script; the last command, which needs the server, is retried until its output matches
/// `greeting`, an extended regular expression.
fn follow(page: &str, greeting: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o755);
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).expect("a folder");
    std::os::unix::fs::symlink(module(), programs.join("quadrille-provider.so")).expect("a link");
    std::os::unix::fs::symlink(nginx_module(), programs.join("ngx_quadrille_async_module.so"))
        .expect("a link");
    // The page's command finds the modules in its own folder.
    fs::hard_link(quadrille(), programs.join("quadrille"))
        .or_else(|_| fs::copy(quadrille(), programs.join("quadrille")).map(drop))
        .expect("the command");
    let blocks: Vec<&str> = page.split("```").filter_map(|block| block.strip_prefix("sh\n")).collect();
    let (last, before) = blocks.split_last().expect("commands");
    let port = free_port().to_string();
    let before = before.concat().replace("8443", &port);
    let last = last.trim().replace("8443", &port);
    let script = format!(
        "set -e\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n{before}\n\
         for i in $(seq 900); do said=$({last}) || true; echo \"$said\"; \
         if grep -qE '{greeting}' <<<\"$said\"; then exit 0; fi; sleep 0.2; done\nexit 1\n"
    );
    let path = format!("{}:/usr/sbin:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let mut shell = Command::new("timeout");
    shell.args(["--kill-after=5", "600", "bash", "-c", &script]).env("PATH", path).env_remove("OPENSSL_CONF");
    // SAFETY: umask is allowed between fork and exec.
    unsafe {
        shell.pre_exec(|| {
            libc::umask(0o022);
            Ok(())
        })
    };
    let log = folder.path().join("said.log");
    let file = fs::File::create(&log).expect("a log");
    let errors = file.try_clone().expect("a log");
    let status = shell.current_dir(folder.path()).stdin(Stdio::null()).stdout(file).stderr(errors).status();
    let mut said = String::new();
    fs::File::open(&log).expect("the log").read_to_string(&mut said).expect("the log");
    assert!(status.expect("bash").success(), "{said}");
    assert!(said.contains("by the quadrille provider"), "it was not verified: {said}");
}

#[test]
fn haproxy() {
    follow(include_str!("../../../../docs/guide/provider-haproxy.md"), "Hello from HAProxy");
}

#[test]
fn nginx() {
    follow(include_str!("../../../../docs/guide/provider-nginx.md"), "Hello from nginx");
}

#[test]
fn nginx_asynchronously() {
    let page = include_str!("../../../../docs/guide/provider-nginx-async.md");
    // An operation is counted a moment after its result was used.
    follow(page, "quadrille_operations_total [1-9]");
}

#[test]
fn apache() {
    follow(include_str!("../../../../docs/guide/provider-apache.md"), "Hello from Apache");
}

#[test]
fn node() {
    follow(include_str!("../../../../docs/guide/provider-node.md"), "Hello from Node");
}
