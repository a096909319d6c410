//! This project's gateway, configured by flags.

use std::ffi::OsString;

use super::setup::Setup;
use crate::scenario::Resumption;

/// Returns the arguments: one event loop, one thread for private-key operations, an end without delay, otherwise
/// defaults.
pub(super) fn arguments(setup: &Setup<'_>, mode: &str, key: &[OsString]) -> Vec<OsString> {
    let version = setup.version.number();
    let mut arguments: Vec<OsString> =
        vec!["serve".into(), "--listen".into(), setup.address.to_string().into()];
    arguments.extend(["--cert".into(), setup.certificate.chain.clone().into()]);
    match key {
        [] => arguments.extend(["--key".into(), setup.certificate.key.clone().into()]),
        elsewhere => arguments.extend_from_slice(elsewhere),
    }
    let flags =
        ["--tls-min", version, "--tls-max", version, "--mode", mode, "--threads", "1", "--lame-duck", "0"];
    arguments.extend(flags.map(OsString::from));
    arguments.push("--admin".into());
    if setup.http3 {
        arguments.extend([setup.beside.to_string(), "--http3".to_owned()].map(OsString::from));
    } else {
        arguments.push("off".into());
    }
    match setup.upstream {
        None => arguments.extend(["--respond", "ok"].map(OsString::from)),
        Some(upstream) => arguments.extend(["--upstream".into(), upstream.to_string().into()]),
    }
    if setup.resumption == Resumption::Off {
        let off = ["--session-tickets", "off", "--session-cache", "off"];
        arguments.extend(off.map(OsString::from));
    }
    arguments
}
