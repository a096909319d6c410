//! Places of each client: its open connections at a listener, or its active requests at a route, up to a maximum.

use super::network;
use std::{
    collections::HashMap,
    net::IpAddr,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Open connections of a listener, or active requests of a route, by client; counted only while there is a maximum.
pub(crate) struct ClientPlaces {
    /// Maximum number of each client; 0 for no maximum.
    most: AtomicUsize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// Guard that counts a connection or a request of a client.
pub(crate) struct ClientPlace {
    all: Arc<ClientPlaces>,
    client: IpAddr,
}

/// A client has its maximum number of connections or requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl ClientPlaces {
    pub(crate) fn new(most: Option<NonZeroUsize>) -> Arc<Self> {
        let all = Self { most: AtomicUsize::new(0), open: Mutex::default() };
        all.set_most(most);
        Arc::new(all)
    }

    /// Changes the maximum. What is open continues.
    pub(crate) fn set_most(&self, most: Option<NonZeroUsize>) {
        self.most.store(most.map_or(0, NonZeroUsize::get), Ordering::Relaxed);
    }

    /// Counts a connection or a request of a client while the guard lives; `None` without a maximum.
    ///
    /// # Errors
    /// If the client has its maximum.
    pub(crate) fn enter(self: &Arc<Self>, client: IpAddr) -> Result<Option<ClientPlace>, TooMany> {
        let most = self.most.load(Ordering::Relaxed);
        if most == 0 {
            return Ok(None);
        }
        let client = network::of_host(client);
        let mut open = self.lock();
        let count = open.entry(client).or_default();
        if *count >= most {
            return Err(TooMany);
        }
        *count += 1;
        drop(open);
        Ok(Some(ClientPlace { all: Arc::clone(self), client }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_client_has_so_many_connections_and_others_have_their_own() {
        let all = ClientPlaces::new(NonZeroUsize::new(2));
        let enter = |text: &str| all.enter(ip(text));
        let held = ["192.0.2.1", "::ffff:192.0.2.1"].map(|text| enter(text).expect("room"));
        assert_eq!(enter("192.0.2.1").err(), Some(TooMany));
        assert!(enter("192.0.2.2").is_ok());
        let held_v6 = ["2001:db8::1", "2001:db8::2"].map(|text| enter(text).expect("room"));
        assert_eq!(enter("2001:db8::3").err(), Some(TooMany));
        assert!(enter("2001:db8:0:1::3").is_ok());
        drop((held, held_v6));
        assert!(all.lock().is_empty(), "clients without connections are forgotten");
    }

    #[test]
    fn a_changed_maximum_applies_to_new_connections() {
        let all = ClientPlaces::new(None);
        assert!(all.enter(ip("192.0.2.1")).expect("no maximum").is_none());
        all.set_most(NonZeroUsize::new(1));
        let held = all.enter(ip("192.0.2.1")).expect("room");
        assert!(all.enter(ip("192.0.2.1")).is_err());
        all.set_most(None);
        drop(held);
        assert!(all.lock().is_empty());
    }
}
