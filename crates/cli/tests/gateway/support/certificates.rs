//! Certificates of a throw-away CA, made with the openssl command, as users make them.

use super::succeed;
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// A directory with a CA and what it has signed.
pub struct Certificates {
    directory: TempDir,
}

/// A certificate chain and its key.
#[derive(Clone, Debug)]
pub struct Pair {
    pub chain: PathBuf,
    pub key: PathBuf,
}

impl Certificates {
    pub fn new() -> Self {
        let this = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        succeed(
            Command::new("openssl")
                .args([
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                    "-nodes",
                    "-days",
                    "30",
                ])
                .args(["-subj", "/CN=Test CA", "-addext", "basicConstraints=critical,CA:TRUE"])
                .args(["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"])
                .arg("-keyout")
                .arg(this.path("ca.key"))
                .arg("-out")
                .arg(this.ca()),
        );
        this
    }

    /// The CA's certificate.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// A file in the directory, which goes away with this.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// RSA with this many bits, for these DNS names.
    pub fn rsa(&self, bits: u32, names: &[&str]) -> Pair {
        self.issue(
            &format!("rsa{bits}"),
            &["-algorithm", "RSA", "-pkeyopt", &format!("rsa_keygen_bits:{bits}")],
            names,
        )
    }

    /// ECDSA on this curve (`P-256`, `P-384`, `P-521`), for these DNS names.
    pub fn ecdsa(&self, curve: &str, names: &[&str]) -> Pair {
        self.issue(curve, &["-algorithm", "EC", "-pkeyopt", &format!("ec_paramgen_curve:{curve}")], names)
    }

    /// Ed25519, for these DNS names.
    pub fn ed25519(&self, names: &[&str]) -> Pair {
        self.issue("ed25519", &["-algorithm", "ED25519"], names)
    }

    fn issue(&self, label: &str, genpkey: &[&str], names: &[&str]) -> Pair {
        let stem = format!("{label}-{}", names.join("-").replace('*', "wildcard"));
        let pair = Pair { chain: self.path(&format!("{stem}.pem")), key: self.path(&format!("{stem}.key")) };
        succeed(Command::new("openssl").arg("genpkey").args(genpkey).arg("-out").arg(&pair.key));
        self.sign(&pair.key, &pair.chain, names, 30);
        pair
    }

    /// Signs a certificate for an existing key, valid for this many days (negative: expired).
    pub fn sign(&self, key: &Path, chain: &Path, names: &[&str], days: i32) {
        let request = chain.with_extension("csr");
        let extensions = chain.with_extension("ext");
        let alternatives: Vec<String> = names.iter().map(|name| format!("DNS:{name}")).collect();
        std::fs::write(&extensions, format!("subjectAltName={}\n", alternatives.join(",")))
            .expect("writing extensions");
        succeed(
            Command::new("openssl")
                .args([
                    "req",
                    "-new",
                    "-subj",
                    &format!("/CN={}", names.first().unwrap_or(&"client")),
                    "-key",
                ])
                .arg(key)
                .arg("-out")
                .arg(&request),
        );
        succeed(
            Command::new("openssl")
                .args(["x509", "-req", "-CAcreateserial", "-days", &days.to_string(), "-in"])
                .arg(&request)
                .arg("-CA")
                .arg(self.ca())
                .arg("-CAkey")
                .arg(self.path("ca.key"))
                .arg("-extfile")
                .arg(&extensions)
                .arg("-out")
                .arg(chain),
        );
    }

    /// A CA's answer that this certificate is good, in DER.
    pub fn ocsp_response(&self, pair: &Pair) -> PathBuf {
        let response = pair.chain.with_extension("ocsp");
        let serial =
            succeed(Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(&pair.chain));
        let serial = serial.trim().trim_start_matches("serial=");
        let index = self.path("index.txt");
        // The database of `openssl ca`: status, expiry, revocation, serial number, file, subject.
        std::fs::write(&index, format!("V\t491231235959Z\t\t{serial}\tunknown\t/CN=localhost\n"))
            .expect("writing the index");
        succeed(
            Command::new("openssl")
                .args(["ocsp", "-ndays", "7", "-index"])
                .arg(&index)
                .arg("-rsigner")
                .arg(self.ca())
                .arg("-rkey")
                .arg(self.path("ca.key"))
                .arg("-CA")
                .arg(self.ca())
                .arg("-issuer")
                .arg(self.ca())
                .arg("-cert")
                .arg(&pair.chain)
                .arg("-respout")
                .arg(&response),
        );
        response
    }
}
