//! Thousands of damaged files, which must not make the reader panic, hang or reveal a key.

use crate::file::parse;

const FULL: &str = include_str!("../../../../../examples/quadrille.yaml");
const ROUNDS: u64 = 4_000;

/// An inline key whose lines must never appear in a message.
const KEY: &str = "        key: |
          -----BEGIN PRIVATE KEY-----
          TUlJRXZRSUJBREFOQmdrcWhraUc5dzBCQVFFRkFBU0NCS2N3Z2dTakFnRUFBb0lC
          QVFDN1ZKVFV0OVVzOGNLampNRUZZZVFVQzVoMVBmTTl1d1YvMGJ5YjNmYjRqdFpC
          -----END PRIVATE KEY-----";

/// Fragments that people and editors leave behind.
const SPLINTERS: &[&str] = &[
    "\t",
    ":",
    ": ",
    "- ",
    "\n",
    "\r\n",
    "{",
    "}",
    "[",
    "]",
    "'",
    "\"",
    "#",
    "&a ",
    "*a",
    "<<: ",
    "!x ",
    "|",
    ">",
    "%",
    "@",
    "~",
    "null",
    "---\n",
    "...\n",
    "\u{0}",
    "\u{feff}",
    "\u{e9}",
    "\u{1f483}",
    "99999999999999999999",
    "-1",
    "1e9",
    "?",
    ",",
    "  ",
];

#[test]
fn damaged_files() {
    let base = FULL.replacen("        key: tls/example.com-ecdsa.key", KEY, 1);
    assert!(base.contains("TUlJ") && parse(&base, "q.yaml").is_ok());
    let mut random = Random(7);
    let mut refused = 0;
    for round in 0..ROUNDS {
        let text = (0..=random.below(3)).fold(base.clone(), |text, _| damage(&text, &mut random));
        let Err(errors) = parse(&text, "q.yaml") else { continue };
        refused += 1;
        let printed = errors.to_string();
        assert!(errors.iter().len() > 0, "round {round}");
        assert!(!printed.contains("TUlJRXZR") && !printed.contains("QVFDN1ZK"), "round {round}: {printed}");
        let last = text.lines().count() as u64 + 1;
        assert!(
            errors.iter().all(|error| error.place.line.is_some_and(|line| (1..=last).contains(&line))),
            "{printed}"
        );
    }
    assert!(refused > ROUNDS / 4, "the damage does nothing: {refused} refused");
}

#[test]
fn endless_nesting() {
    for opening in ["[", "{a: ", "- ", "? ", "a:\n  ", "{? "] {
        assert!(parse(&opening.repeat(5_000), "q.yaml").is_err());
    }
}

/// Damages one place outside the lines of the key.
fn damage(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let hidden = |line: &str| line.contains("TUlJ") || line.contains("QVFD");
    let at = random.below(lines.len() as u64) as usize;
    if hidden(&lines[at]) {
        return text.to_owned();
    }
    let chars = lines[at].chars().count() as u64;
    let column = random.below(chars + 1) as usize;
    let byte = lines[at].char_indices().nth(column).map_or(lines[at].len(), |(byte, _)| byte);
    match random.below(8) {
        0 => _ = lines.remove(at),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines.truncate(at + 1),
        3 => lines[at].truncate(byte),
        4 => lines[at] = lines[at].split_off(byte),
        5 => lines[at].insert_str(0, &" ".repeat(1 + random.below(4) as usize)),
        6 => lines[at] = lines[at].trim_start().to_owned(),
        _ => {
            let splinter = SPLINTERS[random.below(SPLINTERS.len() as u64) as usize];
            lines[at].insert_str(byte, splinter);
        }
    }
    lines.join("\n")
}

/// SplitMix64: the same rounds on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
