//! `quadrille profile handshake`.

use super::flow::{self, signer};
use quadrille_profile::handshake::{Costs, HandshakeKind, Message, measure};
use std::{fmt::Write, path::PathBuf};

/// Measures what a server spends on each handshake message.
///
/// Client and server talk through memory in one thread: sockets, event loop and HTTP are not in the figures. The
/// private-key operation and, in TLS 1.3, the key exchange are scalar code here, to be seen beside the rest.
#[derive(clap::Args)]
pub(super) struct Handshake {
    /// Handshakes of each kind; the figures are medians.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    handshakes: u32,
    /// Print JSON: a list of kinds, each with its messages.
    #[arg(long)]
    json: bool,
    /// Draw the flow of messages between the two sides into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Handshake {
    pub(super) fn run(self) -> Result<(), String> {
        let measured: Result<Vec<Costs>, _> =
            HandshakeKind::all().into_iter().map(|kind| measure(kind, self.handshakes as usize)).collect();
        let measured = measured.map_err(|error| error.to_string())?;
        if let Some(file) = &self.svg {
            std::fs::write(file, flow::picture(&measured))
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        if self.json {
            let text = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
            println!("{text}");
        } else {
            measured.iter().for_each(|costs| print!("{}", table(costs)));
        }
        Ok(())
    }
}

fn table(costs: &Costs) -> String {
    let share = |microseconds: f64| 100.0 * microseconds / costs.total;
    let mut text = format!("{}\n", costs.kind);
    let mut line = |name: &str, microseconds: f64| {
        let _ = writeln!(text, "  {name:24} {microseconds:>8.1} us {:>6.1} %", share(microseconds));
    };
    for (message, microseconds) in &costs.messages {
        line(&message.to_string(), *microseconds);
        if costs.key_exchange > 0.0 && *message == Message::ClientHello {
            line("+ key exchange", costs.key_exchange);
        }
        if costs.key_operation > 0.0 && *message == signer(costs) {
            line("+ private-key operation", costs.key_operation);
        }
    }
    line("whole handshake", costs.total);
    text
}
