//! Marks in a handshake, and the attribution of the time between them to messages.

use crate::{
    clock::thread_time,
    message::{FIRST_STATE, Message, worked_on},
};
use std::{cell::RefCell, time::Duration};

/// Marks of one handshake.
#[derive(Debug)]
pub struct Marks(Vec<(Duration, Mark)>);

/// Times computed from one handshake's marks.
#[derive(Debug, Default)]
pub struct Spent {
    /// CPU time of each message, in processing order; without the engine's operations.
    pub messages: Vec<(Message, Duration)>,
    /// CPU time of the private-key operation on this thread: computed, or handed over.
    pub key_operation: Duration,
    /// CPU time of the response to the client's key share, if it was computed on this thread in a turn of the
    /// handshake.
    pub key_exchange: Duration,
    /// CPU time of a client's verification of the server's chain.
    pub verification: Duration,
}

/// Meaning of a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// The turn begins.
    TurnBegins,
    /// The state has changed to this one.
    State(&'static str),
    /// This message has been built.
    Built(Message),
    /// A private-key operation begins.
    KeyBegins,
    /// The computation of the response to the client's key share begins.
    ExchangeBegins,
    /// The verification of the server's chain begins.
    VerificationBegins,
    /// One of these operations ends.
    OperationEnds,
    /// The turn ends.
    TurnEnds,
}

/// Maximum number of marks. A handshake has some forty; one that is prolonged by its client is not worth measuring.
const MOST: usize = 512;

thread_local! {
    /// Marks of the handshake in its turn.
    static TAKING: RefCell<Option<Vec<(Duration, Mark)>>> = const { RefCell::new(None) };
}

impl Marks {
    /// Creates an empty set of marks, with room for those of a handshake.
    pub fn new() -> Self {
        Self(Vec::with_capacity(64))
    }

    /// Runs a turn of the measured side: marks are taken during `work`.
    pub fn turn<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _turn = Turn::begin(self);
        work()
    }

    /// Number of clock readings for these marks.
    pub fn readings(&self) -> usize {
        self.0.len()
    }

    /// Number of turns.
    pub fn turns(&self) -> usize {
        self.0.iter().filter(|(_, mark)| matches!(mark, Mark::TurnEnds)).count()
    }

    /// Attributes the time between marks; `clock` is the cost of taking one mark, and is subtracted. `None` if there
    /// were more marks than in a handshake.
    pub fn share_out(&self, clock: Duration) -> Option<Spent> {
        (self.0.len() < MOST).then(|| share_out(&self.0, clock))
    }
}

impl Default for Marks {
    fn default() -> Self {
        Self::new()
    }
}

/// Marks the private-key operation, or its submission, during a turn.
pub fn key_operation<T>(operation: impl FnOnce() -> T) -> T {
    marked(Mark::KeyBegins, operation)
}

/// Marks the computation of the response to the client's key share, during a turn.
pub fn key_exchange<T>(operation: impl FnOnce() -> T) -> T {
    marked(Mark::ExchangeBegins, operation)
}

/// Marks a client's verification of the server's chain, during a turn.
pub fn verification<T>(operation: impl FnOnce() -> T) -> T {
    marked(Mark::VerificationBegins, operation)
}

fn marked<T>(begins: Mark, operation: impl FnOnce() -> T) -> T {
    mark(begins);
    let result = operation();
    mark(Mark::OperationEnds);
    result
}

/// Takes a mark, during a turn. Does not panic.
pub(crate) fn mark(mark: Mark) {
    let _ = TAKING.try_with(|taking| {
        if let Ok(mut taking) = taking.try_borrow_mut()
            && let Some(marks) = taking.as_mut().filter(|marks| marks.len() < MOST)
        {
            marks.push((thread_time(), mark));
        }
    });
}

/// Lends the marks to this thread, and recovers them even if the work panics.
struct Turn<'a> {
    marks: &'a mut Marks,
    outer: Option<Vec<(Duration, Mark)>>,
}

impl<'a> Turn<'a> {
    fn begin(marks: &'a mut Marks) -> Self {
        let lent = std::mem::take(&mut marks.0);
        let outer = TAKING.replace(Some(lent));
        mark(Mark::TurnBegins);
        Self { marks, outer }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        mark(Mark::TurnEnds);
        self.marks.0 = TAKING.replace(self.outer.take()).unwrap_or_default();
    }
}

