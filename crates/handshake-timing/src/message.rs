//! Messages, and how BoringSSL's words lead to them.

use serde::Serialize;
use std::fmt;

/// Messages of a handshake in the order of the protocol, as the server sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Message {
    /// Read, and version, cipher, group and certificate chosen.
    ClientHello,
    /// TLS 1.3: with the ticket, if there is one, and with the key exchange, which the key share in it needs.
    ServerHello,
    /// TLS 1.3: with the handshake's traffic keys, under which it goes.
    EncryptedExtensions,
    /// The chain.
    Certificate,
    /// TLS 1.2: with the server's key pair; its signature apart.
    ServerKeyExchange,
    /// TLS 1.3; its signature apart.
    CertificateVerify,
    /// TLS 1.2.
    ServerHelloDone,
    /// TLS 1.2: the shared secret, and the master secret from it; RSA key exchange: the decryption apart.
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

/// The message of a handshake type (RFC 8446 section 4, RFC 5246 section 7.4).
pub(crate) fn built(kind: u8) -> Message {
    match kind {
        2 => Message::ServerHello,
        4 => Message::NewSessionTicket,
        8 => Message::EncryptedExtensions,
        11 => Message::Certificate,
        12 => Message::ServerKeyExchange,
        14 => Message::ServerHelloDone,
        15 => Message::CertificateVerify,
        20 => Message::Finished,
        _ => Message::Other,
    }
}

/// The state in which BoringSSL begins, and of whose beginning it does not tell.
pub(crate) const FIRST_STATE: &str = "start_accept";

/// The message that is worked on in a state. BoringSSL's names of states, as `SSL_state_string_long` gives them, are
/// like `TLS 1.3 server send_server_hello`.
pub(crate) fn worked_on(state: &str) -> Message {
    match state.rsplit(' ').next().unwrap_or_default() {
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
