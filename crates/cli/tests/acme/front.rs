//! An HTTPS front for servers of plain HTTP.

use crate::support::{Certificates, eventually, ports};
use std::{
    cell::RefCell,
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

/// Starts HTTPS for `localhost`, with a certificate of this CA. It ends with the test.
pub fn https_before(certificates: &Certificates, server: SocketAddr) -> u16 {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let port = ports::free();
    let mut front = Command::new(env!("CARGO_BIN_EXE_quadrille"));
    front.args(["serve", "--mode", "tcp", "--admin", "off", "--listen", &format!("127.0.0.1:{port}")]);
    front.args(["--upstream", &server.to_string(), "--cert"]).arg(&pair.chain).arg("--key").arg(&pair.key);
    let child = front.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("a front");
    ENDED_WITH_THE_TEST.with_borrow_mut(|children| children.push(Ended(child)));
    eventually("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    port
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

thread_local! {
    static ENDED_WITH_THE_TEST: RefCell<Vec<Ended>> = const { RefCell::new(Vec::new()) };
}
