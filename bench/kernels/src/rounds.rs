//! Rounds: every contender takes a turn in each.

use std::io::{IsTerminal, Write};

use crate::clock::{self, Sample};
use crate::contender::Contender;

/// Collects samples of every contender, one per round; reports progress on stderr.
pub(crate) fn measure(
    name: &str,
    contenders: &mut [Contender<'_>],
    rounds: u32,
    turn_ms: u64,
) -> Vec<Vec<Sample>> {
    let mut samples = vec![Vec::new(); contenders.len()];
    for contender in contenders.iter_mut() {
        (contender.run)(); // warms caches, and values that a key prepares at its first use
    }
    let mut progress = Progress::new(name, rounds);
    for round in 1..=rounds {
        progress.show(round);
        for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
            samples.push(clock::sample(&mut contender.run, turn_ms));
        }
    }
    progress.end();
    samples
}

/// A progress line that counts up on a terminal, or one line per size elsewhere.
struct Progress<'a> {
    name: &'a str,
    rounds: u32,
    terminal: bool,
}

impl<'a> Progress<'a> {
    fn new(name: &'a str, rounds: u32) -> Self {
        let terminal = std::io::stderr().is_terminal();
        if !terminal {
            eprintln!("measuring: {name}, {rounds} rounds");
        }
        Self { name, rounds, terminal }
    }

    fn show(&mut self, round: u32) {
        if self.terminal {
            eprint!("\rmeasuring: {}, round {round} of {} ", self.name, self.rounds);
            let _ = std::io::stderr().flush(); // a lost progress line is not a failure
        }
    }

    fn end(&mut self) {
        if self.terminal {
            eprintln!();
        }
    }
}
