//! `quadrille profile handshake`.

use super::flow::{self, manner, part_after};
use quadrille_profile::handshake::{Costs, FullBatch, HandshakeKind, Message, Side, measure};
use std::{collections::BTreeSet, fmt::Write, path::PathBuf};

/// Measures what a server, or a client, spends on each handshake message.
///
/// Client and server communicate through memory in one thread: the figures exclude sockets, event loop and HTTP. The
/// private-key operation and, in TLS 1.3, the server's key exchange are shown separately: as scalar code, one at a
/// time, and as the share of a batch that fills all lanes of this CPU.
#[derive(clap::Args)]
pub(super) struct Handshake {
    /// The side whose CPU time is measured.
    #[arg(long, value_enum, default_value = "server")]
    side: MeasuredSide,
    /// Backend of the server's operations: scalar code, lanes with all of them filled, or both, one after the other
    /// [default: both, for a server on a CPU with lanes].
    #[arg(long, value_enum)]
    backend: Option<Backend>,
    /// Handshakes of each kind; the figures are medians.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    handshakes: u32,
    /// Print JSON: a list of kinds, each with its messages.
    #[arg(long)]
    json: bool,
    /// Draw the message flow between the two sides into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum MeasuredSide {
    Server,
    Client,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    Scalar,
    Lanes,
    Both,
}

impl Handshake {
    pub(super) fn run(self) -> Result<(), String> {
        let side = match self.side {
            MeasuredSide::Server => Side::Server,
            MeasuredSide::Client => Side::Client,
        };
        let one = |kind| measure(kind, side, self.handshakes as usize);
        let measured: Result<Vec<Costs>, _> = HandshakeKind::all().into_iter().map(one).collect();
        let measured = self.by_backend(measured.map_err(|error| error.to_string())?, side)?;
        if let Some(file) = &self.svg {
            std::fs::write(file, flow::picture(&measured))
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        if self.json {
            let text = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
            println!("{text}");
        } else {
            // Each kind occurs twice: full, then resumed.
            measured.chunks(2).for_each(|pair| print!("{}", table(pair)));
        }
        Ok(())
    }
}

impl Handshake {
    /// Converts measurements with scalar code to the requested backends: each kind full, then resumed, with one
    /// backend, then with the other.
    fn by_backend(&self, scalar: Vec<Costs>, side: Side) -> Result<Vec<Costs>, String> {
        if side == Side::Client {
            return match self.backend {
                None | Some(Backend::Scalar) => Ok(scalar),
                Some(_) => {
                    Err("--backend is for servers: a client's operations are BoringSSL's, one at a time"
                        .into())
                }
            };
        }
        let wanted = self.backend.unwrap_or(Backend::Both);
        if wanted == Backend::Scalar {
            return Ok(scalar);
        }
        match FullBatch::measure().map_err(|error| error.to_string())? {
            Some(full) => Ok(scalar.chunks(2).flat_map(|pair| in_turn(pair, &full, wanted)).collect()),
            None if self.backend.is_none() => Ok(scalar),
            None => Err("this CPU has no lanes: they need AVX2 with FMA, or AVX-512 IFMA".into()),
        }
    }
}

fn in_turn(pair: &[Costs], full: &FullBatch, wanted: Backend) -> Vec<Costs> {
    let lanes = pair.iter().map(|costs| full.of(costs));
    match wanted {
        Backend::Lanes => lanes.collect(),
        _ => pair.iter().cloned().chain(lanes).collect(),
    }
}

/// Returns a table of full and resumed handshakes of one kind, side by side.
fn table(pair: &[Costs]) -> String {
    let mut text = String::new();
    let Some(first) = pair.first() else { return text };
    let heads = pair.iter().map(|costs| if costs.kind.resumed { "resumed" } else { "full" });
    let heads: String = heads.map(|head| format!(" {head:>20}")).collect();
    let _ = writeln!(text, "{:<55}{}", first.kind.name() + &manner(first), heads.trim_start_matches(' '));
    for line in lines(pair) {
        let figures: String = pair.iter().map(|costs| figure(line.of(costs), costs.total)).collect();
        let _ = writeln!(text, "{}", format!("  {:36}{figures}", line.name()).trim_end());
    }
    text
}

/// A line of the table.
#[derive(Clone, Copy)]
enum Line {
    Message(Message),
    /// A part of the message above it that is measured separately.
    Part(&'static str, Message),
    Whole,
}

impl Line {
    fn name(self) -> String {
        match self {
            Self::Message(message) => message.to_string(),
            Self::Part(name, _) => format!("+ {name}"),
            Self::Whole => "whole handshake".to_owned(),
        }
    }

    /// Returns the microseconds, if any.
    fn of(self, costs: &Costs) -> Option<f64> {
        match self {
            Self::Message(wanted) => {
                costs.messages.iter().find(|(message, _)| *message == wanted).map(|(_, cost)| *cost)
            }
            Self::Part(_, message) => part_after(costs, message).map(|(_, cost)| cost),
            Self::Whole => Some(costs.total),
        }
    }
}

fn lines(pair: &[Costs]) -> Vec<Line> {
    let messages: BTreeSet<Message> =
        pair.iter().flat_map(|costs| costs.messages.iter().map(|(message, _)| *message)).collect();
    let mut lines = Vec::new();
    for message in messages {
        lines.push(Line::Message(message));
        let part = pair.iter().find_map(|costs| part_after(costs, message));
        lines.extend(part.map(|(name, _)| Line::Part(name, message)));
    }
    lines.push(Line::Whole);
    lines
}

fn figure(cost: Option<f64>, total: f64) -> String {
    cost.map_or_else(|| " ".repeat(21), |cost| format!(" {cost:>8.1} us {:>6.1} %", 100.0 * cost / total))
}