fn share_out(marks: &[(Duration, Mark)], clock: Duration) -> Spent {
    let mut spent = Spent::default();
    let mut state = FIRST_STATE;
    let signs_its_key = marks.iter().any(|(_, mark)| matches!(mark, Mark::Built(Message::ServerKeyExchange)));
    for pair in marks.windows(2) {
        let ((began, from), (ended, to)) = (pair[0], pair[1]);
        let time = ended.saturating_sub(began).saturating_sub(clock);
        if let Mark::State(now) = from {
            state = now;
        }
        let message = match (from, to) {
            // The time between two turns is not attributed.
            (Mark::TurnEnds, _) => continue,
            (Mark::KeyBegins, _) => {
                spent.key_operation += time;
                continue;
            }
            (Mark::ExchangeBegins, _) => {
                spent.key_exchange += time;
                continue;
            }
            (Mark::VerificationBegins, _) => {
                spent.verification += time;
                continue;
            }
            (_, Mark::Built(message)) => message,
            _ => match worked_on(state) {
                // BoringSSL's server passes through this state even if there is no such message to send.
                Message::ServerKeyExchange if !signs_its_key && state.contains("send") => Message::Other,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_message_that_was_built_or_else_to_the_state() {
        let at = Duration::from_micros;
        let marks = [
            (at(0), Mark::TurnBegins),
            (at(2), Mark::ExchangeBegins),
            (at(6), Mark::OperationEnds),
            (at(10), Mark::State("TLS 1.3 server send_server_hello")),
            (at(60), Mark::Built(Message::ServerHello)),
            (at(70), Mark::Built(Message::EncryptedExtensions)),
            (at(75), Mark::State("TLS 1.3 server send_server_certificate_verify")),
            (at(80), Mark::KeyBegins),
            (at(90), Mark::OperationEnds),
            (at(92), Mark::TurnEnds),
            // Other handshakes used the thread meanwhile.
            (at(900), Mark::TurnBegins),
            (at(905), Mark::Built(Message::CertificateVerify)),
            (at(906), Mark::State("TLS 1.3 server read_client_finished")),
            (at(907), Mark::TurnEnds),
            (at(9000), Mark::TurnBegins),
            (at(9020), Mark::TurnEnds),
        ];
        let spent = share_out(&marks, Duration::ZERO);
        assert_eq!((spent.key_operation, spent.key_exchange), (at(10), at(4)));
        let expected = [
            (Message::ClientHello, 6),
            (Message::ServerHello, 55),
            (Message::EncryptedExtensions, 10),
            (Message::CertificateVerify, 13),
            (Message::ClientFinished, 21),
        ];
        assert_eq!(spent.messages, expected.map(|(message, us)| (message, at(us))));
        assert_eq!(share_out(&marks, at(1)).key_operation, at(9), "the clock's own cost is subtracted");
    }

    #[test]
    fn a_clients_time_goes_to_what_it_reads_and_its_verification_apart() {
        let at = Duration::from_micros;
        let marks = [
            (at(0), Mark::TurnBegins),
            (at(40), Mark::Built(Message::ClientHello)),
            (at(41), Mark::State("TLS client read_server_hello")),
            (at(42), Mark::TurnEnds),
            (at(500), Mark::TurnBegins),
            (at(510), Mark::State("TLS 1.3 client read_encrypted_extensions")),
            (at(512), Mark::State("TLS 1.3 client read_server_certificate")),
            (at(520), Mark::State("TLS 1.3 client read_server_certificate_verify")),
            (at(521), Mark::VerificationBegins),
            (at(621), Mark::OperationEnds),
            (at(651), Mark::State("TLS 1.3 client read_server_finished")),
            (at(655), Mark::State("TLS 1.3 client complete_second_flight")),
            (at(660), Mark::Built(Message::ClientFinished)),
            (at(661), Mark::TurnEnds),
        ];
        let spent = share_out(&marks, Duration::ZERO);
        assert_eq!(spent.verification, at(100));
        let expected = [
            (Message::ClientHello, 41),
            (Message::ServerHello, 11),
            (Message::EncryptedExtensions, 2),
            (Message::Certificate, 8),
            (Message::CertificateVerify, 31),
            (Message::Finished, 4),
            (Message::ClientFinished, 6),
        ];
        assert_eq!(spent.messages, expected.map(|(message, us)| (message, at(us))));
    }

    #[test]
    fn marks_are_taken_in_turns_only_and_belong_to_whose_turn_it_is() {
        mark(Mark::KeyBegins);
        let (mut one, mut other) = (Marks::new(), Marks::new());
        one.turn(|| key_operation(|| ()));
        other.turn(|| mark(Mark::Built(Message::ServerHello)));
        one.turn(|| other.turn(|| mark(Mark::Built(Message::EncryptedExtensions))));
        mark(Mark::OperationEnds);
        assert_eq!((one.readings(), one.turns()), (6, 2));
        assert_eq!((other.readings(), other.turns()), (6, 2));
        let ended =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one.turn(|| panic!("on purpose"))));
        assert!(ended.is_err());
        assert_eq!((one.readings(), one.turns()), (8, 3), "the marks were recovered");
    }

    #[test]
    fn a_handshake_without_end_is_not_measured() {
        let mut marks = Marks::new();
        marks.turn(|| (0..2 * MOST).for_each(|_| mark(Mark::Built(Message::ServerHello))));
        assert_eq!(marks.readings(), MOST);
        assert!(marks.share_out(Duration::ZERO).is_none());
    }
}
