//! Which failures are tried again.

use crate::upstream::ExchangeError;
use quadrille_config::model::{RetryOn, RetryPolicy};
use std::time::Duration;

/// The first pause is random up to this, the next up to three times as much, and so on.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How an attempt has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection: nothing was sent.
    Connect,
    /// The server has said that it has not looked at it.
    Refused,
    /// No answer.
    Reset,
    /// An answer with this status.
    Status(u16),
}

impl Failure {
    /// How an exchange failed that ended in this error after a connection was there; `None` if it was not the server.
    pub(super) fn classify(error: &ExchangeError) -> Option<Self> {
        match error {
            ExchangeError::NotSent | ExchangeError::Refused => Some(Self::Refused),
            ExchangeError::TimedOut | ExchangeError::Broken(_) => Some(Self::Reset),
            ExchangeError::Client(_) => None,
        }
    }
}

/// Whether a policy lets a failure be tried again.
pub(super) fn is_allowed(policy: &RetryPolicy, failure: Failure, idempotent: bool) -> bool {
    let RetryOn { connect_failure, refused_stream, reset, server_error, gateway_error, conflict, statuses } =
        &policy.on;
    let unseen = matches!(failure, Failure::Connect | Failure::Refused);
    let named = match failure {
        // In Envoy, what has no answer counts as a 5xx and as a gateway error too.
        Failure::Connect => *connect_failure || *server_error || *gateway_error,
        Failure::Refused => *refused_stream || *reset || *server_error,
        Failure::Reset => *reset || *server_error || *gateway_error,
        Failure::Status(status) => {
            (*server_error && status >= 500)
                || (*gateway_error && matches!(status, 502..=504))
                || (*conflict && status == 409)
                || statuses.contains(&status)
        }
    };
    named && (unseen || idempotent || !policy.idempotent_only)
}

/// Before an attempt, of which the first has number 0.
pub(super) fn backoff(attempt: usize) -> Duration {
    let Some(retry) = attempt.checked_sub(1) else { return Duration::ZERO };
    let limit = PAUSE.saturating_mul(3_u32.saturating_pow(u32::try_from(retry).unwrap_or(u32::MAX)));
    limit.min(LONGEST_PAUSE).mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_failures() {
        use Failure::{Connect, Refused, Reset, Status};
        let on = |change: fn(&mut RetryOn)| {
            let mut on = RetryOn::default();
            change(&mut on);
            RetryPolicy { on, retries: 1, per_try_timeout: None, idempotent_only: false }
        };
        let all = [Connect, Refused, Reset, Status(409), Status(500), Status(503), Status(505)];
        for (policy, expected) in [
            (on(|_| ()), &[][..]),
            (on(|on| on.connect_failure = true), &[Connect]),
            (on(|on| on.refused_stream = true), &[Refused]),
            (on(|on| on.reset = true), &[Refused, Reset]),
            (
                on(|on| on.server_error = true),
                &[Connect, Refused, Reset, Status(500), Status(503), Status(505)],
            ),
            (on(|on| on.gateway_error = true), &[Connect, Reset, Status(503)]),
            (on(|on| on.conflict = true), &[Status(409)]),
            (on(|on| on.statuses = vec![505]), &[Status(505)]),
        ] {
            let wanted: Vec<_> =
                all.into_iter().filter(|failure| is_allowed(&policy, *failure, false)).collect();
            assert_eq!(wanted, expected, "{policy:?}");
        }
    }

    #[test]
    fn what_a_server_may_have_seen_is_repeated_with_care() {
        let on = RetryOn { server_error: true, ..RetryOn::default() };
        let policy = RetryPolicy { on, retries: 1, per_try_timeout: None, idempotent_only: true };
        assert!(is_allowed(&policy, Failure::Connect, false) && is_allowed(&policy, Failure::Reset, true));
        assert!(
            !is_allowed(&policy, Failure::Reset, false) && !is_allowed(&policy, Failure::Status(503), false)
        );
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(backoff(0), Duration::ZERO);
        for attempt in 1..100 {
            assert!(backoff(attempt) <= LONGEST_PAUSE.min(PAUSE * 3_u32.saturating_pow(attempt as u32 - 1)));
        }
    }
}
