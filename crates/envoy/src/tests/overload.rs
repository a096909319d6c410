//! The overload manager.

use super::{gateway, problems, warnings};
use quadrille_config::{
    fraction::ALL,
    model::{MemoryLimit, MemorySize, MemoryStages},
};
use std::num::NonZeroUsize;

const HEAP: &str = "{ name: envoy.resource_monitors.fixed_heap, typed_config: { \"@type\": a/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig, max_heap_size_bytes: 1073741824 } }";
const GROUP: &str = "{ name: envoy.resource_monitors.cgroup_memory, typed_config: { \"@type\": a/envoy.extensions.resource_monitors.cgroup_memory.v3.CgroupMemoryConfig } }";
const CONNECTIONS: &str = "{ name: envoy.resource_monitors.global_downstream_max_connections, typed_config: { \"@type\": a/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig, max_active_downstream_connections: 1000 } }";

fn manager(monitors: &[&str], actions: &str) -> String {
    format!("overload_manager: {{ resource_monitors: [ {} ], actions: [ {actions} ] }}", monitors.join(", "))
}

fn action(name: &str, monitor: &str, trigger: &str) -> String {
    format!(
        "{{ name: envoy.overload_actions.{name}, triggers: [ {{ name: envoy.resource_monitors.{monitor}, {trigger} }} ] }}"
    )
}

fn limit(text: &str) -> MemoryLimit {
    gateway(text).memory
}

fn percent(share: u32) -> u32 {
    share * ALL / 100
}

#[test]
fn monitors_of_memory_are_the_limit() {
    let gibibyte = MemorySize::Bytes(NonZeroUsize::new(1 << 30).unwrap());
    for (monitors, size) in [
        (&[HEAP][..], gibibyte),
        (&[GROUP], MemorySize::Share(ALL)),
        (&[GROUP, HEAP], gibibyte),
        (&[], MemorySize::default()),
    ] {
        let text = manager(monitors, "");
        assert_eq!(warnings(&text), Vec::<String>::new());
        assert_eq!(limit(&text), MemoryLimit { size, stages: MemoryStages::default() });
    }
}

#[test]
fn actions_are_stages() {
    let stages = |actions: &[String]| {
        let stages = limit(&manager(&[HEAP], &actions.join(", "))).stages;
        [stages.scarce, stages.refusing, stages.full]
    };
    let at =
        |name: &str, value: &str| action(name, "fixed_heap", &format!("threshold: {{ value: {value} }}"));
    let all = [
        at("shrink_heap", "0.8"),
        at("disable_http_keepalive", "0.75"),
        action(
            "reduce_timeouts",
            "fixed_heap",
            "scaled: { scaling_threshold: 0.7, saturation_threshold: 0.9 }",
        ),
        at("stop_accepting_requests", "0.9"),
        at("reset_high_memory_stream", "0.97"),
        at("stop_accepting_connections", "0.96"),
    ];
    assert_eq!(stages(&all), [70, 90, 96].map(percent));
    assert_eq!(stages(&[at("stop_accepting_requests", "0.99")]), [85, 99, 99].map(percent));
    let early = [at("stop_accepting_requests", "0.98"), at("reject_incoming_connections", "0.9")];
    assert_eq!(stages(&early), [85, 98, 98].map(percent));
    assert_eq!(stages(&[at("stop_accepting_requests", "0.5")]), [50, 50, 98].map(percent));
    let other = action("stop_accepting_requests", "cgroup_memory", "threshold: { value: 0.5 }");
    assert_eq!(stages(&[other]), [85, 95, 98].map(percent), "not by a monitor of this list");
}

#[test]
fn what_has_no_effect_causes_a_warning() {
    let unknown = action("start_praying", "fixed_heap", "threshold: { value: 0.5 }");
    let found = warnings(&manager(&[HEAP, CONNECTIONS], &unknown)).join("\n");
    assert!(found.contains("resource_monitors[1]") && found.contains("does not monitor memory"), "{found}");
    assert_eq!(limit(&manager(&[CONNECTIONS], "")), MemoryLimit::default());
    let found = warnings(&manager(&[HEAP], &unknown)).join("\n");
    assert!(found.contains("start_praying"), "{found}");
}

#[test]
fn nonsense_is_refused() {
    for (text, expected) in [
        (manager(&[&HEAP.replace("1073741824", "0")], ""), "is not a number of bytes"),
        (
            manager(&[&HEAP.replace("max_heap_size_bytes: 1073741824", "")], ""),
            "`max_heap_size_bytes` is missing",
        ),
        (
            manager(&[HEAP], &action("shrink_heap", "fixed_heap", "threshold: { value: 95 }")),
            "`95` is not a share; write a number from 0 to 1",
        ),
        (
            manager(&[HEAP], &action("shrink_heap", "fixed_heap", "scaled: {}")),
            "`scaling_threshold` is missing",
        ),
    ] {
        let found = problems(&text);
        assert!(found.contains(expected), "{found}");
    }
}
