//! Handshake messages, and their mapping from BoringSSL's states.

use serde::Serialize;
use std::fmt;

/// Messages of a handshake in the order of the protocol. Work other than reading and writing is listed where the
/// sides differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Message {
    /// Server: version, cipher, group and certificate chosen. Client: includes the setup of its connection, and in
    /// TLS 1.3 its key pair.
    ClientHello,
    /// TLS 1.3: includes the ticket, if there is one, and the key exchange for its key share; the client's part is
    /// the shared secret.
    ServerHello,
    /// TLS 1.3: includes the handshake's traffic keys, which protect it.
    EncryptedExtensions,
    /// The chain, without the client's verification.
    Certificate,
    /// TLS 1.2: includes the server's key pair, without its signature. Client: includes the signature's verification.
    ServerKeyExchange,
    /// TLS 1.3, without the server's signature. Client: the signature's verification.
    CertificateVerify,
    /// TLS 1.2.
    ServerHelloDone,
    /// TLS 1.2: the shared secret and the master secret; with RSA key exchange, without the decryption. Client:
    /// includes its key pair.
    ClientKeyExchange,
    /// TLS 1.2: includes the keys of the connection.
    ChangeCipherSpec,
    /// Finished of the server. TLS 1.3: includes the application's traffic keys.
    Finished,
    /// Finished of the client, verified.
    ClientFinished,
    /// Session tickets.
    NewSessionTicket,
    /// Time that belongs to no message.
    Other,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientFinished => f.write_str("Finished (client's)"),
            Self::Other => f.write_str("other"),
            message => write!(f, "{message:?}"),
        }
    }
}

/// Returns the message of a handshake type (RFC 8446 section 4, RFC 5246 section 7.4), built by one of the two sides.
pub(crate) fn built(kind: u8, by_server: bool) -> Message {
    match kind {
        1 => Message::ClientHello,
        2 => Message::ServerHello,
        4 => Message::NewSessionTicket,
        8 => Message::EncryptedExtensions,
        11 => Message::Certificate,
        12 => Message::ServerKeyExchange,
        14 => Message::ServerHelloDone,
        15 => Message::CertificateVerify,
        16 => Message::ClientKeyExchange,
        20 if by_server => Message::Finished,
        20 => Message::ClientFinished,
        _ => Message::Other,
    }
}

/// Initial state of a BoringSSL server, which is not reported. A client's initial state corresponds to the same
/// message.
pub(crate) const FIRST_STATE: &str = "start_accept";

/// Returns the message processed in a state. BoringSSL's names of states, as returned by `SSL_state_string_long`,
/// have the form `TLS 1.3 server send_server_hello`.
pub(crate) fn worked_on(state: &str) -> Message {
    let name = state.rsplit(' ').next().unwrap_or_default();
    if state.contains(" client ") { read_by_client(name) } else { worked_on_by_server(name) }
}

fn worked_on_by_server(state: &str) -> Message {
    match state {
        FIRST_STATE
        | "read_client_hello"
        | "read_client_hello_after_ech"
        | "cert_callback"
        | "tls13"
        | "select_certificate"
        | "select_parameters" => Message::ClientHello,
        // In the first of these, BoringSSL also computes the response to the client's key share.
        "select_session" | "send_server_hello" => Message::ServerHello,
        // After the certificate is built, BoringSSL generates its key pair in this state.
        "send_server_certificate" | "send_server_key_exchange" => Message::ServerKeyExchange,
        "send_server_certificate_verify" => Message::CertificateVerify,
        "send_server_hello_done" => Message::ServerHelloDone,
        "read_client_key_exchange" => Message::ClientKeyExchange,
        "read_change_cipher_spec" | "process_change_cipher_spec" => Message::ChangeCipherSpec,
        "send_server_finished" => Message::Finished,
        "read_second_client_flight" | "process_end_of_early_data" | "read_client_finished" => {
            Message::ClientFinished
        }
        "send_new_session_ticket" | "send_half_rtt_ticket" => Message::NewSessionTicket,
        _ => Message::Other,
    }
}

/// Messages built by a client are reported, so this mostly covers those it reads.
fn read_by_client(state: &str) -> Message {
    match state {
        "start_connect" | "enter_early_data" | "early_reverify_server_certificate" => Message::ClientHello,
        "read_server_hello" | "tls13" | "read_hello_retry_request" => Message::ServerHello,
        "read_encrypted_extensions" => Message::EncryptedExtensions,
        "read_server_certificate"
        | "read_certificate_status"
        | "verify_server_certificate"
        | "reverify_server_certificate"
        | "server_certificate_reverify" => Message::Certificate,
        "read_server_key_exchange" => Message::ServerKeyExchange,
        "read_server_certificate_verify" => Message::CertificateVerify,
        "read_server_hello_done" => Message::ServerHelloDone,
        "send_client_key_exchange" => Message::ClientKeyExchange,
        "process_change_cipher_spec" => Message::ChangeCipherSpec,
        "read_server_finished" => Message::Finished,
        // The keys of the connection are derived after all messages are written.
        "send_client_finished" | "finish_flight" | "send_end_of_early_data" | "complete_second_flight" => {
            Message::ClientFinished
        }
        "read_session_ticket" => Message::NewSessionTicket,
        _ => Message::Other,
    }
}
