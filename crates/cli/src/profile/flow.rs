//! Message flow diagrams of handshakes: two sides, an arrow for each message, and beside it a bar for its cost to the
//! measured side.

use quadrille_profile::handshake::{Costs, Message, Side};
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const CLIENT: f64 = 60.0;
const SERVER: f64 = 330.0;
const BARS: f64 = 380.0;
const ROW: f64 = 22.0;
const LONGEST_BAR: f64 = 300.0;

/// Columns: each kind occurs twice, full and resumed.
const COLUMNS: usize = 2;

/// Returns a self-contained SVG: a grid with a row for each kind, full handshakes on the left, resumed on the right.
pub(super) fn picture(all: &[Costs]) -> String {
    let longest = all
        .iter()
        .flat_map(|costs| {
            let parts = [costs.key_operation, costs.key_exchange, costs.verification];
            costs.messages.iter().map(|(_, us)| *us).chain(parts)
        })
        .fold(1.0, f64::max);
    let (mut body, mut y) = (String::new(), 10.0);
    for row in all.chunks(COLUMNS) {
        let mut end = y;
        for (column, costs) in row.iter().enumerate() {
            let _ = writeln!(body, "<g transform=\"translate({:.0} 0)\">", column as f64 * WIDTH);
            end = diagram(&mut body, costs, longest, y).max(end);
            body.push_str("</g>\n");
        }
        y = end + 26.0;
    }
    let width = COLUMNS as f64 * WIDTH;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {y:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <defs><marker id=\"head\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// Returns the backend of the operations, for titles.
pub(super) fn manner(costs: &Costs) -> String {
    match (costs.side, costs.by) {
        (Side::Client, _) => String::new(),
        (Side::Server, "scalar") => ", scalar".to_owned(),
        (Side::Server, tier) => format!(", lanes ({tier})"),
    }
}

/// Returns the parts of a message's cost that are measured separately, with name and microseconds.
pub(super) fn part_after(costs: &Costs, message: Message) -> Option<(&'static str, f64)> {
    let part = match message {
        Message::ClientHello => ("key exchange", costs.key_exchange),
        Message::Certificate => ("verification of the chain", costs.verification),
        _ if message == signer(costs) => ("private-key operation", costs.key_operation),
        _ => return None,
    };
    (part.1 > 0.0).then_some(part)
}

/// Returns the message that the private-key operation belongs to.
fn signer(costs: &Costs) -> Message {
    let has = |wanted| costs.messages.iter().any(|(message, _)| *message == wanted);
    if costs.kind.tls13 {
        Message::CertificateVerify
    } else if has(Message::ServerKeyExchange) {
        Message::ServerKeyExchange
    } else {
        Message::ClientKeyExchange
    }
}

/// Draws one kind from `y` on, and returns the end of its area.
fn diagram(svg: &mut String, costs: &Costs, longest: f64, y: f64) -> f64 {
    let _ = writeln!(
        svg,
        "<text x=\"{CLIENT}\" y=\"{:.0}\" font-weight=\"bold\">{}{}: {:.0} us of the {}</text>",
        y + 14.0,
        costs.kind,
        manner(costs),
        costs.total,
        match costs.side {
            Side::Server => "server",
            Side::Client => "client",
        }
    );
    let top = y + 34.0;
    for (x, side) in [(CLIENT, "client"), (SERVER, "server")] {
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{top:.0}\" text-anchor=\"middle\" fill=\"#555\">{side}</text>"
        );
    }
    let mut row = top + 8.0;
    let begin = row;
    for (message, microseconds) in &costs.messages {
        row += ROW;
        if *message != Message::Other {
            arrow(svg, *message, row);
        }
        bar(svg, row, *microseconds, longest, "#0b62a4", "");
        if let Some((name, microseconds)) = part_after(costs, *message) {
            row += ROW;
            bar(svg, row, microseconds, longest, "#c1440e", &format!("{name}, "));
        }
    }
    for x in [CLIENT, SERVER] {
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{begin:.0}\" x2=\"{x}\" y2=\"{:.0}\" stroke=\"#999\"/>",
            row + 8.0
        );
    }
    row + 8.0
}

fn arrow(svg: &mut String, message: Message, y: f64) {
    let from_client =
        matches!(message, Message::ClientHello | Message::ClientKeyExchange | Message::ClientFinished);
    let (from, to) = if from_client { (CLIENT + 2.0, SERVER - 2.0) } else { (SERVER - 2.0, CLIENT + 2.0) };
    let _ = writeln!(
        svg,
        "<line x1=\"{from}\" y1=\"{y:.0}\" x2=\"{to}\" y2=\"{y:.0}\" stroke=\"black\" marker-end=\"url(#head)\"/>\n\
         <text x=\"{}\" y=\"{:.0}\" text-anchor=\"middle\">{message}</text>",
        (CLIENT + SERVER) / 2.0,
        y - 4.0
    );
}

fn bar(svg: &mut String, y: f64, microseconds: f64, longest: f64, colour: &str, what: &str) {
    let width = (microseconds / longest * LONGEST_BAR).max(1.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{BARS}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"12\" fill=\"{colour}\"/>\n\
         <text x=\"{:.1}\" y=\"{:.0}\">{what}{microseconds:.1} us</text>",
        y - 10.0,
        BARS + width + 6.0,
        y
    );
}
