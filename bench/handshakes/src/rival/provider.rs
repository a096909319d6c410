//! This project's provider in the OpenSSL of a server. HAProxy, and nginx with our module, compute in their own
//! process, asynchronously; nginx without it blocks on each operation, and its workers share a key server.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::setup::{Beside, Provider, Setup};

/// nginx's workers run as another user when it is started by root.
const POLICY: &str = "clients:\n  - client: \"uid:*\"\n";

/// Returns the path of the file that nginx reads in place of the key.
pub(super) fn stand_in(setup: &Setup<'_>) -> PathBuf {
    setup.directory.join("stand-in.key")
}

/// Returns a key server with one compute thread and one event loop. Its work counts as the server's.
pub(super) fn key_server(provider: &Provider, setup: &Setup<'_>) -> Result<Beside> {
    let keys = setup.directory.join("keys");
    fs::create_dir_all(&keys)?;
    fs::copy(&setup.certificate.key, keys.join("site.key")).context("cannot copy the key")?;
    let policy = setup.directory.join("policy.yaml");
    fs::write(&policy, POLICY)?;
    let socket = setup.directory.join("keys.sock");
    make_stand_in(provider, &socket, setup)?;
    let mut arguments: Vec<OsString> = vec!["keyserver".into(), "--keys".into(), keys.into()];
    arguments.extend(["--unix".into(), socket.into(), "--policy".into(), policy.into()]);
    // The socket is in a temporary directory of this run.
    arguments.extend(["--unix-mode", "0666"].map(OsString::from));
    arguments.extend(["--admin", "off", "--threads", "1", "--compute-threads", "1"].map(OsString::from));
    Ok(Beside { program: provider.quadrille.clone(), arguments, counts: true })
}

fn make_stand_in(provider: &Provider, socket: &Path, setup: &Setup<'_>) -> Result<()> {
    let mut command = Command::new(&provider.quadrille);
    command.args(["provider", "key", "--server"]).arg(format!("unix:{}", socket.display()));
    command.arg("--cert").arg(&setup.certificate.chain).arg("--out").arg(stand_in(setup));
    let output =
        command.output().with_context(|| format!("{} does not run", provider.quadrille.display()))?;
    ensure!(
        output.status.success(),
        "quadrille provider key: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
