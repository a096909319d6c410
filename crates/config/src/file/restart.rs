//! Keys that take effect when the process starts, whatever a reload reads.

use super::show;
use crate::model::{Gateway, Resumption};
use serde_json::{Map, Value, json};

/// A key that needs a restart.
struct Fixed {
    /// Its path in the file; everything below it is meant too.
    path: &'static str,
    /// Whether a running process would have to start again for the second.
    changed: fn(&Gateway, &Gateway) -> bool,
}

const FIXED: &[Fixed] = &[
    Fixed { path: "engine", changed: |old, new| old.engine != new.engine },
    Fixed { path: "threads", changed: |old, new| old.threads != new.threads },
    // Threads keep one pool for all upstreams; it serves less just as well.
    Fixed { path: "upstreams.<name>.pool", changed: |old, new| old.pool_size() < new.pool_size() },
    Fixed { path: "access_log", changed: |old, new| old.access_log != new.access_log },
    Fixed { path: "admin", changed: |old, new| old.admin != new.admin },
];

/// The keys whose values differ, and that a process which runs with `old` takes from `new` only when it starts again.
pub fn needs_restart(old: &Gateway, new: &Gateway) -> Vec<&'static str> {
    FIXED.iter().filter(|key| (key.changed)(old, new)).map(|key| key.path).collect()
}

/// What of a configuration holds until the process ends, without anything that could be a key.
pub fn fixed(gateway: &Gateway) -> Gateway {
    Gateway { listeners: Vec::new(), resumption: Resumption::default(), ..gateway.clone() }
}

/// The configuration in force, as [`show`] has it, in a process that has started with `old` and has since read `new`. What
/// `new` says and only a restart brings is under `after_restart`, if there is any.
pub fn show_in_force(old: &Gateway, new: &Gateway) -> Value {
    let (mut shown, at_start) = (show(new), show(old));
    let mut after = Map::new();
    for path in needs_restart(old, new) {
        let next = match (shown.get_mut(path), at_start.get(path)) {
            (Some(value), Some(before)) => std::mem::replace(value, before.clone()),
            _ => json!(new.pool_size()),
        };
        after.insert(path.to_owned(), next);
    }
    if let (Some(shown), false) = (shown.as_object_mut(), after.is_empty()) {
        shown.insert("after_restart".to_owned(), Value::Object(after));
    }
    shown
}

/// Whether a change of the key at this path takes effect at the next start.
pub(super) fn is_fixed(path: &str) -> bool {
    FIXED
        .iter()
        .any(|key| path.strip_prefix(key.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::{is_fixed, show_in_force};
    use crate::{file::show, model::Gateway};
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

    #[test]
    fn whole_sections_and_single_keys() {
        assert!(["engine", "engine.batch", "upstreams.<name>.pool"].iter().all(|path| is_fixed(path)));
        assert!(["engines", "upstreams.<name>.servers", "drain_timeout"].iter().all(|path| !is_fixed(path)));
    }
}
