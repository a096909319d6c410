//! Retries: the decision after a failed attempt, as a pure function, and the delay before the next one.

use crate::upstream::ExchangeError;
use quadrille_config::model::{RetryOn, RetryPolicy};
use std::time::Duration;

/// Upper bound of the first random delay; the bound triples with each further one.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Failure of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection was established: nothing was sent.
    Connect,
    /// The endpoint reported that it did not process the request.
    Refused,
    /// A connection that had been idle was closed before a response.
    Stale,
    /// No response was received.
    Reset,
    /// A response with this status.
    Status(u16),
}

/// The failed attempt that a decision is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    /// Number of attempts so far, this one included.
    pub(super) attempts: usize,
    /// Whether the method is idempotent (RFC 9110 section 9.2.2).
    pub(super) idempotent: bool,
    /// Whether the request opens a tunnel.
    pub(super) upgrade: bool,
    /// Whether the deadline of all attempts has passed.
    pub(super) out_of_time: bool,
    /// Whether the body can be sent again.
    pub(super) repeatable: bool,
}

/// Decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Retry after this delay.
    Again(Duration),
    /// Give up, for this reason.
    Stop(&'static str),
}

impl Failure {
    /// Classifies an error of an exchange on an established connection, which may have carried a request before; `None` if
    /// the endpoint did not cause it.
    pub(super) fn classify(error: &ExchangeError, reused: bool) -> Option<Self> {
        match error {
            ExchangeError::NotSent | ExchangeError::Refused | ExchangeError::BeyondGoaway => {
                Some(Self::Refused)
            }
            ExchangeError::Broken(_) if reused => Some(Self::Stale),
            ExchangeError::TimedOut | ExchangeError::Broken(_) => Some(Self::Reset),
            ExchangeError::Client(_) => None,
        }
    }

    /// Returns whether the endpoint has certainly not processed the request.
    fn is_unseen(self) -> bool {
        matches!(self, Self::Connect | Self::Refused)
    }
}

/// Decides whether an attempt with a failure that the policy lists is followed by another one.
pub(super) fn decide(policy: &RetryPolicy, failed: &Failed) -> Decision {
    let failure = failed.failure;
    if failed.attempts > policy.retries as usize {
        Decision::Stop("no retries are left")
    } else if failed.out_of_time {
        Decision::Stop("the deadline has passed")
    } else if failed.upgrade && !failure.is_unseen() {
        Decision::Stop("the request for another protocol may have been processed")
    } else if policy.idempotent_only && !failure.is_unseen() && !failed.idempotent {
        Decision::Stop("the method is not idempotent, and the request may have been processed")
    } else if !failed.repeatable {
        Decision::Stop("the request body is no longer complete")
    } else {
        Decision::Again(if policy.backoff { backoff(failed.attempts) } else { Duration::ZERO })
    }
}

/// Returns whether these conditions include a failure.
pub(super) fn is_listed(on: &RetryOn, failure: Failure) -> bool {
    let RetryOn {
        connect_failure,
        refused_stream,
        stale_connection,
        reset,
        server_error,
        gateway_error,
        conflict,
        statuses,
    } = on;
    match failure {
        // In Envoy, a missing response also counts as a 5xx and as a gateway error.
        Failure::Connect => *connect_failure || *server_error || *gateway_error,
        Failure::Refused => *refused_stream || *reset || *server_error,
        Failure::Stale => *stale_connection || *reset || *server_error || *gateway_error,
        Failure::Reset => *reset || *server_error || *gateway_error,
        Failure::Status(status) => {
            (*server_error && status >= 500)
                || (*gateway_error && matches!(status, 502..=504))
                || (*conflict && status == 409)
                || statuses.contains(&status)
        }
    }
}

