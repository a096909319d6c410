//! How much is asked of an upstream's servers at a time.

use crate::{
    file::schema::{Key, Preset, Section},
    model::UpstreamLimits,
    values::{count, count_or_zero},
};
use std::num::NonZeroUsize;

pub(super) const UPSTREAM_LIMITS: Section<UpstreamLimits> = Section {
    path: "upstreams.<name>.limits",
    about: "How much is asked of all servers of this upstream together, by all event loops. What is beyond is answered with \
            503 at once, so that slow servers do not collect requests whose clients have left.",
    keys: &[
        Key {
            name: "connections",
            value: "count",
            preset: Preset::Means("no limit"),
            about: "Connections in `tcp` mode. In `http` mode requests under way of which it is known beforehand that they need \
                    a connection each: WebSockets, and all where the upstream has `protocol: http1`, or no TLS and not \
                    `protocol: http2`. Idle connections of the `pool` do not count.",
            needs_restart: false,
            read: |field, limits| limits.connections = field.parse(count),
            show: |limits| limits.connections.map(NonZeroUsize::get).into(),
        },
        Key {
            name: "pending",
            value: "count, or `0`",
            preset: Preset::Means("no limit"),
            about: "Requests that may wait for one of these `connections`, in their order. Connections in `tcp` mode do not \
                    wait.",
            needs_restart: false,
            read: |field, limits| limits.pending = field.parse(count_or_zero),
            show: |limits| limits.pending.into(),
        },
        Key {
            name: "requests",
            value: "count",
            preset: Preset::Means("no limit"),
            about: "Requests under way, those that wait included.",
            needs_restart: false,
            read: |field, limits| limits.requests = field.parse(count),
            show: |limits| limits.requests.map(NonZeroUsize::get).into(),
        },
        Key {
            name: "retries",
            value: "count, or `0`",
            preset: Preset::Means("no limit"),
            about: "Repeated attempts under way. What fails while so many are is not tried again, so that retries do not \
                    multiply the load of servers that fail because of it.",
            needs_restart: false,
            read: |field, limits| limits.retries = field.parse(count_or_zero),
            show: |limits| limits.retries.into(),
        },
    ],
};
