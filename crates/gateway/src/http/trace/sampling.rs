//! Sampling under Envoy's configuration: by client request, at random, and by the decisions of previous gateways,
//! which `x-request-id` carries.

use crate::http::request::request_id::REQUEST_ID;
use http::{HeaderMap, HeaderName, HeaderValue};
use quadrille_config::model::{TraceSampling, TraceShare};

pub(super) const CLIENT_TRACE_ID: HeaderName = HeaderName::from_static("x-client-trace-id");
const FORCE_TRACE: HeaderName = HeaderName::from_static("x-envoy-force-trace");

/// Length of a UUID in characters, and the position of the reason in it.
const UUID: usize = 36;
const REASON: usize = 14;

/// Reason why a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The request is not recorded.
    None,
    Chance,
    Server,
    Client,
}

impl Reason {
    pub(super) fn is_recorded(self) -> bool {
        self != Self::None
    }
}

/// Request properties that determine the sampling decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// Decision of a previous gateway.
    reason: Reason,
    /// Number from the request ID; without an ID that is a UUID, the request is not recorded.
    number: Option<u64>,
    client: bool,
    forced: bool,
}

impl Said {
    /// Reads the properties. Decisions of clients that are `outside` are ignored.
    pub(super) fn by(headers: &HeaderMap, outside: bool) -> Self {
        let name = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let name = name.filter(|name| name.len() == UUID && name.is_ascii());
        let reason = match name.map(|name| name.as_bytes()[REASON]) {
            Some(b'9') if !outside => Reason::Chance,
            Some(b'a') if !outside => Reason::Server,
            Some(b'b') if !outside => Reason::Client,
            _ => Reason::None,
        };
        let number = name.and_then(|name| u32::from_str_radix(&name[..8], 16).ok());
        Self {
            reason,
            number: number.map(|number| u64::from(number) % 10_000),
            client: headers.contains_key(CLIENT_TRACE_ID),
            forced: headers.contains_key(FORCE_TRACE),
        }
    }

    pub(super) fn decide(self, sampling: &TraceSampling) -> Reason {
        let Some(number) = self.number else { return Reason::None };
        let by_chance = |share: TraceShare| share.takes(fastrand::u64(..));
        let reason = match self.reason {
            Reason::None if self.client && by_chance(sampling.client) => Reason::Client,
            Reason::None if self.forced => Reason::Server,
            Reason::None if sampling.random.takes(number) => Reason::Chance,
            before => before,
        };
        if sampling.overall.takes(number) { reason } else { Reason::None }
    }

    /// Passes the decision to the next gateways in the request ID.
    pub(super) fn tell(self, reason: Reason, headers: &mut HeaderMap) {
        let Some(name) = headers.get(REQUEST_ID).filter(|_| self.number.is_some()) else { return };
        let mut name = name.as_bytes().to_vec();
        let Some(place) = name.get_mut(REASON) else { return };
        *place = match reason {
            Reason::None => b'4',
            Reason::Chance => b'9',
            Reason::Server => b'a',
            Reason::Client => b'b',
        };
        if let Ok(name) = HeaderValue::from_bytes(&name) {
            headers.insert(REQUEST_ID, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "00000a98-3ab7-457e-b02d-f144dee51d25";

    fn said(name: &str, others: &[&'static str], outside: bool) -> Said {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_str(name).unwrap());
        for name in others {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        Said::by(&headers, outside)
    }

    fn random(numerator: u32) -> TraceSampling {
        TraceSampling { random: TraceShare { numerator, denominator: 10_000 }, ..TraceSampling::ALL }
    }

    #[test]
    fn the_name_decides_by_chance_and_what_was_decided_before_holds() {
        // 0xa98 is 2712.
        for (name, others, numerator, expected) in [
            (NAME, &[][..], 2713, Reason::Chance),
            (NAME, &[], 2712, Reason::None),
            (NAME, &["x-client-trace-id"], 0, Reason::Client),
            (NAME, &["x-envoy-force-trace"], 0, Reason::Server),
            (&NAME.replace("-457e", "-957e"), &[], 0, Reason::Chance),
            (&NAME.replace("-457e", "-a57e"), &[], 0, Reason::Server),
            ("mine", &["x-client-trace-id"], 10_000, Reason::None),
        ] {
            assert_eq!(said(name, others, false).decide(&random(numerator)), expected, "{name} {others:?}");
        }
        let forged = NAME.replace("-457e", "-957e");
        assert_eq!(said(&forged, &[], true).decide(&random(0)), Reason::None, "external decision ignored");
        let none =
            TraceSampling { overall: TraceShare { numerator: 0, denominator: 1 }, ..TraceSampling::ALL };
        assert_eq!(said(&forged, &["x-client-trace-id"], false).decide(&none), Reason::None);
    }

    #[test]
    fn the_decision_is_stored_in_the_id() {
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, HeaderValue::from_static(NAME));
        let said = Said::by(&headers, false);
        said.tell(Reason::Client, &mut headers);
        assert_eq!(headers[REQUEST_ID], NAME.replace("-457e", "-b57e"));
        assert_eq!(Said::by(&headers, false).reason, Reason::Client);
    }
}
