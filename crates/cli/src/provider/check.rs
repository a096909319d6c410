//! `quadrille provider check`: tests the provider in a server's OpenSSL.

use super::{key_kind, server::Server, target::Target};
use boring::{pkey::PKey, rsa::Rsa};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Loads the module into the OpenSSL of a server, reads an RSA key there, signs with it, and checks that the provider
/// did it.
#[derive(clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    target: Target,
    /// Sign with this key: a PEM file, as the server would read it [default: a new one].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(&self) -> Result<(), String> {
        println!("{}", with(&self.target, &self.target.openssl_cnf(false)?, self.key.as_deref())?);
        Ok(())
    }
}

/// Runs the check, and returns its result in one sentence.
pub(super) fn with(target: &Target, openssl_cnf: &str, key: Option<&Path>) -> Result<String, String> {
    key.map_or(Ok(()), key_kind::check)?;
    let program = target.program()?;
    let cannot = |error: std::io::Error| format!("cannot make files for the check: {error}");
    let folder = tempfile::tempdir().map_err(cannot)?;
    let (configuration, new_key) = (folder.path().join("openssl.cnf"), folder.path().join("key.pem"));
    fs::write(&configuration, openssl_cnf).map_err(cannot)?;
    if key.is_none() {
        // A temporary key, deleted with the folder.
        let pem = Rsa::generate(2048).and_then(PKey::from_rsa).and_then(|key| key.private_key_to_pem_pkcs8());
        fs::write(&new_key, pem.map_err(|error| error.to_string())?).map_err(cannot)?;
    }
    let key = key.unwrap_or(&new_key);
    let mut command = match target.server {
        Server::Node => node(&program, key),
        _ => probe(&target.server.libcrypto(&program)?, &configuration, key)?,
    };
    let output = command.env("OPENSSL_CONF", &configuration).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(format!("{}: {said}", program.display()));
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: the check failed: {} {}", program.display(), said, why.trim()))
}

/// Returns the command of the probe, a separate process because this one has its own libcrypto.
fn probe(libcrypto: &Path, configuration: &Path, key: &Path) -> Result<Command, String> {
    let me = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(me);
    command.args(["provider", "probe"]).arg(libcrypto).arg(configuration).arg(key);
    Ok(command)
}

/// Returns the command of the check in Node, which contains its own OpenSSL. Node has no function that names a key's
/// provider, so the check reads the provider's error when it refuses to export the key.
fn node(program: &Path, key: &Path) -> Command {
    const SCRIPT: &str = r#"
        const { readFileSync } = require("fs"), crypto = require("crypto");
        const key = crypto.createPrivateKey(readFileSync(process.argv[1]));
        const message = Buffer.from("quadrille provider check");
        const signature = crypto.sign("sha256", message, key);
        const good = crypto.verify("sha256", message, crypto.createPublicKey(key), signature);
        let ours = false;
        try { key.export({ type: "pkcs8", format: "pem" }); } catch (error) { ours = /quadrille/.test(error.message); }
        if (!good || !ours) { console.log(good ? "the key is not in the provider" : "the signature is wrong"); process.exit(1); }
        console.log(`OpenSSL ${process.versions.openssl}, a signature of ${signature.length} bytes by the quadrille provider, verified`);
    "#;
    let mut command = Command::new(program);
    command.arg("-e").arg(SCRIPT).arg(key);
    command
}
