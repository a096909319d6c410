//! Messages, and how BoringSSL's words lead to them.

use serde::Serialize;
use std::fmt;

/// Messages of a handshake in the order of the protocol. What a side does for a message is in brackets where the two differ
/// in more than writing and reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Message {
    /// Server: version, cipher, group and certificate chosen. Client: with its connection's beginning, and in TLS 1.3 with its
    /// key pair.
    ClientHello,
    /// TLS 1.3: with the ticket, if there is one, and with the key exchange, which the key share in it needs; the client's
    /// half of it is the shared secret.
    ServerHello,
    /// TLS 1.3: with the handshake's traffic keys, under which it goes.
    EncryptedExtensions,
    /// The chain; the client's verification of it apart.
    Certificate,
    /// TLS 1.2: with the server's key pair; its signature apart. Client: with the signature's check.
    ServerKeyExchange,
    /// TLS 1.3; the server's signature apart. Client: the signature's check.
    CertificateVerify,
    /// TLS 1.2.
    ServerHelloDone,
    /// TLS 1.2: the shared secret, and the master secret from it; RSA key exchange: the decryption apart. Client: with its
    /// key pair.
    ClientKeyExchange,
    /// TLS 1.2: with the keys of the connection.
    ChangeCipherSpec,
    /// The server's. TLS 1.3: with the application's traffic keys.
    Finished,
    /// The client's, checked.
    ClientFinished,
    /// Tickets for later.
    NewSessionTicket,
    /// What belongs to no message.
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

/// The message of a handshake type (RFC 8446 section 4, RFC 5246 section 7.4), built by one of the two sides.
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

/// The state in which BoringSSL begins as a server, and of whose beginning it does not tell. A client's first state stands for
/// the same message.
pub(crate) const FIRST_STATE: &str = "start_accept";

/// The message that is worked on in a state. BoringSSL's names of states, as `SSL_state_string_long` gives them, are
/// like `TLS 1.3 server send_server_hello`.
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
        // In the first of these, BoringSSL also answers the client's key share.
        "select_session" | "send_server_hello" => Message::ServerHello,
        // Once the certificate is built, BoringSSL makes its key pair in this state.
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

/// What a client builds says so itself, so that this is mostly what it reads.
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
        // The keys of the connection are made when everything is written.
        "send_client_finished" | "finish_flight" | "send_end_of_early_data" | "complete_second_flight" => {
            Message::ClientFinished
        }
        "read_session_ticket" => Message::NewSessionTicket,
        _ => Message::Other,
    }
}
