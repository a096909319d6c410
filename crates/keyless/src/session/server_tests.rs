//! Server side of a connection, without I/O.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::{ServerEvent, ServerSession};
use crate::wire::{ErrorCode, Hints, Incoming, Message, Mode, Reader, Request, Ski, Violation, Writer};

fn bytes(mode: Mode, messages: &[Message<'_>]) -> Vec<u8> {
    let mut writer = Writer::new(mode);
    messages.iter().for_each(|message| assert!(writer.put(message)));
    writer.unsent().to_vec()
}

fn request(id: u32) -> Message<'static> {
    Message::Request(Request {
        id,
        key: Ski([1; 20]).into(),
        opcode: 5,
        payload: &[9; 32],
        hints: Hints::default(),
    })
}

fn replies(mode: Mode, session: &mut ServerSession) -> Vec<String> {
    let mut reader = Reader::new(mode);
    let unsent = session.writer().unsent().to_vec();
    session.writer().advance(unsent.len());
    reader.receive(&unsent);
    std::iter::from_fn(|| reader.next_message().unwrap().map(|incoming| format!("{incoming:?}"))).collect()
}

/// Returns the ids of the received requests.
fn requests(session: &mut ServerSession) -> Vec<u32> {
    let id = |event| match event {
        ServerEvent::Request(request) => Some(request.id),
        ServerEvent::Answered | ServerEvent::Withdraw(_) => None,
    };
    std::iter::from_fn(|| session.next_event().unwrap()).filter_map(id).collect()
}

fn shown(message: Message<'_>) -> String {
    format!("{:?}", Incoming::Message(message))
}

#[test]
fn requests_come_out_and_replies_go_in_any_order_once() {
    for mode in [Mode::Compatible, Mode::Batched] {
        let mut session = ServerSession::new(mode);
        session.receive(&bytes(mode, &[request(1), Message::Ping { id: 9, data: b"x" }, request(2)]));
        assert_eq!((requests(&mut session), session.unanswered()), (vec![1, 2], 2));
        session.reply(2, Ok(b"two"));
        session.reply(2, Ok(b"again"));
        session.reply(7, Ok(b"no such request"));
        session.reply(1, Err(ErrorCode::KeyNotFound));
        let expected = [
            shown(Message::Pong { id: 9, data: b"x" }),
            shown(Message::Reply { id: 2, result: Ok(b"two") }),
            shown(Message::Reply { id: 1, result: Err(ErrorCode::KeyNotFound) }),
        ];
        assert_eq!(replies(mode, &mut session), expected);
        assert_eq!(session.unanswered(), 0);
    }
}

#[test]
fn a_number_may_be_used_again_only_after_its_reply() {
    let mut session = ServerSession::new(Mode::Batched);
    session.receive(&bytes(Mode::Batched, &[request(1)]));
    assert!(matches!(session.next_event(), Ok(Some(ServerEvent::Request(_)))));
    session.reply(1, Ok(b""));
    session.receive(&bytes(Mode::Batched, &[request(1), request(1)]));
    assert!(matches!(session.next_event(), Ok(Some(ServerEvent::Request(_)))));
    assert_eq!(session.next_event(), Err(Violation::DuplicateRequest(1)));
}

#[test]
fn clients_in_use_may_give_several_requests_the_same_number() {
    let mut session = ServerSession::new(Mode::Compatible);
    session.receive(&bytes(Mode::Compatible, &[request(0), request(0), request(0)]));
    let ids = requests(&mut session);
    assert_eq!((ids.len(), session.unanswered()), (3, 3));
    for id in ids.into_iter().rev() {
        session.reply(id, Ok(&id.to_be_bytes()));
        session.reply(id, Ok(b"again"));
    }
    let replies = replies(Mode::Compatible, &mut session);
    assert!(replies.len() == 3 && replies.iter().all(|reply| reply.contains("id: 0")), "{replies:?}");
    assert_ne!(replies[0], replies[2], "each reply has its own id");
}

#[test]
fn what_only_servers_may_say_is_answered_with_an_error_where_software_is_not_ours() {
    let sent = [
        Message::Reply { id: 7, result: Ok(b"x") },
        Message::Reply { id: 8, result: Err(ErrorCode::Crypto) },
        Message::Pong { id: 9, data: b"" },
        request(10),
    ];
    let mut session = ServerSession::new(Mode::Compatible);
    session.receive(&bytes(Mode::Compatible, &sent));
    assert_eq!(requests(&mut session).len(), 1, "the connection continues");
    let error = |id| shown(Message::Reply { id, result: Err(ErrorCode::UnexpectedOpcode) });
    assert_eq!(replies(Mode::Compatible, &mut session), [error(7), error(8), error(9)]);
}

/// A server without room for replies does not process pings.
#[test]
fn each_answer_is_an_event_of_its_own() {
    for mode in [Mode::Compatible, Mode::Batched] {
        let mut session = ServerSession::new(mode);
        session.receive(&bytes(mode, &[1, 2, 3].map(|id| Message::Ping { id, data: b"x" })));
        for id in [1, 2, 3] {
            assert_eq!(session.next_event(), Ok(Some(ServerEvent::Answered)));
            assert_eq!(replies(mode, &mut session), [shown(Message::Pong { id, data: b"x" })]);
        }
        assert_eq!(session.next_event(), Ok(None));
    }
}

#[test]
fn a_withdrawal_of_a_completed_request_is_ignored() {
    let mut session = ServerSession::new(Mode::Batched);
    session.receive(&bytes(
        Mode::Batched,
        &[Message::Withdraw { id: 5 }, request(1), Message::Withdraw { id: 1 }],
    ));
    assert!(matches!(session.next_event(), Ok(Some(ServerEvent::Request(_)))));
    assert_eq!(session.next_event(), Ok(Some(ServerEvent::Withdraw(1))));
    assert_eq!(session.next_event(), Ok(None));
}

#[test]
fn a_client_that_replies_or_speaks_another_version_is_rejected() {
    let mut session = ServerSession::new(Mode::Batched);
    session.receive(&bytes(Mode::Batched, &[Message::Reply { id: 1, result: Ok(b"") }]));
    assert_eq!(session.next_event(), Err(Violation::WrongSide(0xf0)));
    let mut session = ServerSession::new(Mode::Compatible);
    session.receive(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(session.next_event(), Err(Violation::Version(b'G')));
    let told = [shown(Message::Reply { id: 0, result: Err(ErrorCode::Version) })];
    assert_eq!(replies(Mode::Compatible, &mut session), told);
}
