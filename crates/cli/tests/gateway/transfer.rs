//! A large body, downloaded and uploaded, compared by checksum: 128 MiB, or `QUADRILLE_TRANSFER_MIB`.

use crate::support::{Certificates, Gateway, Nginx, curl, succeed};
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Starts nginx with an incompressible body without repetitions, and a gateway in front of it.
fn before(name: &str) -> (Nginx, Certificates, Gateway) {
    let nginx = Nginx::new("dav_methods PUT;");
    random(&nginx.file(name));
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--upstream", &nginx.address().to_string()]);
    (nginx, certificates, gateway)
}

/// An AES key stream: effectively random, and faster.
fn random(file: &Path) {
    let mebibytes = std::env::var("QUADRILLE_TRANSFER_MIB").unwrap_or_else(|_| "128".into());
    let zero = ["if=/dev/zero", "bs=1M", &format!("count={mebibytes}"), "status=none"];
    let mut zeros = Command::new("dd").args(zero).stdout(Stdio::piped()).spawn().expect("dd");
    let key = ["enc", "-aes-128-ctr", "-nosalt", "-K", "0123456789abcdef0123456789abcdef", "-iv", "00"];
    succeed(
        Command::new("openssl").args(key).arg("-out").arg(file).stdin(zeros.stdout.take().expect("a pipe")),
    );
    assert!(zeros.wait().expect("dd").success());
}

fn checksum(file: &Path) -> String {
    let line = succeed(Command::new("sha256sum").arg(file));
    line.split_whitespace().next().expect("a checksum").to_owned()
}

#[test]
fn a_large_body_comes_down_and_goes_up_unchanged() {
    let (nginx, certificates, gateway) = before("large");
    let expected = checksum(&nginx.file("large"));
    let copy = certificates.path("copy");
    let copy_path = copy.to_str().expect("a UTF-8 path");
    let patient = ["--max-time", "900"];
    for client in ["--http1.1", "--http2"] {
        let down = [&[client, "--output", copy_path], &patient[..]].concat();
        curl(&gateway, &certificates, &down, "/large");
        assert_eq!(checksum(&copy), expected, "down, {client}");
        let up = [&[client, "--upload-file", copy_path], &patient[..]].concat();
        curl(&gateway, &certificates, &up, "/uploaded");
        assert_eq!(checksum(&nginx.file("uploaded")), expected, "up, {client}");
        std::fs::remove_file(nginx.file("uploaded")).expect("removing the upload");
    }
}
