//! Names outside the configuration whose certificates are ordered when a client requests them in a handshake.
//!
//! ```text
//!  a handshake ── wish ──> OnDemand ── the keeper queries the service ──> granted: treated like a configured name
//! ```
//!
//! Granted names stay granted: the service is needed only for new ones.

use crate::{AcmeError, StateDirectory, UnixTime, files, schedule::if_plausible};
use quadrille_config::{
    acme_values::certificate_name,
    model::{Acme, AcmeOnDemand, AcmeOrder},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// File of the granted names in the state directory and in the fleet.
pub(crate) const FILE: &str = "on-demand.json";

/// Maximum number of pending names. A flood of names delays others, and has no other effect.
const MOST_WISHES: usize = 64;
/// Maximum number of denied names held.
const MOST_REFUSALS: usize = 4096;
const HOUR: i64 = 3600;

/// Names requested by clients. Shared by the listeners and the task that orders.
#[derive(Default)]
pub struct OnDemand(Mutex<Table>);

#[derive(Default)]
struct Table {
    wishes: VecDeque<String>,
    /// Time until which each denied name is not submitted again.
    refused: HashMap<String, UnixTime>,
    granted: Granted,
}

/// Granted names, with the time of each grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted(BTreeMap<String, UnixTime>);

impl OnDemand {
    /// Registers a name, in lower case, for which there is no certificate. Returns whether one may be available soon;
    /// then the client should retry rather than get another certificate.
    ///
    /// Listeners call this only if on-demand certificates are enabled, possibly before the ordering task has started;
    /// names stay pending until then.
    pub fn wish(&self, name: &str, now: UnixTime) -> bool {
        let mut table = self.table();
        if !is_name(name) {
            return false;
        }
        if table.granted.0.contains_key(name) || table.wishes.iter().any(|wish| wish == name) {
            return true;
        }
        let is_refused = table.refused.get(name).is_some_and(|until| now < *until);
        if is_refused || table.wishes.len() >= MOST_WISHES {
            return false;
        }
        table.wishes.push_back(name.to_owned());
        true
    }

    /// Sets the granted names of this state directory.
    pub(crate) fn know(&self, granted: Granted) {
        let mut table = self.table();
        table.wishes.retain(|wish| !granted.0.contains_key(wish));
        table.granted = granted;
    }

    /// Disables on-demand certificates.
    pub(crate) fn forget(&self) {
        let mut table = self.table();
        table.wishes.clear();
        table.granted = Granted::default();
    }

    /// Returns the name that has been pending longest. It stays pending until [granted](Self::know) or
    /// [refused](Self::refuse).
    pub(crate) fn next(&self) -> Option<String> {
        self.table().wishes.front().cloned()
    }

    /// Denies a name; it is not submitted again before `until`.
    pub(crate) fn refuse(&self, name: &str, now: UnixTime, until: UnixTime) {
        let mut table = self.table();
        table.wishes.retain(|wish| wish != name);
        if table.refused.len() >= MOST_REFUSALS {
            table.refused.retain(|_, until| now < *until);
        }
        if table.refused.len() < MOST_REFUSALS {
            table.refused.insert(name.to_owned(), until);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Granted {
    /// Reads the granted names; empty if the file does not exist or cannot be read.
    pub(crate) fn read(state: &StateDirectory) -> Self {
        let json = files::read(&state.path(FILE)).ok().flatten();
        json.and_then(|json| Self::parse(&json)).unwrap_or_default()
    }

    /// Returns `None` if the file is invalid or contains anything but names.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        let granted: Self = serde_json::from_slice(json).ok()?;
        granted.0.keys().all(|name| is_name(name)).then_some(granted)
    }

    pub(crate) fn to_json(&self) -> Result<Vec<u8>, AcmeError> {
        serde_json::to_vec_pretty(self).map_err(|error| AcmeError::File(error.to_string()))
    }

    pub(crate) fn insert(&mut self, name: &str, now: UnixTime) {
        self.0.insert(name.to_owned(), now);
    }

    /// Removes a name. Returns whether it was present.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// Returns why no further name is granted now, and until when.
    pub(crate) fn limit(&self, on_demand: &AcmeOnDemand, now: UnixTime) -> Option<(&'static str, UnixTime)> {
        if self.0.len() >= on_demand.names.get() {
            return Some(("the number of names has reached `acme.on_demand.names`", now + HOUR));
        }
        let granted = self.0.values().map(|granted| if_plausible(*granted, now));
        let lately: Vec<_> = granted.filter(|granted| *granted > now - HOUR).collect();
        let again = lately.iter().min().map_or(now, |first| first + HOUR);
        (lately.len() >= on_demand.per_hour.get()).then_some((
            "the number of new names in an hour has reached `acme.on_demand.per_hour`",
            again.max(now + 1),
        ))
    }

    /// Returns the files of their certificates in the state directory.
    pub(crate) fn files(&self, settings: &AcmeOnDemand) -> Vec<String> {
        let path = |order: AcmeOrder| order.file(Path::new("")).display().to_string();
        self.orders(settings).map(path).collect()
    }

    /// Returns the orders for these names.
    pub(crate) fn orders(&self, settings: &AcmeOnDemand) -> impl Iterator<Item = AcmeOrder> {
        self.0.keys().map(|name| settings.order(name.clone()))
    }
}

/// Returns the orders granted with this account: they are served like configured ones.
pub fn granted(acme: &Acme) -> Vec<AcmeOrder> {
    match &acme.on_demand {
        None => Vec::new(),
        Some(settings) => {
            let json = files::read(&acme.state.join(FILE)).ok().flatten();
            json.and_then(|json| Granted::parse(&json)).unwrap_or_default().orders(settings).collect()
        }
    }
}

/// Returns whether the name is a public host name, not a wildcard or an address.
fn is_name(name: &str) -> bool {
    !name.starts_with('*')
        && name.parse::<IpAddr>().is_err()
        && name.contains('.')
        && certificate_name(name).is_ok_and(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    #[test]
    fn a_name_is_asked_about_once_however_many_want_it() {
        let wishes = OnDemand::default();
        assert!((0..9).all(|_| wishes.wish("a.example", 0)));
        assert_eq!(wishes.next().as_deref(), Some("a.example"));
        wishes.refuse("a.example", 0, 100);
        assert!(wishes.next().is_none() && !wishes.wish("a.example", 99) && wishes.wish("a.example", 100));
        let mut granted = Granted::default();
        granted.insert("a.example", 0);
        wishes.know(granted);
        assert!(wishes.next().is_none() && wishes.wish("a.example", 200), "it will be available");
        wishes.forget();
        assert!(wishes.wish("a.example", 200) && wishes.next().is_some(), "it is pending again");
    }

    #[test]
    fn a_name_may_be_requested_before_the_first_order() {
        let wishes = OnDemand::default();
        assert!(wishes.wish("a.example", 0));
        wishes.know(Granted::default());
        assert_eq!(wishes.next().as_deref(), Some("a.example"));
    }

    #[test]
    fn names_that_are_not_public_and_names_above_the_limit_are_rejected() {
        let wishes = OnDemand::default();
        for name in
            ["", "localhost", "192.0.2.1", "*.a.example", "a_b.example", "A.example", "a..example", "-"]
        {
            assert!(!wishes.wish(name, 0), "{name}");
        }
        let taken = (0..1000).filter(|index| wishes.wish(&format!("n{index}.example"), 0)).count();
        assert_eq!(taken, MOST_WISHES);
        (0..9999).for_each(|index| wishes.refuse(&format!("n{index}.example"), 0, 100));
        assert!(wishes.table().refused.len() <= MOST_REFUSALS);
    }

    #[test]
    fn names_and_names_in_an_hour_are_limited() {
        let count = |count| NonZeroUsize::new(count).unwrap();
        let ask = "http://ask.example/".to_owned();
        let limits = AcmeOnDemand { names: count(3), per_hour: count(2), ..AcmeOnDemand::new(ask) };
        let mut granted = Granted::default();
        assert_eq!(granted.limit(&limits, 0), None);
        granted.insert("a.example", 10_000);
        granted.insert("b.example", 10_600);
        assert_eq!(granted.limit(&limits, 11_000).map(|(_, until)| until), Some(13_600));
        assert_eq!(granted.limit(&limits, 13_600), None);
        granted.insert("c.example", 13_600);
        assert_eq!(granted.limit(&limits, 99_999).map(|(_, until)| until), Some(99_999 + HOUR));
        assert_eq!(Granted::parse(&granted.to_json().unwrap()), Some(granted));
        assert_eq!(Granted::parse(br#"{"../../etc/passwd": 1}"#), None);
    }
}
