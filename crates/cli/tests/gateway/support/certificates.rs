//! Certificates of a temporary CA, made with the openssl command, as users make them.

use super::succeed;
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// A directory with a CA and its certificates.
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

    /// Returns the CA's certificate.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// Returns the path of a file in the directory, which is removed when this is dropped.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Makes an RSA certificate of this many bits for these DNS names.
    pub fn rsa(&self, bits: u32, names: &[&str]) -> Pair {
        self.issue(
            &format!("rsa{bits}"),
            &["-algorithm", "RSA", "-pkeyopt", &format!("rsa_keygen_bits:{bits}")],
            names,
        )
    }

    /// Makes an ECDSA certificate on this curve (`P-256`, `P-384`, `P-521`) for these DNS names.
    pub fn ecdsa(&self, curve: &str, names: &[&str]) -> Pair {
        self.issue(curve, &["-algorithm", "EC", "-pkeyopt", &format!("ec_paramgen_curve:{curve}")], names)
    }

    /// Makes an Ed25519 certificate for these DNS names.
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

    /// Makes an intermediate CA signed by this one.
    pub fn intermediate(&self) -> Self {
        let this = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        let key = this.path("ca.key");
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        succeed(Command::new("openssl").arg("genpkey").args(curve).arg("-out").arg(&key));
        let extensions = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
        self.sign_as(&key, &this.ca(), "Intermediate CA", 30, extensions);
        this
    }

    /// Writes the CA's certificate revocation list to this file.
    pub fn revoke(&self, revoked: &[&Pair], list: &Path) {
        self.revoke_until(&["-crldays", "30"], revoked, list);
    }

    /// Writes the list with this time of its next update, in arguments of `openssl ca`.
    pub fn revoke_until(&self, until: &[&str], revoked: &[&Pair], list: &Path) {
        let index = self.path("revoked.txt");
        let serial = |pair: &&Pair| {
            let shown =
                Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(&pair.chain).output();
            let shown = String::from_utf8(shown.expect("openssl").stdout).expect("ASCII");
            shown.trim().trim_start_matches("serial=").to_owned()
        };
        // The database of `openssl ca`: status, expiry, revocation, serial number, file, subject.
        let lines = revoked
            .iter()
            .map(|pair| format!("R\t491231235959Z\t250101000000Z\t{}\tunknown\t/CN=client\n", serial(pair)));
        std::fs::write(&index, lines.collect::<String>()).expect("writing the index");
        let settings = self.path("revoke.cnf");
        let text = format!("[ca]\ndefault_ca=d\n[d]\ndatabase={}\ndefault_md=sha256\n", index.display());
        std::fs::write(&settings, text).expect("writing settings");
        let new = list.with_extension("new");
        succeed(
            Command::new("openssl")
                .args(["ca", "-gencrl"])
                .args(until)
                .arg("-config")
                .arg(&settings)
                .arg("-keyfile")
                .arg(self.path("ca.key"))
                .arg("-cert")
                .arg(self.ca())
                .arg("-out")
                .arg(&new),
        );
        std::fs::rename(&new, list).expect("renaming");
    }

    /// Signs a certificate for an existing key, valid for this many days (negative: expired).
    pub fn sign(&self, key: &Path, chain: &Path, names: &[&str], days: i32) {
        let alternatives: Vec<String> = names.iter().map(|name| format!("DNS:{name}")).collect();
        let extensions = format!("subjectAltName={}\n", alternatives.join(","));
        self.sign_as(key, chain, names.first().unwrap_or(&"client"), days, &extensions);
    }

    /// Signs a certificate with extensions in the syntax of openssl.cnf.
    pub fn sign_as(&self, key: &Path, chain: &Path, name: &str, days: i32, text: &str) {
        let request = chain.with_extension("csr");
        let extensions = chain.with_extension("ext");
        std::fs::write(&extensions, text).expect("writing extensions");
        succeed(
            Command::new("openssl")
                .args(["req", "-new", "-subj", &format!("/CN={name}"), "-key"])
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

    /// Returns the CA's OCSP response with status good for this certificate, in DER.
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
