//! Metrics of memory.

use super::metric::{Group, counter, gauge};

pub(super) const GROUP: Group = Group {
    heading: "Memory",
    metrics: &[
        gauge("quadrille_memory_limit_bytes", &[], "limit on the memory of the process; 0 without one"),
        gauge(
            "quadrille_memory_used_bytes",
            &[],
            "anonymous memory of the process, which `limits.memory` limits; memory of files is not included",
        ),
        gauge(
            "quadrille_memory_held_bytes",
            &["purpose"],
            "part of it that holds data: request bodies for a `retry`, for `inspection` by an access step, for a \
             `mirror`, and in `upload` to HTTP/2 servers; `unread` data of HTTP/2 streams; `unsent` data of responses; encoders \
             (`compression`); `buffers` of connections",
        ),
        gauge(
            "quadrille_memory_stage",
            &[],
            "0 normally; 1 while memory is scarce, 2 while requests are refused, 3 while connections are not \
             accepted either",
        ),
        counter(
            "quadrille_memory_refused_total",
            &["what"],
            "refused because of it: a `request` or a large `body`, with 503; `connections`, which are not accepted: a \
             QUIC connection, or those of an event loop until memory is free",
        ),
        counter(
            "quadrille_memory_requests_ended_total",
            &[],
            "requests that were ended because memory was nearly full and they held most",
        ),
    ],
};
