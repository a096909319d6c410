//! A gateway whose key is on a key server, both of this project: over TCP on loopback, with mutual TLS.

use std::{ffi::OsString, fs, path::PathBuf};

use anyhow::{Context, Result};

use super::setup::Setup;
use crate::{certificate::CertificateFiles, scenario::KeyKind};

/// Returns the key server's address, by a name in its certificate.
fn key_server(setup: &Setup<'_>) -> String {
    format!("localhost:{}", setup.beside.port())
}

/// Creates one self-signed certificate, with which both authenticate each other.
fn identity(setup: &Setup<'_>) -> Result<CertificateFiles> {
    let directory = directory(setup)?.join("identity");
    fs::create_dir_all(&directory)?;
    CertificateFiles::existing(KeyKind::P256, &directory)
        .map_or_else(|| CertificateFiles::make(KeyKind::P256, &directory), Ok)
}

/// Returns the arguments that replace `--key`.
pub(super) fn gateway_arguments(setup: &Setup<'_>) -> Result<Vec<OsString>> {
    let identity = identity(setup)?;
    Ok(vec![
        "--key-server".into(),
        key_server(setup).into(),
        "--key-server-ca".into(),
        identity.chain.clone().into(),
        "--key-server-cert".into(),
        identity.chain.into(),
        "--key-server-key".into(),
        identity.key.into(),
    ])
}

/// Returns the arguments of a key server with one compute thread and one event loop.
pub(super) fn key_server_arguments(setup: &Setup<'_>) -> Result<Vec<OsString>> {
    let identity = identity(setup)?;
    let keys = directory(setup)?.join("keys");
    fs::create_dir_all(&keys)?;
    fs::copy(&setup.certificate.key, keys.join("site.pem")).context("cannot copy the key")?;
    let listen = key_server(setup).replace("localhost", "127.0.0.1");
    let mut arguments: Vec<OsString> = vec!["keyserver".into(), "--keys".into(), keys.into()];
    arguments.extend(["--listen".into(), listen.into(), "--client-ca".into(), identity.chain.clone().into()]);
    arguments.extend(["--cert".into(), identity.chain.into(), "--key".into(), identity.key.into()]);
    arguments.extend(["--admin", "off", "--threads", "1", "--compute-threads", "1"].map(OsString::from));
    Ok(arguments)
}

fn directory(setup: &Setup<'_>) -> Result<PathBuf> {
    let directory = setup.directory.join(format!("keyless-{}", setup.address.port()));
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}
