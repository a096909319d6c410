//! Which failures of servers are tried again.

use std::time::Duration;

/// Which failures are tried again, and how often. A request is repeated only while its body (of up to 64 KiB) is still
/// there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// What counts as a failure.
    pub on: RetryOn,
    /// Attempts after the first.
    pub retries: u32,
    /// How long one attempt may take to the answer's header; `None`: only the whole has a limit.
    pub per_try_timeout: Option<Duration>,
    /// Once a server may have seen a request, repeat it only if its method is idempotent (RFC 9110 section 9.2.2).
    /// Envoy: `false`.
    pub idempotent_only: bool,
}

/// What counts as a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RetryOn {
    /// No connection.
    pub connect_failure: bool,
    /// HTTP/2: the server has refused the stream, unseen.
    pub refused_stream: bool,
    /// No answer: the connection was closed, reset, or too slow.
    pub reset: bool,
    /// Any status of 500 and above, and what `reset` means.
    pub server_error: bool,
    /// 502, 503, 504.
    pub gateway_error: bool,
    /// 409.
    pub conflict: bool,
    /// These.
    pub statuses: Vec<u16>,
}

impl RetryOn {
    /// Adds what Envoy calls by this name; whether there is such a condition. `statuses` are those of
    /// `retriable-status-codes`.
    pub fn add(&mut self, condition: &str, statuses: &[u16]) -> bool {
        match condition {
            "5xx" => {
                self.server_error = true;
                self.no_answer();
            }
            "gateway-error" => {
                self.gateway_error = true;
                self.no_answer();
            }
            "reset" => self.no_answer(),
            "connect-failure" | "reset-before-request" => self.connect_failure = true,
            "refused-stream" => self.refused_stream = true,
            "retriable-4xx" => self.conflict = true,
            "retriable-status-codes" => self.statuses.extend(statuses),
            // Istio writes statuses among the conditions.
            _ => match condition.parse() {
                Ok(status) => self.statuses.push(status),
                Err(_) => return false,
            },
        }
        true
    }

    fn no_answer(&mut self) {
        self.reset = true;
        self.connect_failure = true;
        self.refused_stream = true;
    }
}
