//! Both modes: written messages are read back, byte by byte too; damaged input is rejected and does no harm.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

pub(crate) mod damage;
mod packets;

use super::{ErrorCode, Hints, Incoming, KeyName, Message, Mode, Reader, Request, Ski, Writer, opcode};

const MODES: [Mode; 2] = [Mode::Compatible, Mode::Batched];

/// One message of each kind.
fn messages() -> Vec<Message<'static>> {
    let request = |id, opcode, payload| {
        Message::Request(Request { id, key: Ski([7; 20]).into(), opcode, payload, hints: Hints::default() })
    };
    vec![
        request(1, 0x35, &[1; 32]),
        request(u32::MAX, opcode::RSA_DECRYPT, &[2; 256]),
        request(2, 0x18, b""),
        Message::Reply { id: 3, result: Ok(&[3; 256]) },
        Message::Reply { id: 4, result: Ok(&[]) },
        Message::Reply { id: 5, result: Err(ErrorCode::KeyNotFound) },
        Message::Ping { id: 0, data: b"are you there?" },
        Message::Pong { id: 0, data: b"" },
    ]
}

fn written(mode: Mode, messages: &[Message<'_>]) -> Vec<u8> {
    let mut writer = Writer::new(mode);
    messages.iter().for_each(|message| assert!(writer.put(message)));
    writer.unsent().to_vec()
}

/// Returns all messages read from these bytes in portions of this length.
fn read(mode: Mode, bytes: &[u8], portion: usize) -> Vec<String> {
    let mut reader = Reader::new(mode);
    let mut seen = Vec::new();
    for portion in bytes.chunks(portion) {
        reader.receive(portion);
        while let Some(incoming) = reader.next_message().unwrap() {
            seen.push(format!("{incoming:?}"));
        }
    }
    assert!(!reader.has_partial_message());
    seen
}

#[test]
fn what_is_written_is_read_in_any_portions() {
    for mode in MODES {
        let bytes = written(mode, &messages());
        let expected: Vec<_> =
            messages().into_iter().map(|message| format!("{:?}", Incoming::Message(message))).collect();
        for portion in [1, 2, 7, 8, 9, 1023, 1024, 1025, bytes.len()] {
            assert_eq!(read(mode, &bytes, portion), expected, "{mode} {portion}");
        }
    }
}

#[test]
fn a_frame_of_ours_holds_them_all_and_is_padded_only_if_asked() {
    let mut writer = Writer::new(Mode::Batched);
    messages().iter().for_each(|message| assert!(writer.put(message)));
    let bytes = writer.unsent().to_vec();
    assert_eq!(u16::from_be_bytes([bytes[2], bytes[3]]), 8, "one frame");
    writer.advance(bytes.len());
    writer.set_padded(true);
    writer.put(&Message::Withdraw { id: 9 });
    let padded = writer.unsent().to_vec();
    assert_eq!(padded.len(), 1024);
    let mut reader = Reader::new(Mode::Batched);
    reader.receive(&[bytes, padded].concat());
    let mut last = None;
    while let Some(incoming) = reader.next_message().unwrap() {
        last = Some(format!("{incoming:?}"));
    }
    assert_eq!(last.unwrap(), format!("{:?}", Incoming::Message(Message::Withdraw { id: 9 })));
    assert!(reader.padded() && !reader.has_partial_message());
}

#[test]
fn long_payloads_go_over_several_frames_and_too_long_ones_do_not_go() {
    let long = vec![9; super::MAX_PAYLOAD];
    let message = Message::Reply { id: 1, result: Ok(&long) };
    for mode in MODES {
        let bytes = written(mode, &[message.clone(), message.clone(), message.clone()]);
        assert_eq!(read(mode, &bytes, bytes.len()).len(), 3, "{mode}");
        let longer = vec![9; super::MAX_PAYLOAD + 1];
        let mut writer = Writer::new(mode);
        assert!(!writer.put(&Message::Ping { id: 1, data: &longer }));
        assert!(writer.unsent().is_empty());
    }
}

#[test]
fn everything_that_a_gateway_may_hint_at_goes_along_in_compatible_mode() {
    let request = Request {
        id: 6,
        key: KeyName { ski: Some(Ski([1; 20])), modulus: Some([2; 32]) },
        opcode: 0x05,
        payload: &[3; 32],
        hints: Hints {
            sni: Some("example.com"),
            client: Some("192.0.2.1".parse().unwrap()),
            server: Some("2001:db8::1".parse().unwrap()),
        },
    };
    let bytes = written(Mode::Compatible, &[Message::Request(request.clone())]);
    let expected = format!("{:?}", Incoming::Message(Message::Request(request)));
    assert_eq!(read(Mode::Compatible, &bytes, 1), [expected]);
}

#[test]
fn errors_that_others_do_not_know_are_translated() {
    for (error, compatible) in [
        (ErrorCode::Denied, ErrorCode::UnexpectedOpcode),
        (ErrorCode::Limited, ErrorCode::Internal),
        (ErrorCode::Other(0x77), ErrorCode::Other(0x77)),
    ] {
        for (mode, seen) in [(Mode::Compatible, compatible), (Mode::Batched, error)] {
            let bytes = written(mode, &[Message::Reply { id: 1, result: Err(error) }]);
            let seen = Incoming::Message(Message::Reply { id: 1, result: Err(seen) });
            assert_eq!(read(mode, &bytes, bytes.len()), [format!("{seen:?}")]);
        }
    }
}

/// Found by the fuzz target: a message was read, and written as a different one.
#[test]
fn codes_of_ours_mean_nothing_to_others() {
    let mut packet = written(Mode::Compatible, &[Message::Reply { id: 1, result: Err(ErrorCode::Crypto) }]);
    let code = [0x12, 0x00, 0x01, ErrorCode::Crypto.byte()];
    let at = packet.windows(code.len()).position(|window| window == code).expect("the code");
    for (byte, error) in [(0x40, ErrorCode::Internal), (0x41, ErrorCode::UnexpectedOpcode)] {
        packet[at + 3] = byte;
        let seen = Incoming::Message(Message::Reply { id: 1, result: Err(error) });
        assert_eq!(read(Mode::Compatible, &packet, packet.len()), [format!("{seen:?}")]);
    }
}

#[test]
fn codes_and_opcodes_are_their_own_inverse() {
    for byte in 0..=255_u8 {
        assert_eq!(ErrorCode::from_byte(byte).byte(), byte);
        if let Ok(operation) = opcode::operation(byte, b"payload") {
            assert_eq!(opcode::from_operation(&operation), (byte, &b"payload"[..]));
            assert!(matches!(opcode::name(byte), "sign" | "decrypt"));
        }
    }
    let known = (0..=255).filter(|opcode| opcode::operation(*opcode, b"").is_ok()).count();
    assert_eq!(known, 17);
}
