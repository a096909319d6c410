//! The client.

use crate::Outcome;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, Stream,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    sync::Arc,
};

pub(crate) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Object identifiers of public keys, in DER, up to the last byte (RFC 9881).
const ML_DSA: [u8; 10] = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3];

/// Visits each port twice, with rustls' defaults, and prints a line about it.
pub(crate) fn fetch(ca: &str, ports: &[&str]) -> Outcome<()> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(ca)? {
        roots.add(root?)?;
    }
    for port in ports {
        // With sessions of its own: the listeners have one name and share their ticket keys.
        let config = ClientConfig::builder().with_root_certificates(roots.clone()).with_no_client_auth();
        let config = Arc::new(config);
        match visit(&config, port.parse()?).and_then(|first| Ok((first, visit(&config, port.parse()?)?))) {
            Ok((first, second)) => {
                let Visit { key, handshake, group, body } = first;
                println!("{port} {key} {handshake} {} {group} {body}", second.handshake);
            }
            Err(error) => println!("{port} error: {error}"),
        }
    }
    Ok(())
}

struct Visit {
    key: &'static str,
    handshake: String,
    group: String,
    body: String,
}

fn visit(config: &Arc<ClientConfig>, port: u16) -> Outcome<Visit> {
    let mut tls = ClientConnection::new(Arc::clone(config), ServerName::try_from("localhost")?)?;
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let mut stream = Stream::new(&mut tls, &mut socket);
    stream.write_all(REQUEST)?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let leaf = tls.peer_certificates().and_then(<[_]>::first).ok_or("no certificate")?;
    let handshake = tls.handshake_kind().ok_or("no handshake")?;
    let group = tls.negotiated_key_exchange_group().ok_or("no key exchange")?;
    Ok(Visit {
        key: kind(leaf),
        handshake: format!("{handshake:?}").to_lowercase(),
        group: format!("{:?}", group.name()),
        body: response.split_once("\r\n\r\n").ok_or("no response")?.1.to_owned(),
    })
}

/// Returns the kind of a certificate's key. Its issuer's signatures are of ECDSA, or of the same kind.
fn kind(leaf: &CertificateDer<'_>) -> &'static str {
    let after = leaf.windows(ML_DSA.len() + 1).find_map(|window| window.strip_prefix(&ML_DSA[..]));
    match after {
        Some([17]) => "mldsa44",
        Some([18]) => "mldsa65",
        Some([19]) => "mldsa87",
        _ => "other",
    }
}
