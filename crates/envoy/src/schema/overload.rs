//! The overload manager, as far as it limits memory.

use super::{
    FieldPolicy::{Accepted, Ignored, Read},
    HARMLESS, Schema,
};

pub(crate) const OVERLOAD_MANAGER: Schema = Schema {
    name: "envoy.config.overload.v3.OverloadManager",
    fields: &[
        ("refresh_interval", Accepted("memory is sampled every 100 ms")),
        ("resource_monitors", Read("`fixed_heap` or `cgroup_memory`; others are ignored with a warning")),
        (
            "actions",
            Read(
                "`shrink_heap`, `disable_http_keepalive` and `reduce_timeouts` are one stage, \
                 `stop_accepting_requests` the next, and `stop_accepting_connections`, \
                 `reject_incoming_connections` and `reset_high_memory_stream` the last; a stage begins with the \
                 first of its actions, at its default without one, and not before the stages that precede it",
            ),
        ),
        ("loadshed_points", Ignored("the actions on memory apply")),
        ("buffer_factory_config", Ignored("streams are ended by the memory that they hold")),
    ],
    others: HARMLESS,
};

pub(crate) const RESOURCE_MONITOR: Schema = Schema {
    name: "envoy.config.overload.v3.ResourceMonitor",
    fields: &[("name", Read("")), ("typed_config", Read(""))],
    others: HARMLESS,
};

pub(crate) const OVERLOAD_ACTION: Schema = Schema {
    name: "envoy.config.overload.v3.OverloadAction",
    fields: &[
        ("name", Read("")),
        ("triggers", Read("those by a monitor of memory")),
        ("typed_config", Accepted("actions have fixed effects")),
    ],
    others: HARMLESS,
};

pub(crate) const OVERLOAD_TRIGGER: Schema = Schema {
    name: "envoy.config.overload.v3.Trigger",
    fields: &[("name", Read("")), ("threshold", Read("")), ("scaled", Read(""))],
    others: HARMLESS,
};

pub(crate) const THRESHOLD_TRIGGER: Schema = Schema {
    name: "envoy.config.overload.v3.ThresholdTrigger",
    fields: &[("value", Read(""))],
    others: HARMLESS,
};

pub(crate) const SCALED_TRIGGER: Schema = Schema {
    name: "envoy.config.overload.v3.ScaledTrigger",
    fields: &[
        ("scaling_threshold", Read("the action begins here, in full")),
        ("saturation_threshold", Accepted("")),
    ],
    others: HARMLESS,
};

pub(crate) const FIXED_HEAP: Schema = Schema {
    name: "envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig",
    fields: &[("max_heap_size_bytes", Read(""))],
    others: HARMLESS,
};

pub(crate) const CGROUP_MEMORY: Schema = Schema {
    name: "envoy.extensions.resource_monitors.cgroup_memory.v3.CgroupMemoryConfig",
    fields: &[("max_memory_bytes", Read("the limit of the control group if omitted"))],
    others: HARMLESS,
};
