//! Tests of the file: its meaning, the messages for mistakes, and the agreement of code, reference and examples.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod accepted;
mod acme;
mod agreement;
mod composed;
mod effects;
mod json_schema;
mod keyless;
mod leaves;
mod mutations;
mod refused;
mod refused_listeners;
mod refused_routes;
mod refused_tls;
mod refused_upstreams;
mod single_values;

use super::parse;
use crate::model::Gateway;

/// A listener that needs nothing else; `extra` goes into it.
fn listener(extra: &str) -> String {
    format!(
        "listeners: [{{address: '127.0.0.1:8443', certificates: [{{chain: c.pem, key: k.pem}}], {extra}}}]"
    )
}

fn parsed(text: &str) -> Gateway {
    parse(text, "etc/q.yaml").unwrap_or_else(|errors| panic!("{errors}\n---\n{text}"))
}

/// Returns the mistakes as they are printed, one for each line.
fn mistakes(text: &str) -> String {
    match parse(text, "q.yaml") {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors.to_string(),
    }
}

/// A text with its mistakes, one for each line.
type Case = (&'static str, &'static str);

fn check(cases: &[Case], document: impl Fn(&str) -> String) {
    for (text, messages) in cases {
        assert_eq!(mistakes(&document(text)), *messages, "{text}");
    }
}
