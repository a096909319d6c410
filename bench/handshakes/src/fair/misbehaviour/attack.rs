//! All clients of one misbehaviour, each in a thread.

use std::{
    net::SocketAddr,
    sync::atomic::AtomicBool,
    thread::{self, Scope, ScopedJoinHandle},
};

use super::{
    client::{Client, Counts, PAUSE},
    kind::Misbehaviour,
};

/// The running clients of one misbehaviour.
pub(in crate::fair) struct Attack<'scope>(Vec<ScopedJoinHandle<'scope, ()>>);

/// Size of a client's stack.
const STACK: usize = 256 << 10;

impl<'scope> Attack<'scope> {
    /// Starts all clients of a misbehaviour, which end within a second after `stop`.
    pub(in crate::fair) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        misbehaviour: Misbehaviour,
        server: SocketAddr,
        stop: &'env AtomicBool,
        counts: &'env Counts,
    ) -> Self {
        let run = move || {
            let client = Client { server, stop, counts };
            while !client.is_over() {
                if (misbehaviour.run)(&client).is_err() && !client.is_over() {
                    client.count_end();
                    thread::sleep(PAUSE);
                }
            }
        };
        let start = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).ok();
        Self((0..misbehaviour.connections).filter_map(start).collect())
    }

    /// Waits until all clients have ended, after `stop`.
    pub(in crate::fair) fn join(self) {
        for client in self.0 {
            let _ = client.join();
        }
    }
}
