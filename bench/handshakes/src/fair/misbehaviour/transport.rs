//! Misbehaviour below HTTP: TCP connections and TLS handshakes.

use std::io;

use super::{client::Client, kind::Misbehaviour};

/// All kinds, in the order of the table.
pub(super) const KINDS: &[Misbehaviour] = &[
    Misbehaviour::new("TCP, silent", 400, silent),
    Misbehaviour::new("TLS, half a ClientHello", 400, half_client_hello),
    Misbehaviour::new("TLS, silent after the handshake", 400, idle),
    Misbehaviour::new("TLS, handshake and reset", 16, handshakes),
];

fn silent(client: &Client<'_>) -> io::Result<()> {
    client.hold(client.tcp()?)
}

/// Announces a ClientHello of 512 bytes, and sends five of them.
fn half_client_hello(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.tcp()?;
    client.send(&mut stream, &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3])?;
    client.hold(stream)
}

fn idle(client: &Client<'_>) -> io::Result<()> {
    client.hold(client.http1()?)
}

fn handshakes(client: &Client<'_>) -> io::Result<()> {
    let stream = client.http1()?;
    nix::sys::socket::setsockopt(
        stream.get_ref(),
        nix::sys::socket::sockopt::Linger,
        &nix::libc::linger { l_onoff: 1, l_linger: 0 },
    )?;
    Ok(())
}
