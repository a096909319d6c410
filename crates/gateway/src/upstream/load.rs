//! How busy each server is: what is under way there.

use pingora_core::protocols::l4::socket::SocketAddr as PeerAddress;
use pingora_load_balancing::Backend;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Requests, or connections in TCP mode, of each server that has any.
#[derive(Debug, Default)]
pub(super) struct Load(Mutex<HashMap<SocketAddr, u64>>);

/// One of them, for as long as it lives.
#[derive(Debug)]
pub(super) struct LoadGuard {
    load: Arc<Load>,
    address: SocketAddr,
}

impl Load {
    pub(super) fn begin(self: &Arc<Self>, address: SocketAddr) -> LoadGuard {
        *self.counts().entry(address).or_default() += 1;
        LoadGuard { load: Arc::clone(self), address }
    }

    /// The one with less to do for its weight; the first of two that are alike.
    pub(super) fn less_busy(&self, one: Backend, other: Backend) -> Backend {
        let counts = self.counts();
        let active = |backend: &Backend| match &backend.addr {
            PeerAddress::Inet(address) => u128::from(counts.get(address).copied().unwrap_or_default()),
            PeerAddress::Unix(_) => 0,
        };
        let (of_one, of_other) = (active(&one), active(&other));
        // As fractions: active by weight.
        if of_other * (one.weight as u128) < of_one * (other.weight as u128) { other } else { one }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<SocketAddr, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        let mut counts = self.load.counts();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, Backend, Load, SocketAddr};

    #[test]
    fn the_less_busy_one_by_weight() {
        let load = Arc::new(Load::default());
        let backend = |port: u16, weight| {
            Backend::new_with_weight(&format!("127.0.0.1:{port}"), weight).expect("an address")
        };
        let at = |port: u16| ([127, 0, 0, 1], port).into();
        let less = |weights: [usize; 2]| {
            load.less_busy(backend(1, weights[0]), backend(2, weights[1]))
                .addr
                .as_inet()
                .map(SocketAddr::port)
        };
        assert_eq!(less([1, 1]), Some(1), "nothing is under way");
        let first = load.begin(at(1));
        assert_eq!(less([1, 1]), Some(2));
        let second = load.begin(at(2));
        assert_eq!(less([1, 1]), Some(1));
        assert_eq!(less([1, 2]), Some(2), "twice as strong");
        drop(second);
        drop(first);
        assert!(load.counts().is_empty(), "what is over is forgotten");
    }
}
