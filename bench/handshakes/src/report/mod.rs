//! Results of the experiments: tables for a terminal, JSON for programs, and [`markdown`] with its [`picture`] for
//! readers.

mod cross_check;
mod curve;
mod handshakes;
mod http3;
mod idle;
pub mod markdown;
pub mod picture;
mod post_quantum;
mod provider;
mod requests;

pub use self::{
    cross_check::{CrossCheck, CrossRow, Seen, cross_rows, cross_table},
    curve::{AgreementRow, Curve, CurveRow, curve_page, curve_table, curves},
    handshakes::{HandshakeRow, handshake_rows, handshake_table},
    http3::{Http3Row, http3_rows, http3_table},
    idle::{IdleRow, idle_row, idle_table},
    post_quantum::{PostQuantumRow, Served, post_quantum_rows, post_quantum_table},
    provider::{Medians, ProviderRow, ProviderRows, latency_table, provider_rows, provider_table},
    requests::{
        ProxiedRow, Ratios, RequestFindings, RequestRow, proxied_rows, proxied_table, request_rows,
        request_table,
    },
};

use crate::statistics::Spread;

/// Formats a server with its version.
fn name(server: &str, version: Option<&str>) -> String {
    version.map_or_else(|| server.to_owned(), |version| format!("{server} {version}"))
}

fn width(names: &[String]) -> usize {
    names.iter().map(String::len).max().unwrap_or_default()
}

fn ratio(spread: Option<&Spread>) -> String {
    match spread {
        None => "-".into(),
        Some(Spread { median, min, max }) if min == max => format!("{median:.2}"),
        Some(Spread { median, min, max }) => format!("{median:.2} ({min:.2}..{max:.2})"),
    }
}

fn median(values: &[Option<f64>]) -> Option<f64> {
    Some(Spread::of_values(values.iter().copied().flatten())?.median)
}
