//! `openssl s_client`, one connection at a time.

use super::missing;
use std::{
    io::Write,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

/// s_client's report about a connection.
#[derive(Debug)]
pub struct Seen {
    /// Output on both streams.
    pub text: String,
}

/// Connects, verifies the certificate against `ca`, requests `/` over HTTP/1.1, and reads to the end. All cipher
/// suites and versions of OpenSSL are allowed unless restricted by `arguments`.
pub fn s_client(address: SocketAddr, ca: &Path, arguments: &[&str]) -> Seen {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-ign_eof", "-verify_return_error", "-CAfile"]).arg(ca);
    command.args(["-connect", &address.to_string()]);
    if !arguments.contains(&"-cipher") {
        command.args(["-cipher", "ALL:@SECLEVEL=0"]);
    }
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| missing(&command, &error));
    // A client with a failed handshake does not read any more.
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let _ = child.stdin.take().expect("a pipe").write_all(request.as_bytes());
    let output = child.wait_with_output().expect("waiting for s_client");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Seen { text: text.concat() }
}

impl Seen {
    /// Returns whether there was a response, so the handshake succeeded on both sides.
    pub fn answered(&self) -> bool {
        self.text.contains("HTTP/1.1 200")
    }

    /// Asserts that there was a response.
    #[track_caller]
    pub fn expect(self, what: &str) -> Self {
        assert!(self.answered(), "{what}: no response\n{}", self.text);
        self
    }

    /// Asserts that there was no response, and that the gateway rejected the client.
    #[track_caller]
    pub fn expect_refusal(self, what: &str) -> Self {
        assert!(!self.answered(), "{what}: a response\n{}", self.text);
        assert!(self.text.contains("CONNECTED("), "{what}: not even connected\n{}", self.text);
        self
    }

    /// Returns `TLSv1`, `TLSv1.1`, `TLSv1.2` or `TLSv1.3`.
    pub fn version(&self) -> &str {
        // "New, VERSION" is the version that introduced the cipher suite, so the session's is preferred.
        self.after("Protocol  : ").unwrap_or_else(|| self.new_or_reused().0)
    }

    /// Returns OpenSSL's name of the cipher suite.
    pub fn cipher(&self) -> &str {
        self.new_or_reused().1
    }

    /// Returns whether a session was resumed.
    pub fn resumed(&self) -> bool {
        self.text.contains("\nReused, ")
    }

    /// Returns the key-exchange group, such as `X25519`.
    pub fn group(&self) -> &str {
        let key = self.after("Server Temp Key: ").unwrap_or("none");
        key.trim_start_matches("ECDH, ").split(',').next().unwrap_or_default()
    }

    /// Returns `RSA`, `RSA-PSS`, `ECDSA` or `ed25519`.
    pub fn signature(&self) -> &str {
        self.after("Peer signature type: ").unwrap_or("none")
    }

    /// Returns the negotiated ALPN protocol.
    pub fn alpn(&self) -> Option<&str> {
        self.after("ALPN protocol: ")
    }

    /// Returns the common name of the server's certificate.
    pub fn common_name(&self) -> &str {
        self.after("subject=CN = ").unwrap_or("none")
    }

    fn new_or_reused(&self) -> (&str, &str) {
        let line = self.after("\nNew, ").or_else(|| self.after("\nReused, ")).unwrap_or_default();
        line.split_once(", Cipher is ").unwrap_or_default()
    }

    fn after(&self, mark: &str) -> Option<&str> {
        self.text.split_once(mark)?.1.lines().next().map(str::trim)
    }
}
