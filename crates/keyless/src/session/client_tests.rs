//! Client side of a connection: servers that reply, lag, return wrong results and violate the protocol, in simulated
//! time.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::{ClientEvent, ClientSession, KeepAlive, Outcome, RemoteOperation, SessionError};
use crate::wire::{
    ErrorCode, Hints, Incoming, KeyName, MAX_PAYLOAD, Message, Mode, Reader, Request, Ski, Violation, WINDOW,
    Writer,
};
use std::time::{Duration, Instant};

const KEY: Ski = Ski([7; 20]);
const MODES: [Mode; 2] = [Mode::Compatible, Mode::Batched];
const STALL: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(5);

/// Operation whose result is its own text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Echo(Vec<u8>);

impl RemoteOperation for Echo {
    fn request(&self, id: u32) -> Request<'_> {
        Request { id, key: KEY.into(), opcode: 5, payload: &self.0, hints: Hints::default() }
    }

    fn is_secret(&self) -> bool {
        true
    }

    fn accepts(&self, result: &[u8]) -> bool {
        result == self.0
    }
}

fn echo(text: &str) -> Echo {
    Echo(text.into())
}

/// Session, clock, and a server that reads the session's output.
struct Simulation {
    mode: Mode,
    session: ClientSession<Echo>,
    server: Reader,
    now: Instant,
}

impl Simulation {
    fn new(mode: Mode, keep_alive: KeepAlive) -> Self {
        let now = Instant::now();
        let session = ClientSession::new(now, mode, false, keep_alive);
        Self { mode, session, server: Reader::new(mode), now }
    }

    fn submit(&mut self, text: &str) -> u32 {
        self.session.submit(self.now, echo(text), None).unwrap()
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Returns the messages that the server reads now, as text.
    fn sent(&mut self) -> Vec<String> {
        let bytes = self.session.unsent().to_vec();
        self.session.advance(bytes.len());
        self.server.receive(&bytes);
        let mut sent = Vec::new();
        while let Some(incoming) = self.server.next_message().unwrap() {
            sent.push(match incoming {
                Incoming::Message(Message::Request(request)) => {
                    format!("request {} {}", request.id, String::from_utf8_lossy(request.payload))
                }
                Incoming::Message(Message::Withdraw { id }) => format!("withdraw {id}"),
                Incoming::Message(Message::Ping { id, .. }) => format!("ping {id}"),
                Incoming::Message(Message::Pong { id, .. }) => format!("pong {id}"),
                other => panic!("{other:?}"),
            });
        }
        sent
    }

    fn receive(&mut self, messages: &[Message<'_>]) {
        let mut writer = Writer::new(self.mode);
        messages.iter().for_each(|message| assert!(writer.put(message)));
        self.session.receive(self.now, writer.unsent());
    }

    /// Returns the next completion, which must exist: operation and outcome.
    fn completed(&mut self) -> (String, Outcome) {
        match self.session.next_event(self.now) {
            Ok(Some(ClientEvent::Completed(completion))) => {
                (String::from_utf8(completion.operation.0).unwrap(), completion.outcome)
            }
            other => panic!("{other:?}"),
        }
    }

    fn is_quiet(&mut self) -> bool {
        matches!(self.session.next_event(self.now), Ok(None))
    }

    fn error(&mut self) -> SessionError {
        self.session.next_event(self.now).unwrap_err()
    }
}

fn reply<'a>(id: u32, text: &'a str) -> Message<'a> {
    Message::Reply { id, result: Ok(text.as_bytes()) }
}

fn computed(text: &str) -> (String, Outcome) {
    (text.to_owned(), Outcome::Computed(text.as_bytes().to_vec().into()))
}

#[test]
fn replies_come_in_any_order_and_in_any_portions() {
    for mode in MODES {
        let mut all = Simulation::new(mode, KeepAlive::Off);
        let (one, two) = (all.submit("one"), all.submit("two"));
        assert_eq!(all.sent(), [format!("request {one} one"), format!("request {two} two")]);
        let mut writer = Writer::new(mode);
        writer.put(&reply(two, "two"));
        writer.put(&Message::Reply { id: one, result: Err(ErrorCode::KeyNotFound) });
        let bytes = writer.unsent().to_vec();
        let mut events = Vec::new();
        for byte in bytes {
            all.session.receive(all.now, &[byte]);
            while let Some(event) = all.session.next_event(all.now).unwrap() {
                let ClientEvent::Completed(completion) = event else { panic!("{event:?}") };
                events.push((completion.operation, completion.outcome));
            }
        }
        let refused = (echo("one"), Outcome::Refused(ErrorCode::KeyNotFound));
        assert_eq!(events, [(echo("two"), computed("two").1), refused]);
        assert_eq!(all.session.unanswered(), 0);
    }
}

#[test]
fn a_result_that_the_operation_does_not_accept_ends_the_session() {
    for mode in MODES {
        let mut all = Simulation::new(mode, KeepAlive::Off);
        let (right, wrong) = (all.submit("right"), all.submit("wrong"));
        all.receive(&[reply(right, "right"), reply(wrong, "something else")]);
        assert_eq!(all.completed(), computed("right"));
        assert_eq!(all.error(), SessionError::WrongResult(KeyName::from(KEY)));
        assert_eq!(all.session.into_operations(), [echo("wrong")], "another server may compute it");
    }
}