/// Returns the random delay after this number of attempts.
fn backoff(attempts: usize) -> Duration {
    let retry = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    let limit = PAUSE.saturating_mul(3_u32.saturating_pow(retry));
    limit.min(LONGEST_PAUSE).mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(on: RetryOn) -> RetryPolicy {
        RetryPolicy { on, retries: 1, per_try_timeout: None, idempotent_only: false, backoff: true }
    }

    fn failed(failure: Failure) -> Failed {
        Failed {
            failure,
            attempts: 1,
            idempotent: true,
            upgrade: false,
            out_of_time: false,
            repeatable: true,
        }
    }

    fn retries(policy: &RetryPolicy, failed: &Failed) -> bool {
        is_listed(&policy.on, failed.failure) && matches!(decide(policy, failed), Decision::Again(_))
    }

    #[test]
    fn conditions_list_failures() {
        use Failure::{Connect, Refused, Reset, Stale, Status};
        let on = |change: fn(&mut RetryOn)| {
            let mut on = RetryOn::default();
            change(&mut on);
            policy(on)
        };
        let all = [Connect, Refused, Stale, Reset, Status(409), Status(500), Status(503), Status(505)];
        for (policy, expected) in [
            (on(|_| ()), &[][..]),
            (on(|on| on.connect_failure = true), &[Connect]),
            (on(|on| on.refused_stream = true), &[Refused]),
            (on(|on| on.stale_connection = true), &[Stale]),
            (on(|on| on.reset = true), &[Refused, Stale, Reset]),
            (
                on(|on| on.server_error = true),
                &[Connect, Refused, Stale, Reset, Status(500), Status(503), Status(505)],
            ),
            (on(|on| on.gateway_error = true), &[Connect, Stale, Reset, Status(503)]),
            (on(|on| on.conflict = true), &[Status(409)]),
            (on(|on| on.statuses = vec![505]), &[Status(505)]),
        ] {
            let listed: Vec<_> =
                all.into_iter().filter(|&failure| retries(&policy, &failed(failure))).collect();
            assert_eq!(listed, expected, "{policy:?}");
        }
    }

    #[test]
    fn every_reason_stops_retries() {
        let on = RetryOn { server_error: true, ..RetryOn::default() };
        let reset = failed(Failure::Reset);
        let policy = policy(on.clone());
        assert!(retries(&policy, &reset));
        for stopped in [
            Failed { attempts: 2, ..reset },
            Failed { out_of_time: true, ..reset },
            Failed { upgrade: true, ..reset },
            Failed { repeatable: false, ..reset },
            failed(Failure::Status(409)),
        ] {
            assert!(!retries(&policy, &stopped), "{stopped:?}");
        }
        assert!(retries(&policy, &Failed { upgrade: true, ..failed(Failure::Connect) }));
    }

    #[test]
    fn requests_that_may_have_been_processed_are_retried_if_idempotent() {
        let on = RetryOn { server_error: true, ..RetryOn::default() };
        let policy = RetryPolicy { idempotent_only: true, ..policy(on) };
        let post = |failure| Failed { idempotent: false, ..failed(failure) };
        assert!(retries(&policy, &post(Failure::Connect)) && retries(&policy, &failed(Failure::Reset)));
        assert!(!retries(&policy, &post(Failure::Reset)) && !retries(&policy, &post(Failure::Status(503))));
    }

    #[test]
    fn the_default_policy_retries_what_was_not_processed() {
        let policy = RetryPolicy::of_upstream(1);
        let post = |failure| Failed { idempotent: false, ..failed(failure) };
        assert_eq!(decide(&policy, &post(Failure::Connect)), Decision::Again(Duration::ZERO));
        assert!(retries(&policy, &post(Failure::Refused)) && retries(&policy, &failed(Failure::Stale)));
        assert!(!retries(&policy, &post(Failure::Stale)) && !retries(&policy, &failed(Failure::Reset)));
        assert!(!retries(&policy, &failed(Failure::Status(503))));
    }

    #[test]
    fn delays_grow_to_a_limit() {
        for attempts in 1..100 {
            let bound = LONGEST_PAUSE.min(PAUSE.saturating_mul(3_u32.saturating_pow(attempts as u32 - 1)));
            assert!(backoff(attempts) <= bound);
        }
    }
}
