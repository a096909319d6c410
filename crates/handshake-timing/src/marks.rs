//! Moments of a handshake, and which message the time between them belongs to.

use crate::{
    clock::thread_time,
    message::{FIRST_STATE, Message, worked_on},
};
use std::{cell::RefCell, time::Duration};

/// The marks of one handshake.
#[derive(Debug)]
pub struct Marks(Vec<(Duration, Mark)>);

/// What one handshake's marks say.
#[derive(Debug, Default)]
pub struct Spent {
    /// CPU time of each message, in the order in which they were worked on; the engine's operations not included.
    pub messages: Vec<(Message, Duration)>,
    /// CPU time of the private-key operation on this thread: computed, or handed over.
    pub key_operation: Duration,
    /// CPU time of the answer to the client's key share, if it was computed on this thread in a turn of the handshake's.
    pub key_exchange: Duration,
    /// CPU time of a client's verification of the server's chain.
    pub verification: Duration,
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// The turn begins.
    TurnBegins,
    /// The state has changed: this is the state now.
    State(&'static str),
    /// This message has been built.
    Built(Message),
    /// A private-key operation begins.
    KeyBegins,
    /// The client's key share begins to be answered.
    ExchangeBegins,
    /// The verification of the server's chain begins.
    VerificationBegins,
    /// One of them ends.
    OperationEnds,
    /// The turn ends.
    TurnEnds,
}

/// A handshake has some forty; a client that makes it go on and on is not worth measuring.
const MOST: usize = 512;

thread_local! {
    /// Of the handshake whose turn it is.
    static TAKING: RefCell<Option<Vec<(Duration, Mark)>>> = const { RefCell::new(None) };
}

impl Marks {
    /// No marks yet, and room for those of a handshake.
    pub fn new() -> Self {
        Self(Vec::with_capacity(64))
    }

    /// A turn of the side that is measured: marks are taken while `work` goes on.
    pub fn turn<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _turn = Turn::begin(self);
        work()
    }

    /// How often the clock was read for these marks.
    pub fn readings(&self) -> usize {
        self.0.len()
    }

    /// How many turns there were.
    pub fn turns(&self) -> usize {
        self.0.iter().filter(|(_, mark)| matches!(mark, Mark::TurnEnds)).count()
    }

    /// Shares the time between marks out; `clock` is what taking one mark costs, and is taken off. `None` if there were
    /// more marks than a handshake has.
    pub fn share_out(&self, clock: Duration) -> Option<Spent> {
        (self.0.len() < MOST).then(|| share_out(&self.0, clock))
    }
}

impl Default for Marks {
    fn default() -> Self {
        Self::new()
    }
}

/// Marks the private-key operation, or its being handed over, if a turn is on.
pub fn key_operation<T>(operation: impl FnOnce() -> T) -> T {
    marked(Mark::KeyBegins, operation)
}

/// Marks the answer to the client's key share, if a turn is on.
pub fn key_exchange<T>(operation: impl FnOnce() -> T) -> T {
    marked(Mark::ExchangeBegins, operation)
}

/// Marks a client's verification of the server's chain, if a turn is on.
pub fn verification<T>(operation: impl FnOnce() -> T) -> T {
    marked(Mark::VerificationBegins, operation)
}

fn marked<T>(begins: Mark, operation: impl FnOnce() -> T) -> T {
    mark(begins);
    let result = operation();
    mark(Mark::OperationEnds);
    result
}

/// Takes a mark now, if a turn is on. Does not panic.
pub(crate) fn mark(mark: Mark) {
    let _ = TAKING.try_with(|taking| {
        if let Ok(mut taking) = taking.try_borrow_mut()
            && let Some(marks) = taking.as_mut().filter(|marks| marks.len() < MOST)
        {
            marks.push((thread_time(), mark));
        }
    });
}

/// Lends the marks to this thread, and takes them back even if the work panics.
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
            // Between two turns it is somebody else's.
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
                // A server of BoringSSL passes through this state also when there is no such message to send.
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
            // Other handshakes have had the thread meanwhile.
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
        assert_eq!(share_out(&marks, at(1)).key_operation, at(9), "the clock's own cost is taken off");
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
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one.turn(|| panic!("as planned"))));
        assert!(ended.is_err());
        assert_eq!((one.readings(), one.turns()), (8, 3), "the marks came back");
    }

    #[test]
    fn a_handshake_without_end_is_not_measured() {
        let mut marks = Marks::new();
        marks.turn(|| (0..2 * MOST).for_each(|_| mark(Mark::Built(Message::ServerHello))));
        assert_eq!(marks.readings(), MOST);
        assert!(marks.share_out(Duration::ZERO).is_none());
    }
}
