//! Compatible mode, byte by byte as described in wire.md.

use super::{ErrorCode, Incoming, KeyName, Message, Mode, Reader, Ski, written};
use crate::wire::{Hints, Request, Violation};

fn packet(items: &[(u8, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (tag, data) in items {
        body.push(*tag);
        body.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        body.extend_from_slice(data);
    }
    let mut packet = vec![1, 0];
    packet.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
    packet.extend(0x0102_0304_u32.to_be_bytes());
    packet.extend(body);
    packet
}

fn parsed(items: &[(u8, &[u8])]) -> String {
    let mut reader = Reader::new(Mode::Compatible);
    reader.receive(&packet(items));
    format!("{:?}", reader.next_message().unwrap().unwrap())
}

fn malformed() -> String {
    format!("{:?}", Incoming::Malformed { id: 0x0102_0304, error: ErrorCode::Format })
}

#[test]
fn a_request_as_others_send_it() {
    let ski = [0xab; 20];
    let items: &[(u8, &[u8])] = &[
        (0x11, &[0x05]),
        (0x04, &ski),
        (0x02, b"example.com"),
        (0x16, b"{}"),
        (0x15, b"trace"),
        (0x77, b"from the future"),
        (0x77, b"twice"),
        (0x12, &[7; 32]),
        (0x20, &[0; 900]),
    ];
    let request = Request {
        id: 0x0102_0304,
        key: KeyName { ski: Some(Ski(ski)), modulus: None },
        opcode: 5,
        payload: &[7; 32],
        hints: Hints { sni: Some("example.com"), ..Hints::default() },
    };
    assert_eq!(parsed(items), format!("{:?}", Incoming::Message(Message::Request(request))));
}

#[test]
fn a_modulus_digest_in_bytes_or_in_hexadecimal() {
    let digits = "0f".repeat(32);
    let name = |digest: &[u8]| parsed(&[(0x01, digest), (0x11, &[5]), (0x12, b"")]);
    assert_eq!(name(&[0x0f; 32]), name(digits.as_bytes()));
    assert_eq!(name(&[0x0f; 31]), malformed());
    assert_eq!(name("0g".repeat(32).as_bytes()), malformed());
}

#[test]
fn what_is_not_well_formed_costs_only_its_own_message() {
    let cases: &[&[(u8, &[u8])]] = &[
        &[(0x12, b"no opcode")],
        &[(0x11, &[1, 2])],
        &[(0x11, &[])],
        &[(0x11, &[5]), (0x11, &[5])],
        &[(0x11, &[5]), (0x20, b""), (0x20, b"")],
        &[(0x11, &[5]), (0x04, &[0; 19])],
        &[(0x11, &[5]), (0x02, &[0xff])],
        &[(0x11, &[5]), (0x03, &[0; 5])],
        &[(0x11, &[0xff]), (0x12, &[1, 2])],
        &[],
    ];
    for items in cases {
        assert_eq!(parsed(items), malformed(), "{items:x?}");
    }
    // An item that is longer than its packet.
    let mut longer = packet(&[(0x11, &[5]), (0x12, &[0; 4])]);
    *longer.last_chunk_mut::<7>().unwrap() = [0x12, 0, 9, 0, 0, 0, 0];
    let mut reader = Reader::new(Mode::Compatible);
    reader.receive(&longer);
    reader.receive(&packet(&[(0x11, &[0xf1])]));
    assert_eq!(format!("{:?}", reader.next_message().unwrap().unwrap()), malformed());
    let ping = Incoming::Message(Message::Ping { id: 0x0102_0304, data: b"" });
    assert_eq!(reader.next_message().unwrap(), Some(ping), "the next message is read");
}

#[test]
fn packets_are_padded_to_1024_bytes_and_a_little_more_at_the_edge() {
    for payload in 0..1100 {
        let data = vec![0; payload];
        let length = written(Mode::Compatible, &[Message::Ping { id: 1, data: &data }]).len();
        // Header, opcode item, payload item's header.
        let bare = 8 + 4 + 3 + payload;
        let expected = if bare >= 1024 { bare } else { (bare + 3).max(1024) };
        assert_eq!(length, expected, "{payload}");
        assert!(bare >= 1024 || length <= 1026);
    }
}

#[test]
fn other_versions_are_refused_at_the_first_byte() {
    for mode in [Mode::Compatible, Mode::Batched] {
        let mut reader = Reader::new(mode);
        reader.receive(&[3]);
        assert_eq!(reader.next_message(), Err(Violation::Version(3)));
    }
    assert_eq!(Mode::from_first_byte(1), Some(Mode::Compatible));
    assert_eq!(Mode::from_first_byte(2), Some(Mode::Batched));
    assert_eq!(Mode::from_first_byte(0x16), None, "TLS is neither mode");
}
