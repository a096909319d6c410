//! Circuit breaking: limits on the load of an upstream's servers.

use crate::{
    file::{
        schema::{Key, Preset, Section},
        shown::time,
    },
    model::UpstreamLimits,
    values::{count, count_or_zero, timeout},
};
use std::num::NonZeroUsize;

pub(super) const UPSTREAM_LIMITS: Section<UpstreamLimits> = Section {
    path: "upstreams.<name>.limits",
    about: "Limits on the load of all servers of this upstream together, from all event loops. Requests beyond them \
            receive a 503 response at once, so that slow servers do not accumulate requests whose clients have left.",
    keys: &[
        Key::new(
            "connections",
            "count",
            Preset::Means("no limit"),
            "Maximum number of connections in `tcp` mode. In `http` mode, maximum number of active requests that are known to need a connection each: WebSockets, and all requests if the upstream has `protocol: http1`, or neither TLS nor \
                    `protocol: http2`. Idle connections of the `pool` do not count.",
            |field, limits| limits.connections = field.parse(count),
            |limits| limits.connections.map(NonZeroUsize::get).into(),
        ),
        Key::new(
            "pending",
            "count, or `0`",
            Preset::Means("no limit"),
            "Maximum number of requests that wait for one of these `connections`, in order of arrival, and of those \
                    that wait for a server below its `max_connections`. Connections in `tcp` mode do not wait.",
            |field, limits| limits.pending = field.parse(count_or_zero),
            |limits| limits.pending.into(),
        ),
        Key::new(
            "pending_timeout",
            "duration",
            Preset::Means("that of the request"),
            "Time after which a waiting request receives a 503 response. Without it, a request waits until the \
                    `timeout` of its route, and for a server below its `max_connections` for `timeouts.read` at most.",
            |field, limits| limits.pending_timeout = field.parse(timeout),
            |limits| limits.pending_timeout.map(time).into(),
        ),
        Key::new(
            "requests",
            "count",
            Preset::Means("no limit"),
            "Maximum number of active requests, including those that wait.",
            |field, limits| limits.requests = field.parse(count),
            |limits| limits.requests.map(NonZeroUsize::get).into(),
        ),
        Key::new(
            "retries",
            "count, or `0`",
            Preset::Means("no limit"),
            "Maximum number of active retries. A request that fails at this limit is not retried, so that \
                    retries do not multiply the load of overloaded servers.",
            |field, limits| limits.retries = field.parse(count_or_zero),
            |limits| limits.retries.into(),
        ),
    ],
};
