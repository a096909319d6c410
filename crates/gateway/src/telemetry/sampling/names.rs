//! Names under which handshakes are counted: those of the configuration, so that clients cannot create new ones.

use crate::host_map::HostMap;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

/// Label for a client's SNI.
pub(super) struct Names {
    /// Labels by name; a wildcard matches one label of the name.
    labels: HostMap<Arc<str>>,
    other: Arc<str>,
    none: Arc<str>,
}

/// Maximum number of distinct names in one process, over all its configurations: each has some forty time series,
/// which are never dropped.
const MOST: usize = 1000;

static ADMITTED: Mutex<BTreeSet<Arc<str>>> = Mutex::new(BTreeSet::new());

impl Names {
    /// Adds the names of certificates and routes: `example.com`, `*.example.com`.
    pub(super) fn new(configured: impl Iterator<Item = String>) -> Self {
        let mut names = Self { labels: HostMap::default(), other: "other".into(), none: "none".into() };
        let mut admitted = ADMITTED.lock().unwrap_or_else(PoisonError::into_inner);
        for name in configured {
            let Some(label) = admit(&mut admitted, &name.to_ascii_lowercase(), MOST) else { continue };
            names.labels.insert_first(&Arc::clone(&label), label);
        }
        names
    }

    /// Returns the configured name that matches this SNI; `other` without a match, `none` without SNI.
    pub(super) fn label(&self, sni: Option<&str>) -> Arc<str> {
        let Some(sni) = sni else { return Arc::clone(&self.none) };
        let name = sni.to_ascii_lowercase();
        let label = self.labels.exact(&name).or_else(|| self.labels.one_label_wildcard(&name));
        Arc::clone(label.unwrap_or(&self.other))
    }
}

/// Returns the name, unless it is new and the limit is reached.
fn admit(admitted: &mut BTreeSet<Arc<str>>, name: &str, most: usize) -> Option<Arc<str>> {
    if let Some(known) = admitted.get(name) {
        return Some(Arc::clone(known));
    }
    let new: Arc<str> = name.into();
    (admitted.len() < most && admitted.insert(Arc::clone(&new))).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_names_are_distinguished() {
        let names =
            Names::new(["Example.com", "*.example.com", "shop.example.com"].map(str::to_owned).into_iter());
        for (sni, label) in [
            (Some("example.com"), "example.com"),
            (Some("EXAMPLE.com"), "example.com"),
            (Some("shop.example.com"), "shop.example.com"),
            (Some("anything.example.com"), "*.example.com"),
            (Some("a.b.example.com"), "other"),
            (Some("com"), "other"),
            (Some("made-up-by-a-client"), "other"),
            (Some(""), "other"),
            (None, "none"),
        ] {
            assert_eq!(&*names.label(sni), label, "{sni:?}");
        }
    }

    #[test]
    fn there_is_an_end_to_names() {
        let mut admitted = BTreeSet::new();
        let names: Vec<String> = (0..10).map(|name| format!("{name}.example")).collect();
        let counted = names.iter().filter(|name| admit(&mut admitted, name, 4).is_some()).count();
        assert_eq!(counted, 4);
        assert!(admit(&mut admitted, "0.example", 4).is_some(), "a known name stays");
    }
}
