//! The operations that wait: one queue for each key type, shared by all connections, certificates and workers.

use crate::{
    Batching, Depth, KeyType, Policy, Priority,
    load::Arrivals,
    policy::{LONGEST_DELAY, Waiting},
    ticket::{State, Ticket},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

#[derive(Default)]
pub(crate) struct Queues {
    by_type: BTreeMap<KeyType, Queue>,
    /// Number of operations in all queues that have not been withdrawn.
    live: usize,
}

struct Queue {
    urgent: VecDeque<Arc<Ticket>>,
    normal: VecDeque<Arc<Ticket>>,
    /// Number of withdrawn tickets in both.
    withdrawn: usize,
    /// Number of tickets taken, modulo [`NORMAL_ONE_IN`].
    taken: u8,
    batching: Batching,
    arrivals: Arrivals,
}

/// One ticket in this many is taken from normal operations, so that urgent ones cannot starve them.
const NORMAL_ONE_IN: u8 = 8;

impl Queues {
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// `batching` is called for the first ticket of each key type.
    pub(crate) fn push(&mut self, ticket: Arc<Ticket>, batching: impl FnOnce() -> Batching) {
        let now = ticket.submitted;
        let queue = self
            .by_type
            .entry(ticket.key.key_type())
            .or_insert_with(|| Queue::new(batching(), Arrivals::new(now)));
        queue.arrivals.arrived(now);
        queue.of_priority(ticket.priority).push_back(ticket);
        self.live += 1;
    }

    /// Withdraws an operation. Returns its state, to be dropped without locks. Withdrawn tickets are swept when they
    /// are the larger half, so that clients that connect and disconnect cannot exhaust memory.
    pub(crate) fn withdraw(&mut self, ticket: &Ticket) -> State {
        let before = ticket.withdraw();
        if before.is_waiting() {
            self.live -= 1;
            if let Some(queue) = self.by_type.get_mut(&ticket.key.key_type()) {
                queue.withdrawn += 1;
                queue.sweep();
            }
        }
        before
    }

    /// Returns how this type is batched, if any operation of it was ever queued.
    pub(crate) fn batching(&self, key_type: KeyType) -> Option<Batching> {
        self.by_type.get(&key_type).map(|queue| queue.batching)
    }

    /// Takes up to `count` operations that have not been withdrawn.
    pub(crate) fn take(&mut self, key_type: KeyType, count: usize) -> Vec<Arc<Ticket>> {
        self.take_from(key_type, count, Queue::next)
    }

    /// Takes up to `count` of the last operations in the order, except those already taken in this way.
    pub(crate) fn take_last(&mut self, key_type: KeyType, count: usize) -> Vec<Arc<Ticket>> {
        self.take_from(key_type, count, |queue| {
            [&mut queue.normal, &mut queue.urgent].into_iter().find_map(|tickets| {
                let fresh = tickets.back().is_some_and(|last| !last.was_put_back());
                if fresh { tickets.pop_back() } else { None }
            })
        })
    }

    /// `next` takes one ticket, or none when enough were taken.
    fn take_from(
        &mut self,
        key_type: KeyType,
        count: usize,
        next: impl Fn(&mut Queue) -> Option<Arc<Ticket>>,
    ) -> Vec<Arc<Ticket>> {
        let Some(queue) = self.by_type.get_mut(&key_type) else { return Vec::new() };
        let mut taken = Vec::with_capacity(count.min(queue.len()));
        while taken.len() < count {
            let Some(ticket) = next(queue) else { break };
            if ticket.begin() {
                taken.push(ticket);
            } else {
                queue.withdrawn -= 1;
            }
        }
        queue.sweep();
        self.live -= taken.len();
        taken
    }

    /// Queues tickets again, ahead of all others, that were taken and not computed. They were admitted before, and
    /// are not subject to the limit.
    pub(crate) fn put_back(&mut self, key_type: KeyType, tickets: Vec<Arc<Ticket>>) {
        let Some(queue) = self.by_type.get_mut(&key_type) else { return };
        // The last tickets were taken first.
        for ticket in tickets.into_iter().filter(|ticket| ticket.put_back()) {
            queue.of_priority(ticket.priority).push_front(ticket);
            self.live += 1;
        }
    }

    /// Returns whether a ticket that was put back waits at the front.
    pub(crate) fn begins_with_returned(&self, key_type: KeyType) -> bool {
        let fronts = self.by_type.get(&key_type).map(|queue| [queue.urgent.front(), queue.normal.front()]);
        fronts.into_iter().flatten().flatten().any(|first| first.was_put_back())
    }

    /// Returns the state of the queues for the policy.
    pub(crate) fn waiting(&self, now: Instant, policy: Policy) -> impl Iterator<Item = Waiting> {
        self.by_type.iter().filter_map(move |(&key_type, queue)| {
            let oldest = queue.oldest()?;
            let interval = queue.arrivals.interval(now);
            let (oldest_by_policy, deadline) = queue.delays(policy.most(queue.batching));
            let (count, batching) = (queue.live(), queue.batching);
            Some(Waiting { key_type, count, oldest, oldest_by_policy, deadline, interval, batching })
        })
    }

    /// Returns the depths of the queues for monitoring.
    pub(crate) fn depths(&self) -> Vec<Depth> {
        let depth = |(&key_type, queue): (&KeyType, &Queue)| Depth {
            key_type,
            waiting: queue.live(),
            oldest: queue.oldest(),
        };
        self.by_type.iter().map(depth).collect()
    }
}

impl Queue {
    fn new(batching: Batching, arrivals: Arrivals) -> Self {
        let (urgent, normal) = Default::default();
        Self { urgent, normal, withdrawn: 0, taken: 0, batching, arrivals }
    }

    fn of_priority(&mut self, priority: Priority) -> &mut VecDeque<Arc<Ticket>> {
        match priority {
            Priority::Urgent => &mut self.urgent,
            Priority::Normal => &mut self.normal,
        }
    }

    /// Returns the next ticket.
    fn next(&mut self) -> Option<Arc<Ticket>> {
        self.taken = (self.taken + 1) % NORMAL_ONE_IN;
        let (first, second) = match self.taken {
            0 => (&mut self.normal, &mut self.urgent),
            _ => (&mut self.urgent, &mut self.normal),
        };
        first.pop_front().or_else(|| second.pop_front())
    }

    fn oldest(&self) -> Option<Instant> {
        let fronts = [self.urgent.front(), self.normal.front()];
        fronts.into_iter().flatten().map(|first| first.submitted).min()
    }

    /// Returns the time since which the first of `most` tickets without a key-specific delay has waited, and the
    /// deadline of the first of the others. If there are more tickets, these go now, regardless of the delays of
    /// those behind.
    fn delays(&self, most: usize) -> (Option<Instant>, Option<Instant>) {
        let (mut oldest, mut deadline) = (None, None);
        let earlier = |first: &mut Option<Instant>, time: Instant| {
            *first = Some(first.map_or(time, |first| first.min(time)));
        };
        for ticket in self.urgent.iter().take(most).chain(self.normal.iter().take(most)) {
            match ticket.key.poll_delay() {
                None => earlier(&mut oldest, ticket.submitted),
                Some(delay) => earlier(&mut deadline, ticket.submitted + delay.min(LONGEST_DELAY)),
            }
        }
        (oldest, deadline)
    }

    fn len(&self) -> usize {
        self.urgent.len() + self.normal.len()
    }

    fn live(&self) -> usize {
        self.len() - self.withdrawn
    }

    /// Afterwards the first tickets, whose age the policy uses, are live, and at least half of all tickets are.
    fn sweep(&mut self) {
        for tickets in [&mut self.urgent, &mut self.normal] {
            while tickets.front().is_some_and(|first| first.is_over()) {
                tickets.pop_front();
                self.withdrawn -= 1;
            }
        }
        if self.withdrawn * 2 > self.len() {
            self.urgent.retain(|ticket| !ticket.is_over());
            self.normal.retain(|ticket| !ticket.is_over());
            self.withdrawn = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batching, Queues, Ticket};
    use crate::{Key, Operation, Policy, Priority, SignatureScheme};
    use boring::{
        ec::{EcGroup, EcKey},
        nid::Nid,
        pkey::PKey,
    };
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    struct Fixture {
        key: Key,
        start: Instant,
        queues: Queues,
    }

    impl Fixture {
        fn new() -> Self {
            let group = EcGroup::from_curve_name(Nid::SECP384R1).unwrap();
            let pkey = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
            let key = Key::from_pkey(pkey).unwrap();
            Self { key, start: Instant::now(), queues: Queues::default() }
        }

        /// Pushes a ticket that has waited since `second`.
        fn push(&mut self, second: u64) -> Arc<Ticket> {
            self.push_with(Priority::Normal, second)
        }

        fn push_with(&mut self, priority: Priority, second: u64) -> Arc<Ticket> {
            let operation = Operation::sign(SignatureScheme::EcdsaSha384, b"").unwrap();
            let submitted = self.start + Duration::from_secs(second);
            let ticket = Arc::new(Ticket::new(self.key.clone(), operation, submitted, priority));
            self.queues.push(Arc::clone(&ticket), || Batching::NEVER);
            ticket
        }

        /// Returns how many live tickets wait, and since which second the first of them has waited.
        fn waiting(&self) -> Option<(usize, u64)> {
            let waiting = self.queues.waiting(Instant::now(), Policy::default()).next()?;
            assert_eq!(waiting.count, self.queues.live());
            Some((waiting.count, waiting.oldest.duration_since(self.start).as_secs()))
        }

        fn memory(&self) -> usize {
            self.queues.by_type[&self.key.key_type()].len()
        }
    }

    #[test]
    fn age_is_the_age_of_a_live_ticket() {
        let mut all = Fixture::new();
        let tickets: Vec<_> = (0..6).map(|second| all.push(second)).collect();
        assert!(all.queues.withdraw(&tickets[1]).is_waiting());
        assert!(!all.queues.withdraw(&tickets[1]).is_waiting(), "only once");
        assert_eq!(all.waiting(), Some((5, 0)));
        assert_eq!(all.queues.take(all.key.key_type(), 1).len(), 1);
        assert_eq!(all.waiting(), Some((4, 2)), "the withdrawn one does not count");
        all.queues.withdraw(&tickets[2]);
        assert_eq!(all.waiting(), Some((3, 3)));
        assert!(!all.queues.withdraw(&tickets[0]).is_waiting(), "the operation was already taken");
        assert_eq!(all.queues.take(all.key.key_type(), 100).len(), 3);
        assert_eq!(all.waiting(), None);
    }

    #[test]
    fn urgent_tickets_pass_by_the_others_which_keep_one_turn_in_eight() {
        let mut all = Fixture::new();
        (0..4).for_each(|second| _ = all.push(second));
        (10..30).for_each(|second| _ = all.push_with(Priority::Urgent, second));
        assert_eq!(all.waiting(), Some((24, 0)), "the oldest of both priorities");
        let (key_type, start) = (all.key.key_type(), all.start);
        let mut taken = |count| -> Vec<u64> {
            let tickets = all.queues.take(key_type, count);
            tickets.iter().map(|ticket| ticket.submitted.duration_since(start).as_secs()).collect()
        };
        assert_eq!(taken(8), [10, 11, 12, 13, 14, 15, 16, 0]);
        assert_eq!(taken(16), [17, 18, 19, 20, 21, 22, 23, 1, 24, 25, 26, 27, 28, 29, 2, 3]);
        assert_eq!(all.waiting(), None);
    }

    #[test]
    fn withdrawn_tickets_are_never_the_larger_part() {
        let mut all = Fixture::new();
        let _first = all.push(0);
        for second in 1..1000 {
            let ticket = all.push(second);
            assert!(all.queues.withdraw(&ticket).is_waiting());
            assert!(all.memory() <= 2, "{} tickets for one live operation", all.memory());
        }
        let more: Vec<_> = (0..1000).map(|second| all.push(1000 + second)).collect();
        for (ticket, live) in more.iter().rev().zip((1..=1000).rev()) {
            all.queues.withdraw(ticket);
            assert!(all.memory() <= 2 * live, "{} tickets for {live} live operations", all.memory());
        }
        assert_eq!(all.waiting(), Some((1, 0)));
    }
}
