//! The page's sections on memory, and on the other generator.

use std::fmt::Write as _;

use super::cell::in_cell;
use crate::report::{CrossCheck, IdleRow, cross_check::TOLERANCE, ratio};

pub(super) fn idle_section(rows: &[IdleRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "## Memory per idle connection\n\nGrowth of the server's processes; the kernel's socket buffers are not included.\n\n\
         | server | idle | open | PSS KiB each | RSS KiB each |\n|---|---|---:|---:|---:|\n",
    );
    for row in rows {
        let _ = match (row.connections, row.pss_kib_per_connection, row.rss_kib_per_connection) {
            (Some(open), Some(pss), Some(rss)) => {
                writeln!(text, "| {} | {} | {open} | {pss:.1} | {rss:.1} |", row.server, row.scenario)
            }
            _ => {
                let note = row.note.as_deref().unwrap_or("not measured");
                writeln!(text, "| {} | {} | {} | - | - |", row.server, row.scenario, in_cell(note))
            }
        };
    }
    text + "\n"
}

pub(super) fn cross_section(checked: &Result<CrossCheck, String>) -> String {
    let mut text = String::from("## Cross-check with another generator\n\n");
    let CrossCheck { generator, plain_http, rows } = match checked {
        Ok(checked) => checked,
        Err(reason) => return text + &format!("Not measured: {reason}.\n\n"),
    };
    let _ = writeln!(
        text,
        "{generator} makes the same handshakes: same version, X25519, AES-128-GCM, a new connection for each request, closed after it, 32 of \
         them in flight. It spends more CPU on a handshake than most servers do. Therefore a server gets, under both generators, only the fraction \
         of its core's time (`share`) with which h2load too can keep it busy: it is stopped for the rest of every 20 ms. The server's CPU per \
         handshake must agree within {:.0} %.\n",
        TOLERANCE * 100.0
    );
    let all = || rows.iter().filter_map(|row| row.agrees);
    let _ = writeln!(text, "{} of {} agree.\n", all().filter(|agrees| *agrees).count(), all().count());
    text += "| handshake | server | share | CPU us, ours | CPU us, h2load | ratio | per second, ours | h2load | busy, ours | busy, h2load |\n\
             |---|---|---:|---:|---:|---|---:|---:|---:|---:|\n";
    for row in rows {
        let _ = match (&row.ours, &row.h2load) {
            (Some(ours), Some(theirs)) => writeln!(
                text,
                "| {} | {} | {:.0} % | {:.0} | {:.0} | {}{} | {:.0} | {:.0} | {:.0} % | {:.0} % |",
                row.handshake,
                row.server,
                row.share.unwrap_or(1.0) * 100.0,
                ours.cpu_us_per_handshake,
                theirs.cpu_us_per_handshake,
                ratio(row.cpu_ratio.as_ref()),
                if row.agrees == Some(false) { " **differs**" } else { "" },
                ours.handshakes_per_second,
                theirs.handshakes_per_second,
                ours.server_busy * 100.0,
                theirs.server_busy * 100.0
            ),
            _ => {
                let note = row.note.as_deref().unwrap_or("not measured");
                writeln!(
                    text,
                    "| {} | {} | - | - | - | {} | - | - | - | - |",
                    row.handshake,
                    row.server,
                    in_cell(note)
                )
            }
        };
    }
    if let Some(plain) = plain_http {
        let _ = writeln!(
            text,
            "\nFor comparison, plain HTTP: nginx spends {:.0} us of CPU on a connection with one request, and serves {:.0} per second with \
             {:.0} % of its core.",
            plain.cpu_us_per_handshake,
            plain.handshakes_per_second,
            plain.server_busy * 100.0
        );
    }
    text + "\n"
}
