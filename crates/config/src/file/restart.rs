//! Keys that take effect when the process starts, and not on a reload.

use super::{sections::GATEWAY, show};
use crate::model::{Gateway, Resumption};
use serde_json::{Map, Value};

/// Returns the keys whose values differ, and whose values in `new` take effect only when a process that runs with
/// `old` restarts.
pub fn needs_restart(old: &Gateway, new: &Gateway) -> Vec<&'static str> {
    let fixed = GATEWAY.keys.iter().filter(|key| key.needs_restart);
    fixed.filter(|key| (key.show)(old) != (key.show)(new)).map(|key| key.name).collect()
}

/// Returns the part of a configuration that is fixed until the process ends, without key material.
pub fn fixed(gateway: &Gateway) -> Gateway {
    Gateway { listeners: Vec::new(), resumption: Resumption::default(), ..gateway.clone() }
}

/// Returns the configuration in force, in the format of [`show`], of a process that started with `old` and has since
/// read `new`. Settings of `new` that need a restart are under `after_restart`, if there are any.
pub fn show_in_force(old: &Gateway, new: &Gateway) -> Value {
    let (mut shown, at_start) = (show(new), show(old));
    let mut after = Map::new();
    for path in needs_restart(old, new) {
        if let (Some(value), Some(before)) = (shown.get_mut(path), at_start.get(path)) {
            after.insert(path.to_owned(), std::mem::replace(value, before.clone()));
        }
    }
    if let (Some(shown), false) = (shown.as_object_mut(), after.is_empty()) {
        shown.insert("after_restart".to_owned(), Value::Object(after));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::show_in_force;
    use crate::{
        file::{sections::SECTIONS, show},
        model::Gateway,
    };
    use std::time::Duration;

    #[test]
    fn what_needs_a_restart_is_shown_apart() {
        let old = Gateway::default();
        let mut new = old.clone();
        new.drain_timeout = Duration::from_secs(7);
        assert_eq!(show_in_force(&old, &new), show(&new));
        new.engine.poll_delay = Duration::from_millis(1);
        new.admin = None;
        let shown = show_in_force(&old, &new);
        assert_eq!(shown["engine"]["poll_delay"], "0s");
        assert_eq!(shown["admin"]["address"], "127.0.0.1:9901");
        assert_eq!(shown["after_restart"]["engine"]["poll_delay"], "1ms");
        assert_eq!(shown["after_restart"]["admin"], "off");
    }

    /// `needs_restart` of a section applies to its keys, and the compared keys are the documented ones.
    #[test]
    fn sections_and_their_keys_agree() {
        let mut fixed = Vec::new();
        for section in SECTIONS {
            for key in section.keys().iter().filter(|key| key.needs_restart) {
                fixed.push([section.path(), key.name].join(".").trim_start_matches('.').to_owned());
            }
        }
        let top: Vec<_> =
            super::GATEWAY.keys.iter().filter(|key| key.needs_restart).map(|key| key.name).collect();
        for path in &fixed {
            let compared = top.iter().any(|top| path.split('.').next() == Some(top));
            assert!(compared, "{path} is documented as fixed, and not compared");
        }
        for section in SECTIONS.iter().filter(|section| top.contains(&section.path())) {
            assert!(section.keys().iter().all(|key| key.needs_restart), "{}", section.path());
        }
    }
}
