//! HTTP/3 of a listener, and its advertisement by `Alt-Svc`.

use crate::{
    Field, Problem,
    enums::switch,
    model::{AltSvc, Http3},
    suggest::quote,
};
use serde_json::Value;

/// Values read for HTTP/3.
#[derive(Default)]
pub(super) struct Http3Draft {
    on: bool,
    alt_svc: Option<AltSvc>,
}

impl Http3Draft {
    pub(super) fn read(&mut self, field: &Field<'_>) {
        self.on = field.parse(switch).unwrap_or_default();
    }

    pub(super) fn read_alt_svc(&mut self, field: &Field<'_>) {
        self.alt_svc = field.parse(alt_svc);
    }

    /// Returns the HTTP/3 settings of the listener; `field` is the listener.
    pub(super) fn take(&mut self, field: &Field<'_>) -> Option<Http3> {
        let alt_svc = self.alt_svc.take();
        if alt_svc.is_some() && !self.on {
            let problem = Problem::new("HTTP/3 is off", "add `http3: on`, or remove this");
            field.at("alt_svc").error(problem);
        }
        self.on.then(|| Http3 { alt_svc: alt_svc.unwrap_or_default() })
    }
}

/// Shows `alt_svc`; null for the default.
pub(super) fn show_alt_svc(http3: Option<&Http3>) -> Value {
    match http3.map(|http3| &http3.alt_svc) {
        None | Some(AltSvc::SamePort) => Value::Null,
        Some(AltSvc::Off) => false.into(),
        Some(AltSvc::Value(value)) => value.as_str().into(),
    }
}

/// Reads a list of alternatives, each `id=authority` (RFC 7838 section 3), in characters allowed in a header (RFC
/// 9110 section 5.5).
fn alt_svc(text: &str) -> Result<AltSvc, Problem> {
    if switch(text) == Ok(false) {
        return Ok(AltSvc::Off);
    }
    let is_value = text.contains('=') && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_value.then(|| AltSvc::Value(text.to_owned())).ok_or_else(|| {
        let message = format!("{} is not an `Alt-Svc` value", quote(text));
        Problem::new(message, "write it as in `h3=\":443\"; ma=86400`, or `off`")
    })
}