#[test]
fn each_request_is_answered_once() {
    for mode in MODES {
        let mut all = Simulation::new(mode, KeepAlive::Off);
        let id = all.submit("text");
        all.receive(&[reply(id, "text"), reply(id, "text")]);
        assert_eq!(all.completed(), computed("text"));
        assert_eq!(all.error(), SessionError::Violation(Violation::UnknownReply(id)));
    }
}

#[test]
fn what_only_clients_send_ends_the_session() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    all.receive(&[Message::Request(echo("text").request(1))]);
    assert_eq!(all.error(), SessionError::Violation(Violation::WrongSide(5)));
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    all.receive(&[Message::Withdraw { id: 1 }]);
    assert_eq!(all.error(), SessionError::Violation(Violation::WrongSide(0xe0)));
}

#[test]
fn another_version_of_the_protocol_ends_the_session() {
    for mode in MODES {
        let mut all = Simulation::new(mode, KeepAlive::Off);
        all.session.receive(all.now, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        assert_eq!(all.error(), SessionError::Violation(Violation::Version(b'H')));
    }
}

#[test]
fn a_withdrawn_request_keeps_its_id_until_it_is_answered() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    let (stopped, computed) = (all.submit("stopped"), all.submit("computed"));
    all.sent();
    for id in [stopped, computed, stopped] {
        all.session.withdraw(id);
    }
    assert_eq!(all.sent(), [format!("withdraw {stopped}"), format!("withdraw {computed}")]);
    assert_eq!(all.session.unanswered(), 2);
    let stopped = Message::Reply { id: stopped, result: Err(ErrorCode::Withdrawn) };
    all.receive(&[stopped, reply(computed, "ignored")]);
    assert_eq!(all.completed(), ("stopped".to_owned(), Outcome::Withdrawn { computed: false }));
    assert_eq!(all.completed(), ("computed".to_owned(), Outcome::Withdrawn { computed: true }));
    assert_eq!(all.session.unanswered(), 0);
}

#[test]
fn the_compatible_mode_has_no_message_for_withdrawals() {
    let mut all = Simulation::new(Mode::Compatible, KeepAlive::Off);
    let id = all.submit("text");
    all.sent();
    all.session.withdraw(id);
    assert!(!all.session.has_unsent());
    all.receive(&[reply(id, "text")]);
    assert_eq!(all.completed(), ("text".to_owned(), Outcome::Withdrawn { computed: true }));
}

#[test]
fn a_deadline_ends_a_request_and_its_late_reply_is_allowed() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    let deadline = all.now + STALL;
    let late = all.session.submit(all.now, echo("late"), Some(deadline)).unwrap();
    let in_time = all.session.submit(all.now, echo("in time"), Some(deadline)).unwrap();
    all.sent();
    assert_eq!(all.session.due(), Some(deadline));
    all.pass(STALL);
    all.receive(&[reply(in_time, "in time")]);
    assert_eq!(all.completed(), computed("in time"), "received replies count before the deadline");
    assert_eq!(all.completed(), ("late".to_owned(), Outcome::Expired));
    assert_eq!((all.session.due(), all.sent()), (None, vec![format!("withdraw {late}")]));
    all.receive(&[reply(late, "late")]);
    assert!(all.is_quiet());
    assert_eq!(all.session.unanswered(), 0);
}

#[test]
fn no_more_than_the_window_and_no_long_payload_is_taken() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    assert_eq!(all.session.submit(all.now, Echo(vec![0; MAX_PAYLOAD + 1]), None), None);
    let ids: Vec<u32> = (0..WINDOW).map(|_| all.submit("x")).collect();
    assert!(!all.session.has_room());
    assert_eq!(all.session.submit(all.now, echo("x"), None), None);
    assert_eq!(all.sent().len(), WINDOW);
    all.receive(&[reply(ids[5], "x")]);
    assert_eq!(all.completed(), computed("x"));
    assert!(all.session.has_room());
    assert!(!ids.contains(&all.submit("x")), "ids are not used again soon");
}

#[test]
fn a_server_that_does_not_read_fills_no_memory() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    let taken = (0..WINDOW).take_while(|_| {
        let operation = Echo(vec![0; MAX_PAYLOAD]);
        all.session.submit(all.now, operation, None).is_some()
    });
    assert_eq!(taken.count(), 6, "256 KiB, and the request that passes them");
    assert_eq!(all.sent().len(), 6);
    assert!(all.session.has_room());
}

