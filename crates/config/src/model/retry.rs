//! Retries of failed requests.

use std::time::Duration;

/// A retry policy. A request is retried only while its body (of up to 64 KiB) is still buffered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// The failures that are retried.
    pub on: RetryOn,
    /// Maximum number of attempts after the first.
    pub retries: u32,
    /// Time limit of one attempt, until the response header; `None`: only the whole request has a limit.
    pub per_try_timeout: Option<Duration>,
    /// Whether a request that an endpoint may have processed is only repeated if its method is idempotent (RFC 9110
    /// section 9.2.2). Envoy: `false`.
    pub idempotent_only: bool,
    /// Whether a random, growing delay precedes a retry.
    pub backoff: bool,
}

impl RetryPolicy {
    /// The policy of an upstream, for routes without their own: retries at once, and only requests that were not processed,
    /// or that are idempotent and met a connection that had been closed while it was idle.
    pub fn of_upstream(retries: usize) -> Self {
        let on = RetryOn {
            connect_failure: true,
            refused_stream: true,
            stale_connection: true,
            ..RetryOn::default()
        };
        let retries = u32::try_from(retries).unwrap_or(u32::MAX);
        Self { on, retries, per_try_timeout: None, idempotent_only: true, backoff: false }
    }
}

/// The failures that are retried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RetryOn {
    /// The connection could not be opened.
    pub connect_failure: bool,
    /// The server has refused the HTTP/2 stream, unprocessed.
    pub refused_stream: bool,
    /// A connection that had been idle was closed before a response. `reset` includes it.
    pub stale_connection: bool,
    /// No response: the connection was closed, reset, or timed out.
    pub reset: bool,
    /// Any status of 500 and above, and `reset`.
    pub server_error: bool,
    /// 502, 503, 504.
    pub gateway_error: bool,
    /// 409.
    pub conflict: bool,
    /// These statuses.
    pub statuses: Vec<u16>,
}

impl RetryOn {
    /// Adds Envoy's condition of this name; returns whether it is known. `statuses` are those of
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
