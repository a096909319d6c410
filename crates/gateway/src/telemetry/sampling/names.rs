//! The names under which handshakes are counted: those of the configuration, so that clients cannot make up new ones.

use crate::host_map::HostMap;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

/// What a client's SNI is counted as.
pub(super) struct Names {
    /// A wildcard stands for one label.
    labels: HostMap<Arc<str>>,
    other: Arc<str>,
    none: Arc<str>,
}

/// Names that one process tells apart, all its configurations together: each has some forty series in the metrics, and
/// series are never forgotten.
const MOST: usize = 1000;

static ADMITTED: Mutex<BTreeSet<Arc<str>>> = Mutex::new(BTreeSet::new());

impl Names {
    /// Of certificates and routes: `example.com`, `*.example.com`.
    pub(super) fn new(configured: impl Iterator<Item = String>) -> Self {
        let mut names = Self { labels: HostMap::default(), other: "other".into(), none: "none".into() };
        let mut admitted = ADMITTED.lock().unwrap_or_else(PoisonError::into_inner);
        for name in configured {
            let Some(label) = admit(&mut admitted, &name.to_ascii_lowercase(), MOST) else { continue };
            names.labels.insert_first(&Arc::clone(&label), label);
        }
        names
    }

    /// The configured name that this SNI is, or falls under; `other` if there is none, `none` without SNI.
    pub(super) fn label(&self, sni: Option<&str>) -> Arc<str> {
        let Some(sni) = sni else { return Arc::clone(&self.none) };
        let name = sni.to_ascii_lowercase();
        let label = self.labels.exact(&name).or_else(|| self.labels.one_label_wildcard(&name));
        Arc::clone(label.unwrap_or(&self.other))
    }
}

/// The name, unless it is a new one and there are too many.
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
    fn only_configured_names_are_told_apart() {
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
        assert!(admit(&mut admitted, "0.example", 4).is_some(), "what is known stays");
    }
}
