//! The page's section on ML-DSA-44.

use std::fmt::Write as _;

use super::cell::in_cell;
use crate::report::{PostQuantumRow, ratio};

pub(super) fn post_quantum_section(found: &Result<Vec<PostQuantumRow>, String>) -> String {
    let mut text = String::from("## ML-DSA-44\n\n");
    let rows = match found {
        Ok(rows) => rows,
        Err(reason) => return text + &format!("Not measured: {reason}.\n\n"),
    };
    text += "Full TLS 1.3 handshakes with X25519MLKEM768 and certificates with an ML-DSA-44 key, beside a P-256 key in the \
             same rounds; both certificates are signed with P-256. `rustls` is a small server on rustls with AWS-LC \
             ([source](rustls/src/server.rs)).\n\n\
             | server | CPU us per handshake | relative to its own P-256 | relative to rustls with ML-DSA-44 | per second; p50, p99 in us |\n\
             |---|---:|---|---|---|\n";
    for row in rows {
        let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
        let note = row.note.as_ref().map_or_else(String::new, |note| format!(": {}", in_cell(note)));
        let _ = writeln!(
            text,
            "| {}{note} | {} | {} | {} | {}; {}, {} |",
            row.server,
            number(row.cpu_us_per_handshake),
            ratio(row.against_p256.as_ref()),
            ratio(row.against_rustls.as_ref()),
            number(row.handshakes_per_second),
            number(row.p50_us),
            number(row.p99_us)
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;

    #[test]
    fn a_row_says_what_was_measured_or_why_not() {
        let measured = PostQuantumRow {
            server: "quadrille, ML-DSA-44".into(),
            cpu_us_per_handshake: Some(120.0),
            against_p256: Spread::of_values([1.2]),
            ..PostQuantumRow::default()
        };
        let missing = PostQuantumRow {
            server: "nginx, ML-DSA-44".into(),
            note: Some("it cannot read the key".into()),
            ..PostQuantumRow::default()
        };
        let page = post_quantum_section(&Ok(vec![measured, missing]));
        assert!(page.contains("| quadrille, ML-DSA-44 | 120 | 1.20 | - | -; -, - |"), "{page}");
        assert!(
            page.contains("| nginx, ML-DSA-44: it cannot read the key | - | - | - | -; -, - |"),
            "{page}"
        );
    }
}
