//! Names that nobody has configured, whose certificates are ordered once a client has asked for them.
//!
//! ```text
//!  a handshake ── wish ──> OnDemand ── the keeper asks whether it may ──> granted: a name like any other
//! ```
//!
//! Names that were granted stay: whoever is asked about new ones is not needed for those.

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

/// Of granted names, in the state directory and in the fleet.
pub(crate) const FILE: &str = "on-demand.json";

/// Names that wait to be asked about: who floods with others keeps them from waiting, and costs nothing else.
const MOST_WISHES: usize = 64;
/// Names that are known to be refused.
const MOST_REFUSALS: usize = 4096;
const HOUR: i64 = 3600;

/// What clients have asked for. Listeners and the one who orders share it.
#[derive(Default)]
pub struct OnDemand(Mutex<Table>);

#[derive(Default)]
struct Table {
    wishes: VecDeque<String>,
    /// Until when nobody is asked about them again.
    refused: HashMap<String, UnixTime>,
    granted: Granted,
}

/// Names that were granted, with the time of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted(BTreeMap<String, UnixTime>);

impl OnDemand {
    /// A client wants this name, in lower case, for which there is no certificate. Whether there may be one soon: then
    /// the client should come again, and not get another one.
    ///
    /// Listeners call it only if names are ordered on demand. They may do so before whoever orders has begun: wishes wait.
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

    /// The names that were granted in this state directory.
    pub(crate) fn know(&self, granted: Granted) {
        let mut table = self.table();
        table.wishes.retain(|wish| !granted.0.contains_key(wish));
        table.granted = granted;
    }

    /// Nothing is ordered on demand any more.
    pub(crate) fn forget(&self) {
        let mut table = self.table();
        table.wishes.clear();
        table.granted = Granted::default();
    }

    /// The wish that has waited for longest. It waits on until it is [granted](Self::know) or [refused](Self::refuse).
    pub(crate) fn next(&self) -> Option<String> {
        self.table().wishes.front().cloned()
    }

    /// Nobody is asked about this name again before this time.
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
    /// None, if there is no such file, or it cannot be read.
    pub(crate) fn read(state: &StateDirectory) -> Self {
        let json = files::read(&state.path(FILE)).ok().flatten();
        json.and_then(|json| Self::parse(&json)).unwrap_or_default()
    }

    /// `None` if this is no such file, or one with anything but names.
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

    /// Whether it was there.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// Why no further name is granted now, and until when.
    pub(crate) fn limit(&self, on_demand: &AcmeOnDemand, now: UnixTime) -> Option<(&'static str, UnixTime)> {
        if self.0.len() >= on_demand.names.get() {
            return Some(("there are as many names as `acme.on_demand.names` allows", now + HOUR));
        }
        let granted = self.0.values().map(|granted| if_plausible(*granted, now));
        let lately: Vec<_> = granted.filter(|granted| *granted > now - HOUR).collect();
        let again = lately.iter().min().map_or(now, |first| first + HOUR);
        (lately.len() >= on_demand.per_hour.get()).then_some((
            "there were as many names in an hour as `acme.on_demand.per_hour` allows",
            again.max(now + 1),
        ))
    }

    /// Where their certificates are in the state directory.
    pub(crate) fn files(&self, settings: &AcmeOnDemand) -> Vec<String> {
        let path = |order: AcmeOrder| order.file(Path::new("")).display().to_string();
        self.orders(settings).map(path).collect()
    }

    /// What is ordered for these names.
    pub(crate) fn orders(&self, settings: &AcmeOnDemand) -> impl Iterator<Item = AcmeOrder> {
        self.0.keys().map(|name| settings.order(name.clone()))
    }
}

/// What has been granted with this account: it is served like what is configured.
pub fn granted(acme: &Acme) -> Vec<AcmeOrder> {
    match &acme.on_demand {
        None => Vec::new(),
        Some(settings) => {
            let json = files::read(&acme.state.join(FILE)).ok().flatten();
            json.and_then(|json| Granted::parse(&json)).unwrap_or_default().orders(settings).collect()
        }
    }
}

/// A public host name, and neither a wildcard nor an address.
fn is_name(name: &str) -> bool {
    !name.starts_with('*')
        && name.parse::<IpAddr>().is_err()
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
        assert!(wishes.next().is_none() && wishes.wish("a.example", 200), "it will be there");
        wishes.forget();
        assert!(wishes.wish("a.example", 200) && wishes.next().is_some(), "it is a wish like any other");
    }

    #[test]
    fn a_name_may_be_wished_for_before_anybody_orders() {
        let wishes = OnDemand::default();
        assert!(wishes.wish("a.example", 0));
        wishes.know(Granted::default());
        assert_eq!(wishes.next().as_deref(), Some("a.example"));
    }

    #[test]
    fn what_is_no_public_name_and_what_is_too_much_is_not_wished_for() {
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
