//! The page of the curves.

use std::fmt::Write as _;

use super::{AgreementRow, Curve, CurveRow};
use crate::{contestants::Contestant, machine::Machine, report::ratio, rounds::Plan};

/// Formats the page; `picture` is the file name of [`curves`](super::curves).
pub fn curve_page(
    machine: &Machine,
    date: &str,
    plan: Plan,
    contestants: &[Contestant],
    curves: &[Curve],
    agreement: &[AgreementRow],
    picture: &str,
) -> String {
    let mut page = format!(
        "# CPU at part load\n\n\
         Written by `make compare ARGS=--curve`; [README.md](README.md) describes the method. {machine}. Measured on {date}. \
         {} interleaved rounds of at least {} s; every server has one core and one worker, the client the other core. \
         Connections start evenly in time, at fractions of what the fastest server can do.\n\n\
         ![CPU over load, a line for each server]({picture})\n\n| server | version |\n|---|---|\n",
        plan.rounds,
        plan.round_time.as_secs_f64(),
    );
    for Contestant { rival, version, .. } in contestants {
        let version = version.as_ref().map_or_else(|reason| format!("left out: {reason}"), Clone::clone);
        let _ = writeln!(page, "| {rival} | {} |", version.replace('|', "/").replace('\n', " "));
    }
    for curve in curves {
        page += &format!("\n## {}\n\n{}", curve.title, curve_table(curve));
    }
    page + &agreement_table(agreement)
}

/// Formats the tables of one kind: CPU time with its ratio to the baseline, and latencies.
pub fn curve_table(curve: &Curve) -> String {
    let baseline = curve.baseline.as_deref().unwrap_or("none");
    let mut text = format!(
        "CPU us per {}; in brackets the ratio to {baseline} in the same round, median (least..greatest). `+`: the server did \
         not keep up with the rate.\n\n",
        curve.unit
    );
    text += &table(curve, |row| match row.cpu_us {
        Some(cpu) => {
            let behind = if row.kept_up() { "" } else { "+" };
            format!("{cpu:.0}{behind}, {}", ratio(row.ratio.as_ref()))
        }
        None => "-".into(),
    });
    text += "\nLatency, p50 and p99 in us.\n\n";
    text += &table(curve, |row| match (row.p50_us, row.p99_us) {
        (Some(p50), Some(p99)) => format!("{p50:.0}, {p99:.0}"),
        _ => "-".into(),
    });
    let notes: Vec<_> = curve.rows.iter().filter_map(|row| Some((&row.server, row.note.as_ref()?))).collect();
    if let Some((server, note)) = notes.first() {
        let _ = writeln!(text, "\n{server}: {}", note.replace('\n', " "));
    }
    text
}

/// Formats a row for each load, and a column for each server.
fn table(curve: &Curve, cell: impl Fn(&CurveRow) -> String) -> String {
    let servers = curve.servers();
    let mut text = format!("| load | per second | {} |\n|---|---|", servers.join(" | "));
    text += &"---|".repeat(servers.len());
    for rows in curve.rows.chunks(servers.len().max(1)) {
        let [first, ..] = rows else { continue };
        let cells: Vec<String> = rows.iter().map(&cell).collect();
        let _ = write!(
            text,
            "\n| {:.0} % | {:.0} | {} |",
            first.load * 100.0,
            first.due_per_second,
            cells.join(" | ")
        );
    }
    text + "\n"
}

fn agreement_table(rows: &[AgreementRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n## The same with h2load\n\nA full TLS 1.3 handshake with a P-256 certificate and X25519 every 5 ms, by this harness \
         and by h2load.\n\n| server | CPU us, harness | CPU us, h2load | ratio |\n|---|---|---|---|\n",
    );
    let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
    for row in rows {
        let ratio = ratio(row.ratio.as_ref());
        let _ = writeln!(
            text,
            "| {} | {} | {} | {ratio} |",
            row.server,
            number(row.ours_us),
            number(row.theirs_us)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;

    #[test]
    fn a_row_for_each_load_and_a_column_for_each_server() {
        let row = |load: f64, server: &str, cpu: f64, per_second: f64| CurveRow {
            load,
            due_per_second: load * 1000.0,
            server: server.into(),
            per_second: Some(per_second),
            cpu_us: Some(cpu),
            ratio: Spread::of_values([cpu / 400.0]),
            p50_us: Some(300.0),
            p99_us: Some(900.0),
            note: None,
        };
        let curve = Curve {
            title: "Handshakes".into(),
            unit: "handshake",
            baseline: Some("haproxy".into()),
            rows: vec![
                row(0.1, "haproxy", 400.0, 100.0),
                row(0.1, "quadrille", 300.0, 100.0),
                row(0.9, "haproxy", 400.0, 500.0),
                row(0.9, "quadrille", 200.0, 900.0),
            ],
        };
        let text = curve_table(&curve);
        for line in [
            "| load | per second | haproxy | quadrille |",
            "| 10 % | 100 | 400, 1.00 | 300, 0.75 |",
            "| 90 % | 900 | 400+, 1.00 | 200, 0.50 |",
            "| 90 % | 900 | 300, 900 | 300, 900 |",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
    }
}
