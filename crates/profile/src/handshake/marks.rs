//! Moments of a handshake on the thread's CPU clock, and which message the time between them belongs to.

use crate::clock::thread_time;
use boring::ssl::{SslContextBuilder, SslInfoCallbackMode, SslRef};
use boring_sys as ffi;
use serde::Serialize;
use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    fmt, slice,
    time::Duration,
};

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

/// What a mark stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    /// The server's turn begins, or its state has changed: this is the state now.
    State(&'static str),
    /// A handshake message of this type has been built.
    Built(u8),
    /// A private-key operation begins.
    KeyBegins,
    /// And ends.
    KeyEnds,
    /// The server's turn ends.
    TurnEnds,
}

thread_local! {
    static MARKS: RefCell<Vec<(Duration, Mark)>> = const { RefCell::new(Vec::new()) };
}

/// Takes a mark now.
pub(super) fn mark(mark: Mark) {
    MARKS.with(|marks| {
        if let Ok(mut marks) = marks.try_borrow_mut() {
            marks.push((thread_time(), mark));
        }
    });
}

/// All marks of this thread since the last call.
pub(super) fn take() -> Vec<(Duration, Mark)> {
    MARKS.with(|marks| marks.borrow_mut().drain(..).collect())
}

/// Has BoringSSL take marks in every handshake of a server's context.
pub(super) fn follow(context: &mut SslContextBuilder) {
    context.set_info_callback(|ssl: &SslRef, mode, _| {
        if mode == SslInfoCallbackMode::ACCEPT_LOOP {
            mark(Mark::State(ssl.state_string_long()));
        }
    });
    // SAFETY: the context is valid, and the callback has the type that is asked for and lives forever.
    unsafe { ffi::SSL_CTX_set_msg_callback(context.as_ptr(), Some(message_callback)) };
}

/// Called for each message sent or received.
unsafe extern "C" fn message_callback(
    is_write: c_int,
    _version: c_int,
    content_type: c_int,
    bytes: *const c_void,
    len: usize,
    _ssl: *mut ffi::SSL,
    _arg: *mut c_void,
) {
    const HANDSHAKE: c_int = 22;
    if is_write == 1 && content_type == HANDSHAKE && len > 0 && !bytes.is_null() {
        // SAFETY: BoringSSL passes `len` readable bytes.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), len) };
        mark(Mark::Built(bytes[0]));
    }
}

/// What one handshake's marks say.
#[derive(Debug, Default)]
pub(super) struct Spent {
    pub(super) messages: Vec<(Message, Duration)>,
    pub(super) key_operation: Duration,
}

/// Shares the time between marks out; `clock` is what taking one mark costs, and is taken off.
pub(super) fn share_out(marks: &[(Duration, Mark)], clock: Duration) -> Spent {
    let mut spent = Spent::default();
    let mut state = "";
    let signs_its_key = marks
        .iter()
        .any(|(_, mark)| matches!(mark, Mark::Built(kind) if built(*kind) == Message::ServerKeyExchange));
    for pair in marks.windows(2) {
        let ((began, from), (ended, to)) = (pair[0], pair[1]);
        let time = ended.saturating_sub(began).saturating_sub(clock);
        if let Mark::State(now) = from {
            state = now;
        }
        let message = match (from, to) {
            // Between two turns it is the client's.
            (Mark::TurnEnds, _) => continue,
            (Mark::KeyBegins, _) => {
                spent.key_operation += time;
                continue;
            }
            (_, Mark::Built(kind)) => built(kind),
            _ => match worked_on(state) {
                // BoringSSL passes through this state also when there is no such message to send.
                Message::ServerKeyExchange if !signs_its_key => Message::Other,
                message => message,
            },
        };
        match spent.messages.iter_mut().find(|(known, _)| *known == message) {
            Some((_, sum)) => *sum += time,
            None => spent.messages.push((message, time)),
        }
    }
    spent
}

/// RFC 8446 section 4, RFC 5246 section 7.4.
fn built(kind: u8) -> Message {
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

/// BoringSSL's names of states, as `SSL_state_string_long` gives them: `TLS 1.3 server send_server_hello`.
fn worked_on(state: &str) -> Message {
    match state.rsplit(' ').next().unwrap_or_default() {
        "start_accept"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_message_that_was_built_or_else_to_the_state() {
        let at = Duration::from_micros;
        let marks = [
            (at(0), Mark::State("TLS server read_client_hello")),
            (at(10), Mark::State("TLS 1.3 server send_server_hello")),
            (at(60), Mark::Built(2)),
            (at(70), Mark::Built(8)),
            (at(75), Mark::State("TLS 1.3 server send_server_certificate_verify")),
            (at(80), Mark::KeyBegins),
            (at(700), Mark::KeyEnds),
            (at(705), Mark::Built(15)),
            (at(706), Mark::TurnEnds),
            (at(9000), Mark::State("TLS 1.3 server read_client_finished")),
            (at(9020), Mark::TurnEnds),
        ];
        let spent = share_out(&marks, Duration::ZERO);
        assert_eq!(spent.key_operation, at(620));
        let expected = [
            (Message::ClientHello, 10),
            (Message::ServerHello, 55),
            (Message::EncryptedExtensions, 10),
            (Message::CertificateVerify, 11),
            (Message::ClientFinished, 20),
        ];
        assert_eq!(spent.messages, expected.map(|(message, us)| (message, at(us))));
        assert_eq!(share_out(&marks, at(1)).key_operation, at(619), "the clock's own cost is taken off");
    }
}
