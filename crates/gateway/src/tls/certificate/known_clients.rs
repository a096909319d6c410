//! Well-known clients and the certificates that they receive, by the selection of handshakes.

use super::{
    client_capabilities::{ClientCapabilities, Offered},
    selection::CertificateSelector,
};
use quadrille_engine::KeyType;

/// A client with the contents of its ClientHello that decide on the certificate. All offer TLS 1.3 and 1.2.
struct KnownClient {
    name: &'static str,
    /// Signatures (`signature_algorithms`).
    signatures: &'static [u16],
    /// Signatures of certificates (`signature_algorithms_cert`), if the client sends them separately.
    in_chains: Option<&'static [u16]>,
    groups: &'static [u16],
    /// One suite of TLS 1.3, then suites of TLS 1.2 with ECDSA and RSA authentication.
    suites: &'static [u16],
}

/// The clients. Sources: Chromium's `net/socket/ssl_client_socket_impl.cc` (`kVerifyPrefs`), which has ML-DSA since July
/// 2026; Go 1.27.1's `crypto/tls/defaults.go` and `common.go`; rustls 0.23.44's `crypto/aws_lc_rs/mod.rs`
/// (`SUPPORTED_SIG_ALGS`); OpenSSL 3.0's `ssl/t1_lib.c` (`tls12_sigalgs`), and a ClientHello of 3.0.19; for Safari 17, a
/// ClientHello that was recorded on macOS.
const CLIENTS: [KnownClient; 5] = [
    KnownClient {
        name: "Chrome 150",
        signatures: &[0x0904, 0x0905, 0x0906, 0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601],
        in_chains: None,
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018],
        suites: SUITES,
    },
    KnownClient {
        name: "Go 1.27",
        signatures: &[
            0x0904, 0x0905, 0x0906, 0x0804, 0x0403, 0x0807, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0503,
            0x0603,
        ],
        in_chains: Some(&[
            0x0904, 0x0905, 0x0906, 0x0804, 0x0403, 0x0807, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0503,
            0x0603, 0x0201, 0x0203,
        ]),
        groups: &[0x11ec, 0x11eb, 0x11ed, 0x001d, 0x0017, 0x0018, 0x0019],
        suites: SUITES,
    },
    KnownClient {
        name: "rustls 0.23.44",
        signatures: &[
            0x0503, 0x0403, 0x0603, 0x0807, 0x0806, 0x0805, 0x0804, 0x0601, 0x0501, 0x0401, 0x0904, 0x0905,
            0x0906,
        ],
        in_chains: None,
        groups: &[0x11ec, 0x001d, 0x0017, 0x0018],
        suites: SUITES,
    },
    KnownClient {
        name: "OpenSSL 3.0",
        signatures: &[
            0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0809, 0x080a, 0x080b, 0x0804, 0x0805, 0x0806, 0x0401,
            0x0501, 0x0601, 0x0303, 0x0301, 0x0302, 0x0402, 0x0502, 0x0602,
        ],
        in_chains: None,
        groups: &[0x001d, 0x0017, 0x001e, 0x0019, 0x0018],
        suites: SUITES,
    },
    KnownClient {
        name: "Safari 17",
        signatures: &[0x0403, 0x0804, 0x0401, 0x0503, 0x0203, 0x0805, 0x0805, 0x0501, 0x0806, 0x0601, 0x0201],
        in_chains: None,
        groups: &[0x001d, 0x0017, 0x0018, 0x0019],
        suites: SUITES,
    },
];

const VERSIONS: [u8; 5] = [4, 3, 4, 3, 3];
const SUITES: &[u16] = &[0x1301, 0xc02b, 0xc02f];

/// Number of names that a line lists.
const MOST_NAMES: usize = 3;

/// Describes the certificates that well-known clients receive: a line for names with the same results. Names with one
/// certificate that every client can verify are left out. Lines about trust anchors follow.
pub(crate) fn describe(certificates: &CertificateSelector) -> Vec<String> {
    let clients = CLIENTS.map(|client| client.capabilities());
    let mut groups: Vec<([Option<KeyType>; CLIENTS.len()], Vec<String>)> = Vec::new();
    for name in certificates.names_with_a_choice() {
        let results = clients.map(|client| certificates.key_type_for(&name, client));
        match groups.iter_mut().find(|(known, _)| *known == results) {
            Some((_, names)) => names.push(name),
            None => groups.push((results, vec![name])),
        }
    }
    let mut lines: Vec<_> =
        groups.iter().map(|(results, names)| format!("{}: {}", shown_names(names), shown(results))).collect();
    lines.extend(describe_negotiated(certificates));
    lines
}

/// Describes the certificates for clients that request a trust anchor: a line for names with the same ones.
fn describe_negotiated(certificates: &CertificateSelector) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, key_type, anchor) in certificates.negotiated() {
        let text = format!("{key_type} for clients that request the trust anchor {anchor}");
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    groups.iter().map(|(text, names)| format!("{}: {text}", shown_names(names))).collect()
}

fn shown_names(names: &[String]) -> String {
    let first = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => first,
        others => format!("{first} and {others} more"),
    }
}

/// Lists each type of key with its clients, in the order of the clients.
fn shown(results: &[Option<KeyType>]) -> String {
    let mut kinds: Vec<(Option<KeyType>, Vec<&str>)> = Vec::new();
    for (result, client) in results.iter().zip(&CLIENTS) {
        match kinds.iter_mut().find(|(kind, _)| kind == result) {
            Some((_, clients)) => clients.push(client.name),
            None => kinds.push((*result, vec![client.name])),
        }
    }
    let kind = |(kind, clients): &(Option<KeyType>, Vec<&str>)| match kind {
        Some(kind) => format!("{kind} for {}", clients.join(", ")),
        None => format!("none for {}", clients.join(", ")),
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join("; ")
}

impl KnownClient {
    fn capabilities(&self) -> ClientCapabilities {
        let in_chains = self.in_chains.map(extension);
        ClientCapabilities::of(Offered {
            versions: Some(&VERSIONS),
            signatures: Some(&extension(self.signatures)),
            in_chains: in_chains.as_deref(),
            groups: Some(&extension(self.groups)),
            suites: &code_points(self.suites),
        })
    }
}

/// Encodes a list of code points with its length, as in an extension.
fn extension(list: &[u16]) -> Vec<u8> {
    let list = code_points(list);
    let length = u16::try_from(list.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], &list].concat()
}

fn code_points(list: &[u16]) -> Vec<u8> {
    list.iter().flat_map(|code_point| code_point.to_be_bytes()).collect()
}
