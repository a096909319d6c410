//! Tens of thousands of damaged streams: no panic, no endless loop, no memory beyond a frame.

use super::{MODES, Message, Mode, Reader, messages, written};
use crate::wire::{Incoming, Violation};

const ROUNDS: u64 = 20_000;

#[test]
fn random_bytes() {
    let mut random = Random(1);
    for round in 0..ROUNDS {
        let mode = MODES[random.below(2)];
        let mut bytes: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        if let (Some(first), true) = (bytes.first_mut(), round % 4 != 0) {
            *first = if mode == Mode::Compatible { 1 } else { 2 };
        }
        let _ = drain(mode, &bytes, &mut random);
    }
}

#[test]
fn damaged_messages() {
    let mut random = Random(2);
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let mode = MODES[random.below(2)];
        let messages = messages();
        let some: Vec<Message<'_>> =
            (0..=random.below(3)).map(|_| messages[random.below(messages.len())].clone()).collect();
        let mut bytes = written(mode, &some);
        for _ in 0..=random.below(4) {
            damage(&mut bytes, &mut random);
        }
        refused += u64::from(drain(mode, &bytes, &mut random).is_err());
    }
    assert!(refused > ROUNDS / 100, "the damage does nothing: {refused} refused");
}

#[test]
fn frames_that_lie_about_their_length() {
    let mut reader = Reader::new(Mode::Batched);
    reader.receive(&[2, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(reader.next_message(), Err(Violation::TooLong(u32::MAX as usize)));
    // Two entries announced, one and a half present.
    let mut reader = Reader::new(Mode::Batched);
    reader.receive(&[2, 0, 0, 2, 0, 0, 0, 12, 0xf1, 0, 0, 0, 1, 0, 0, 0xf1, 0, 0, 0, 2]);
    assert_eq!(reader.next_message(), Ok(Some(Incoming::Message(Message::Ping { id: 1, data: b"" }))));
    assert_eq!(reader.next_message(), Err(Violation::Lengths));
    // An entry longer than its frame.
    let mut reader = Reader::new(Mode::Batched);
    reader.receive(&[2, 0, 0, 1, 0, 0, 0, 8, 0xf1, 0, 0, 0, 1, 0, 9, 0]);
    assert_eq!(reader.next_message(), Err(Violation::Lengths));
}

/// Reads all bytes in random portions.
fn drain(mode: Mode, bytes: &[u8], random: &mut Random) -> Result<(), Violation> {
    let mut reader = Reader::new(mode);
    let mut rest = bytes;
    let mut messages = 0;
    while !rest.is_empty() {
        let (portion, later) = rest.split_at((1 + random.below(rest.len())).min(rest.len()));
        rest = later;
        reader.receive(portion);
        while reader.next_message()?.is_some() {
            messages += 1;
            assert!(messages <= bytes.len(), "more messages than bytes");
        }
    }
    Ok(())
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let near = bytes.len().min(64);
    let at = if random.below(2) == 0 { random.below(near) } else { random.below(bytes.len()) };
    match random.below(5) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.below(256) as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.remove(at)),
        _ => bytes.insert(at, random.below(256) as u8),
    }
}

/// SplitMix64: the same rounds on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}
