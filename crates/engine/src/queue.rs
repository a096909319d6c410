//! The operations that wait: one queue for each key type, shared by all connections, certificates and workers.

use crate::{Depth, KeyType, policy::Waiting, ticket::Ticket};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

#[derive(Default)]
pub(crate) struct Queues {
    by_type: BTreeMap<KeyType, Queue>,
    /// Operations that somebody waits for, in all queues together.
    live: usize,
}

#[derive(Default)]
struct Queue {
    tickets: VecDeque<Arc<Ticket>>,
    withdrawn: usize,
}

impl Queues {
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    pub(crate) fn push(&mut self, ticket: Arc<Ticket>) {
        self.by_type.entry(ticket.key.key_type()).or_default().tickets.push_back(ticket);
        self.live += 1;
    }

    /// Nobody waits for this operation any more; true if it had not begun. Withdrawn tickets are swept when they are
    /// the larger half, so that clients that come and go cannot fill the memory.
    pub(crate) fn withdraw(&mut self, ticket: &Ticket) -> bool {
        if !ticket.withdraw() {
            return false;
        }
        self.live -= 1;
        let Some(queue) = self.by_type.get_mut(&ticket.key.key_type()) else { return true };
        queue.withdrawn += 1;
        while queue.tickets.pop_front_if(|first| first.is_over()).is_some() {
            queue.withdrawn -= 1;
        }
        if queue.withdrawn * 2 > queue.tickets.len() {
            queue.tickets.retain(|ticket| !ticket.is_over());
            queue.withdrawn = 0;
        }
        true
    }

    /// Takes up to `count` operations that somebody still waits for.
    pub(crate) fn take(&mut self, key_type: KeyType, count: usize) -> Vec<Arc<Ticket>> {
        let Some(queue) = self.by_type.get_mut(&key_type) else { return Vec::new() };
        let mut taken = Vec::with_capacity(count.min(queue.tickets.len()));
        while taken.len() < count {
            let Some(ticket) = queue.tickets.pop_front() else { break };
            if ticket.begin() {
                taken.push(ticket);
            } else {
                queue.withdrawn -= 1;
            }
        }
        self.live -= taken.len();
        taken
    }

    /// What waits, for the policy.
    pub(crate) fn waiting(&self, width: impl Fn(KeyType) -> usize) -> impl Iterator<Item = Waiting> {
        self.by_type.iter().filter_map(move |(&key_type, queue)| {
            let count = queue.tickets.len() - queue.withdrawn;
            let oldest = queue.tickets.front()?.submitted;
            (count > 0).then(|| Waiting { key_type, count, oldest, width: width(key_type) })
        })
    }

    /// What waits, for whoever watches.
    pub(crate) fn depths(&self) -> Vec<Depth> {
        let depth = |(&key_type, queue): (&KeyType, &Queue)| {
            let waiting = queue.tickets.len() - queue.withdrawn;
            Depth { key_type, waiting, oldest: queue.tickets.front().map(|first| first.submitted) }
        };
        self.by_type.iter().map(depth).collect()
    }
}
