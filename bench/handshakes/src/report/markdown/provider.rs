//! The page's section on the provider.

use std::fmt::Write as _;

use super::cell::in_cell;
use crate::report::{Medians, ProviderRow, ProviderRows, ratio};

pub(super) fn provider_section(found: &Result<ProviderRows, String>) -> String {
    let mut text = String::from("## nginx and HAProxy with the Quadrille provider\n\n");
    let ProviderRows { busy, quiet } = match found {
        Ok(found) => found,
        Err(reason) => return text + &format!("Not measured: {reason}.\n\n"),
    };
    text += "Debian's nginx and HAProxy, unmodified, RSA-2048, resumption off: each alone, and with the [provider](../docs/guide/provider.md) in its \
             OpenSSL, on the same core with the same number of workers. HAProxy (`ssl-mode-async`) and a single worker of nginx with \
             [our module](../docs/guide/provider-nginx.md) compute in their process; several workers of nginx share \
             `quadrille keyserver --unix`, on the same core, and its CPU time is counted too. The clients of DHE_RSA are h2load's.\n\n\
             | handshake | server | CPU us per handshake | relative to it alone | per second |\n|---|---|---:|---|---:|\n";
    for row in busy {
        for (name, medians, against) in sides(row, ratio(row.cpu_ratio.as_ref())) {
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {against} | {} |",
                row.handshake,
                number(medians.cpu_us_per_handshake),
                number(medians.handshakes_per_second)
            );
        }
    }
    text += "\nLatency at a low rate, with an idle server for each client: from connect to the end of the handshake.\n\n\
             | handshake | server | p50 us | p99 us | p50 and p99 relative to it alone |\n|---|---|---:|---:|---|\n";
    for row in quiet {
        let against = [ratio(row.p50_ratio.as_ref()), ratio(row.p99_ratio.as_ref())].join("; ");
        for (name, medians, against) in sides(row, against) {
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {} | {against} |",
                row.handshake,
                number(medians.p50_us),
                number(medians.p99_us)
            );
        }
    }
    text + "\n"
}

/// Returns the rows of the server alone and with the provider, whose ratio to the former is `against`.
fn sides(row: &ProviderRow, against: String) -> [(String, Medians, String); 2] {
    let (server, workers) = row.server.split_once(',').unwrap_or((&row.server, ""));
    let comma = if workers.is_empty() { "" } else { "," };
    let with = format!("{server} + Quadrille provider{comma}{workers}");
    let note = row.note.as_ref().map_or_else(String::new, |note| format!("; {}", in_cell(note)));
    [(row.server.clone(), row.alone, String::new()), (with, row.with_provider, against + &note)]
}

fn number(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;

    #[test]
    fn a_server_alone_and_with_the_provider() {
        let row = ProviderRow {
            handshake: "TLS 1.3, ECDHE_RSA".into(),
            server: "nginx, 8 workers".into(),
            alone: Medians { cpu_us_per_handshake: Some(1000.0), ..Medians::default() },
            with_provider: Medians { cpu_us_per_handshake: Some(700.0), ..Medians::default() },
            cpu_ratio: Spread::of_values([0.7]),
            ..ProviderRow::default()
        };
        let page = provider_section(&Ok(ProviderRows { busy: vec![row], quiet: Vec::new() }));
        assert!(page.contains("| nginx, 8 workers | 1000 |  | - |"), "{page}");
        assert!(page.contains("| nginx + Quadrille provider, 8 workers | 700 | 0.70 | - |"), "{page}");
    }
}