#[test]
fn the_first_pong_establishes_and_pings_are_answered() {
    for mode in MODES {
        let mut all = Simulation::new(mode, KeepAlive::Pings { idle: IDLE, stall: STALL });
        assert_eq!(all.sent(), ["ping 0"]);
        all.pass(Duration::from_millis(3));
        all.receive(&[Message::Pong { id: 0, data: b"" }, Message::Ping { id: 4, data: b"data" }]);
        let event = all.session.next_event(all.now).unwrap();
        let Some(ClientEvent::Established { round_trip }) = event else { panic!("{event:?}") };
        assert_eq!(round_trip, Duration::from_millis(3));
        all.receive(&[Message::Pong { id: 0, data: b"" }]);
        assert!(all.is_quiet(), "once");
        assert_eq!(all.sent(), ["pong 4"]);
    }
}

#[test]
fn a_server_that_does_not_answer_the_first_ping_is_dead() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Pings { idle: IDLE, stall: STALL });
    assert_eq!(all.session.due(), Some(all.now + STALL / 2));
    assert_eq!(all.session.tick(all.now), Ok(()), "the tick is not yet due");
    all.pass(STALL / 2);
    assert_eq!(all.session.tick(all.now), Err(SessionError::Silent));
}

#[test]
fn a_quiet_connection_is_pinged() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Pings { idle: IDLE, stall: STALL });
    for _ in 0..3 {
        assert_eq!(all.sent(), ["ping 0"]);
        all.receive(&[Message::Pong { id: 0, data: b"" }]);
        let _ = all.session.next_event(all.now).unwrap();
        assert_eq!(all.session.due(), Some(all.now + IDLE));
        all.pass(IDLE);
        assert_eq!(all.session.tick(all.now), Ok(()));
    }
    all.pass(STALL / 2);
    assert_eq!(all.session.tick(all.now), Err(SessionError::Silent));
}

#[test]
fn a_server_that_leaves_requests_unanswered_is_pinged_soon_and_lives_as_long_as_it_answers() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Pings { idle: IDLE, stall: STALL });
    all.receive(&[Message::Pong { id: 0, data: b"" }]);
    let _ = all.session.next_event(all.now).unwrap();
    all.pass(Duration::from_secs(4));
    all.submit("slow");
    all.sent();
    for _ in 0..10 {
        assert_eq!(all.session.due(), Some(all.now + STALL / 2));
        all.pass(STALL / 2);
        assert_eq!(all.session.tick(all.now), Ok(()));
        assert_eq!(all.sent(), ["ping 0"]);
        all.receive(&[Message::Pong { id: 0, data: b"" }]);
        assert!(all.is_quiet());
    }
    all.pass(STALL / 2);
    assert_eq!(all.session.tick(all.now), Ok(()));
    all.pass(STALL / 2);
    assert_eq!(all.session.tick(all.now), Err(SessionError::Silent));
}

#[test]
fn without_pings_a_server_is_dead_when_no_reply_comes() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Replies { stall: STALL });
    assert_eq!((all.sent().len(), all.session.due()), (0, None), "no request is open");
    all.pass(IDLE);
    let (first, _) = (all.submit("first"), all.submit("second"));
    all.pass(STALL - Duration::from_millis(1));
    assert_eq!(all.session.tick(all.now), Ok(()));
    all.receive(&[reply(first, "first")]);
    assert_eq!(all.completed(), computed("first"));
    assert_eq!(all.session.due(), Some(all.now + STALL), "data was received");
    all.pass(STALL);
    assert_eq!(all.session.tick(all.now), Err(SessionError::Silent));
}

#[test]
fn another_server_may_be_asked_for_what_is_left_in_the_same_order() {
    let mut all = Simulation::new(Mode::Batched, KeepAlive::Off);
    let deadline = Some(all.now + STALL);
    let ids = ["a", "b", "c", "d", "e"].map(|text| all.submit(text));
    all.session.submit(all.now, echo("expired"), deadline).unwrap();
    all.session.withdraw(ids[2]);
    all.receive(&[reply(ids[0], "a")]);
    assert_eq!(all.completed(), computed("a"));
    all.pass(STALL);
    assert_eq!(all.completed(), ("expired".to_owned(), Outcome::Expired));
    assert_eq!(all.session.into_operations(), [echo("b"), echo("d"), echo("e")]);
}

#[test]
fn a_server_that_pings_and_reads_nothing_costs_little() {
    for mode in MODES {
        let mut simulation = Simulation::new(mode, KeepAlive::Off);
        let mut server = Writer::new(mode);
        for id in 1..=1000 {
            assert!(server.put(&Message::Ping { id, data: &[7; 4000] }));
            let bytes = server.unsent().to_vec();
            server.advance(bytes.len());
            simulation.session.receive(simulation.now, &bytes);
            assert!(simulation.session.next_event(simulation.now).unwrap().is_none());
        }
        assert!(simulation.session.unsent().len() < 300 * 1024, "{mode:?}");
        // A server that reads again gets replies again.
        let first = simulation.sent();
        assert!(first.len() > 10 && first[0] == "pong 1", "{first:?}");
        assert!(server.put(&Message::Ping { id: 7, data: b"" }));
        let bytes = server.unsent().to_vec();
        simulation.session.receive(simulation.now, &bytes);
        assert!(simulation.session.next_event(simulation.now).unwrap().is_none());
        assert_eq!(simulation.sent(), ["pong 7"]);
    }
}
