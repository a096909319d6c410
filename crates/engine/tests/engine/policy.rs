//! Single decisions of the policy, with time as an argument.

use quadrille_engine::{
    Batching, KeyType, Policy,
    policy::{Decision, Waiting},
};
use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

const RSA: KeyType = KeyType::Rsa { bits: 2048 };
const EC: KeyType = KeyType::EcdsaP384;
const DELAY: Duration = Duration::from_millis(2);

fn count(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

fn queue(key_type: KeyType, waiting: usize, oldest: Instant, width: usize, crossover: usize) -> Waiting {
    let batching = Batching { width, half: width, crossover, most: usize::MAX, price: Duration::ZERO };
    let oldest_by_policy = Some(oldest);
    Waiting { key_type, count: waiting, oldest, oldest_by_policy, deadline: None, interval: None, batching }
}

fn policy(poll_delay: Duration, batch: usize) -> Policy {
    Policy { poll_delay, batch: count(batch), ..Policy::default() }
}

/// Returns how many of `waiting` operations a thread takes.
fn taken(policy: Policy, waiting: usize, (width, crossover): (usize, usize), free: usize) -> usize {
    let now = Instant::now();
    match policy.decide(now, [queue(RSA, waiting, now, width, crossover)].into_iter(), count(free), 0.0) {
        Decision::Take { key_type: RSA, count } => count,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_waits() {
    let decision = Policy::default().decide(Instant::now(), [].into_iter(), count(1), 0.0);
    assert_eq!(decision, Decision::Sleep);
}

#[test]
fn by_default_what_waits_goes_at_once() {
    assert_eq!(taken(Policy::default(), 1, (8, 1), 1), 1);
    assert_eq!(taken(Policy::default(), 5, (8, 1), 1), 5);
    assert_eq!(taken(Policy::default(), 100, (8, 1), 1), 8, "but no more than the limit");
}

#[test]
fn free_threads_share_what_a_pass_would_not_compute_cheaper() {
    assert_eq!(taken(Policy::default(), 8, (1, 1), 4), 2);
    assert_eq!(taken(Policy::default(), 9, (1, 1), 4), 3);
    assert_eq!(taken(Policy::default(), 3, (1, 1), 4), 1);
    assert_eq!(taken(Policy::default(), 2, (8, 3), 2), 1, "below the crossover");
}

#[test]
fn a_pass_is_not_shared() {
    assert_eq!(taken(Policy::default(), 3, (8, 3), 2), 3);
    assert_eq!(taken(Policy::default(), 8, (8, 3), 4), 8);
    assert_eq!(taken(policy(Duration::ZERO, 32), 32, (8, 3), 2), 16);
    assert_eq!(taken(policy(Duration::ZERO, 32), 20, (8, 3), 2), 16, "whole passes first");
}

#[test]
fn the_limit_is_in_whole_passes_and_never_less_than_one() {
    assert_eq!(taken(policy(Duration::ZERO, 1), 100, (8, 1), 1), 8);
    assert_eq!(taken(policy(Duration::ZERO, 20), 100, (8, 1), 1), 16);
    assert_eq!(taken(policy(Duration::ZERO, 5), 100, (1, 1), 1), 5);
    assert_eq!(taken(policy(Duration::ZERO, usize::MAX), 100, (8, 1), 1), 96);
}

#[test]
fn with_a_delay_a_batch_goes_when_its_first_operation_has_waited() {
    let (policy, then) = (policy(DELAY, 8), Instant::now());
    let decide = |now| policy.decide(now, [queue(RSA, 3, then, 8, 1)].into_iter(), count(2), 0.0);
    assert_eq!(decide(then), Decision::WaitUntil(then + DELAY));
    assert_eq!(decide(then + DELAY / 2), Decision::WaitUntil(then + DELAY));
    assert_eq!(decide(then + DELAY), Decision::Take { key_type: RSA, count: 3 });
}

#[test]
fn with_a_delay_a_full_batch_goes_at_once_and_together() {
    assert_eq!(taken(policy(DELAY, 8), 8, (8, 1), 1), 8);
    assert_eq!(taken(policy(DELAY, 8), 8, (1, 1), 4), 8, "parts of it would have to wait again");
    assert_eq!(taken(policy(DELAY, 8), 9, (1, 1), 4), 8);
}

#[test]
fn a_delay_without_end_does_not_overflow() {
    let now = Instant::now();
    let decision =
        policy(Duration::MAX, 8).decide(now, [queue(RSA, 1, now, 8, 1)].into_iter(), count(1), 0.0);
    assert!(matches!(decision, Decision::WaitUntil(due) if due > now));
}

#[test]
fn the_queue_that_has_waited_longest_goes_first() {
    let (then, later) = (Instant::now(), Instant::now() + Duration::from_millis(1));
    let queues = [queue(RSA, 100, later, 8, 1), queue(EC, 1, then, 1, 1)];
    for queues in [queues, [queues[1], queues[0]]] {
        let decision = Policy::default().decide(later, queues.into_iter(), count(1), 0.0);
        assert_eq!(decision, Decision::Take { key_type: EC, count: 1 });
    }
}

#[test]
fn a_full_batch_does_not_wait_for_an_older_one_that_is_not_due() {
    let then = Instant::now();
    let now = then + DELAY / 2;
    let queues = [queue(EC, 1, then, 1, 1), queue(RSA, 8, now, 8, 1)];
    let decision = policy(DELAY, 8).decide(now, queues.into_iter(), count(1), 0.0);
    assert_eq!(decision, Decision::Take { key_type: RSA, count: 8 });
    let queues = [queue(EC, 1, then, 1, 1), queue(RSA, 7, now, 8, 1)];
    let decision = policy(DELAY, 8).decide(now, queues.into_iter(), count(1), 0.0);
    assert_eq!(decision, Decision::WaitUntil(then + DELAY), "the first that will be due");
}

/// RSA in lanes of eight, where four cost half: a pass of those takes 250 us of CPU, and operations arrive at
/// `interval`.
fn lanes(waiting: usize, oldest: Instant, interval: Duration) -> Waiting {
    let batching =
        Batching { width: 8, half: 4, crossover: 1, most: usize::MAX, price: Duration::from_micros(250) };
    let (interval, oldest_by_policy) = (Some(interval), Some(oldest));
    Waiting { key_type: RSA, count: waiting, oldest, oldest_by_policy, deadline: None, interval, batching }
}

/// Returns the decision for `waiting` operations, the first of which has just arrived.
fn decided(waiting: usize, interval: u64, scarcity: f64) -> Result<usize, Duration> {
    let now = Instant::now();
    let queue = lanes(waiting, now, Duration::from_micros(interval));
    match Policy::default().decide(now, [queue].into_iter(), count(1), scarcity) {
        Decision::Take { count, .. } => Ok(count),
        Decision::WaitUntil(due) => Err(due - now),
        Decision::Sleep => panic!("something waits"),
    }
}

#[test]
fn where_cpu_is_scarce_operations_wait_for_company() {
    let budget = Policy::LATENCY_BUDGET;
    assert_eq!(decided(1, 200, 2.0), Err(budget));
    assert_eq!(decided(1, 200, 0.1), Ok(1), "operations do not wait while CPU is plentiful");
    assert_eq!(decided(3, 200, 2.0), Ok(3), "three are delayed by more than a pass costs");
    assert_eq!(decided(3, 200, 10.0), Err(budget));
    assert_eq!(decided(1, 2_000, 100.0), Ok(1), "no arrival is expected within the budget");
}

#[test]
fn waiting_ends_once_half_a_pass_is_full_or_the_budget_is_used_up() {
    assert_eq!(decided(4, 200, 100.0), Ok(4));
    assert_eq!(decided(7, 200, 100.0), Ok(4), "the rest is half a pass by itself");
    assert_eq!(decided(8, 200, 100.0), Ok(8));
    let then = Instant::now();
    let queue = lanes(2, then, Duration::from_micros(200));
    let now = then + Policy::LATENCY_BUDGET;
    let decision = Policy::default().decide(now, [queue].into_iter(), count(1), 100.0);
    assert_eq!(decision, Decision::Take { key_type: RSA, count: 2 });
    let never = Policy { latency_budget: Duration::ZERO, ..Policy::default() };
    let decision = never.decide(then, [queue].into_iter(), count(1), 100.0);
    assert_eq!(decision, Decision::Take { key_type: RSA, count: 2 });
}

#[test]
fn a_delay_of_a_key_holds_beside_the_policys() {
    let (start, free) = (Instant::now(), count(1));
    let decide = |policy: &Policy, queue: Waiting, after: Duration| {
        policy.decide(start + after, [queue].into_iter(), free, 0.0)
    };
    let own = |delay| {
        let deadline = Some(start + delay);
        Waiting { oldest_by_policy: None, deadline, ..queue(RSA, 2, start, 8, 1) }
    };
    let none = Policy::default();
    assert_eq!(decide(&none, own(DELAY), Duration::ZERO), Decision::WaitUntil(start + DELAY));
    assert_eq!(decide(&none, own(DELAY), DELAY), Decision::Take { key_type: RSA, count: 2 });
    let full = Waiting { count: 8, ..own(DELAY) };
    assert_eq!(decide(&none, full, Duration::ZERO), Decision::Take { key_type: RSA, count: 8 });
    let long = policy(DELAY * 2, 8);
    assert_eq!(
        decide(&long, own(Duration::ZERO), Duration::ZERO),
        Decision::Take { key_type: RSA, count: 2 }
    );
    // The first operation that has waited long enough takes the others with it, regardless of longer delays.
    let mixed = Waiting { oldest_by_policy: Some(start), ..own(DELAY) };
    assert_eq!(decide(&long, mixed, Duration::ZERO), Decision::WaitUntil(start + DELAY));
    assert_eq!(decide(&none, mixed, Duration::ZERO), Decision::Take { key_type: RSA, count: 2 });
}
