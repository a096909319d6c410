//! The overload manager: monitors of memory become the limit of the process, and actions the stages before it.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    fraction::ALL,
    model::{MemoryLimit, MemorySize, MemoryStages},
    quote,
};
use std::num::NonZeroUsize;

/// Beginning of the kind of a warning about a part of the overload manager that has no effect.
const IGNORED: &str = "envoy.config.overload.v3";

/// Reads `envoy.config.overload.v3.OverloadManager`.
pub(crate) fn memory_limit(field: &Field<'_>) -> Option<MemoryLimit> {
    let message = field.message(&schema::OVERLOAD_MANAGER)?;
    let mut monitors = Vec::new();
    for field in message.list("resource_monitors") {
        monitors.extend(monitor(&field)?);
    }
    let mut begins = [None; 3];
    for field in message.list("actions") {
        action(&field, &monitors, &mut begins)?;
    }
    // Two monitors of memory: the lower limit applies.
    let size = monitors.iter().map(|monitor| monitor.size).min_by_key(|size| match size {
        MemorySize::Bytes(bytes) => bytes.get(),
        _ => usize::MAX,
    });
    Some(MemoryLimit { size: size.unwrap_or_default(), stages: stages(begins) })
}

/// A monitor of memory.
struct Monitor {
    name: String,
    size: MemorySize,
}

/// Reads a monitor; `Some(None)` if it is not one of memory.
fn monitor(field: &Field<'_>) -> Option<Option<Monitor>> {
    let message = field.message(&schema::RESOURCE_MONITOR)?;
    let name = message.string("name");
    let (kind, config) = match message.get("typed_config") {
        Some(config) => {
            let (kind, config) = config.any()?;
            (kind.to_owned(), Some(config))
        }
        None => (String::new(), None),
    };
    let size = match (kind.as_str(), config) {
        (kind, Some(config)) if kind == schema::FIXED_HEAP.name => {
            let message = config.message(&schema::FIXED_HEAP)?;
            bytes(&message.require("max_heap_size_bytes")?)?
        }
        (kind, Some(config)) if kind == schema::CGROUP_MEMORY.name => {
            let message = config.message(&schema::CGROUP_MEMORY)?;
            match message.get("max_memory_bytes") {
                Some(most) => bytes(&most)?,
                None => MemorySize::Share(ALL),
            }
        }
        _ => {
            let kind = format!("{IGNORED}.{name}");
            field.warn(&kind, format!("ignored: {} does not monitor memory", quote(last_part(&name))));
            return Some(None);
        }
    };
    Some(Some(Monitor { name, size }))
}

/// Returns the part of a name that distinguishes it from others of its kind.
fn last_part(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, last)| last)
}

fn bytes(field: &Field<'_>) -> Option<MemorySize> {
    field.parse(|text| {
        let bytes = text.parse::<NonZeroUsize>().map(MemorySize::Bytes);
        bytes.map_err(|_| {
            Problem::new(format!("{} is not a number of bytes", quote(text)), "write at least 1")
        })
    })
}

/// Reads an action, and notes where its stage begins.
fn action(field: &Field<'_>, monitors: &[Monitor], begins: &mut [Option<u32>; 3]) -> Option<()> {
    let message = field.message(&schema::OVERLOAD_ACTION)?;
    let name = message.string("name");
    let triggers = message.list("triggers");
    let Some(stage) = stage_of(&name) else {
        let kind = format!("{IGNORED}.{name}");
        field.warn(&kind, format!("ignored: the action {} is not supported", quote(last_part(&name))));
        return Some(());
    };
    for field in triggers {
        let message = field.message(&schema::OVERLOAD_TRIGGER)?;
        let name = message.string("name");
        let threshold = threshold(&message)?;
        if monitors.iter().any(|monitor| monitor.name == name) {
            let begin = &mut begins[stage];
            *begin = Some(begin.map_or(threshold, |begin: u32| begin.min(threshold)));
        }
    }
    Some(())
}

/// Returns the index of the stage that an action belongs to.
fn stage_of(action: &str) -> Option<usize> {
    match action.strip_prefix("envoy.overload_actions.")? {
        "shrink_heap" | "disable_http_keepalive" | "reduce_timeouts" => Some(0),
        "stop_accepting_requests" => Some(1),
        "stop_accepting_connections" | "reject_incoming_connections" | "reset_high_memory_stream" => Some(2),
        _ => None,
    }
}

fn threshold(message: &Message<'_>) -> Option<u32> {
    let found = match message.one_of(&["threshold", "scaled"]) {
        Some(("threshold", field)) => field.message(&schema::THRESHOLD_TRIGGER)?.require("value")?,
        Some((_, field)) => field.message(&schema::SCALED_TRIGGER)?.require("scaling_threshold")?,
        None => return message.field().fail("`threshold` is missing"),
    };
    found.parse(|text| {
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        // Shares in range fit.
        let parts = share.map(|share| (share * f64::from(ALL)).round() as u32);
        parts.ok_or_else(|| {
            Problem::new(format!("{} is not a share", quote(text)), "write a number from 0 to 1")
        })
    })
}

/// Returns the stages that begin here, or at their defaults, and not before the stages that precede them.
fn stages([scarce, refusing, full]: [Option<u32>; 3]) -> MemoryStages {
    let default = MemoryStages::default();
    // A default does not precede what is configured.
    let refusing_or_default = refusing.unwrap_or(default.refusing);
    let full_or_default = full.unwrap_or(default.full);
    let scarce = scarce.unwrap_or(default.scarce.min(refusing_or_default).min(full_or_default));
    let refusing = refusing_or_default.max(scarce);
    MemoryStages { scarce, refusing, full: full_or_default.max(refusing) }
}
