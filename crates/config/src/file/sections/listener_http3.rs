//! HTTP/3 of a listener, and how clients hear of it.

use crate::{
    Field, Problem,
    model::{AltSvc, Http3},
    text::quote,
    words::switch,
};
use serde_json::Value;

/// What has been read of it.
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

    /// What the listener has; `field` is the listener.
    pub(super) fn take(&mut self, field: &Field<'_>) -> Option<Http3> {
        let alt_svc = self.alt_svc.take();
        if alt_svc.is_some() && !self.on {
            let problem = Problem::new("there is no HTTP/3 to tell of", "add `http3: on`, or remove this");
            field.at("alt_svc").error(problem);
        }
        self.on.then(|| Http3 { alt_svc: alt_svc.unwrap_or_default() })
    }
}

/// As the key has it; nothing where nothing was said.
pub(super) fn show_alt_svc(http3: Option<&Http3>) -> Value {
    match http3.map(|http3| &http3.alt_svc) {
        None | Some(AltSvc::SamePort) => Value::Null,
        Some(AltSvc::Off) => false.into(),
        Some(AltSvc::Value(value)) => value.as_str().into(),
    }
}

/// An alternative is `id=authority` (RFC 7838 section 3), in what may stand in a header (RFC 9110 section 5.5).
fn alt_svc(text: &str) -> Result<AltSvc, Problem> {
    if switch(text) == Ok(false) {
        return Ok(AltSvc::Off);
    }
    let is_value = text.contains('=') && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_value.then(|| AltSvc::Value(text.to_owned())).ok_or_else(|| {
        let message = format!("{} is no value of Alt-Svc", quote(text));
        Problem::new(message, "write it as `h3=\":443\"; ma=86400`, or `off`")
    })
}
