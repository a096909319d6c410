//! Every metric of a gateway and of a key server, in one table: the help on `/metrics` and the tables of
//! `docs/reference/metrics.md` come from it. After a change, `QUADRILLE_BLESS=1 cargo test -p quadrille-gateway metric_table`
//! writes the page anew.
//!
//! Those of control planes are described where they are counted, in the crate that follows them.

mod certificates;
mod metric;

use metric::{Group, Metric, MetricType, counter, gauge, histogram};
use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Tells the recorder the help of every metric.
pub(crate) fn describe() {
    for Metric { kind, name, help, .. } in GROUPS.iter().flat_map(|group| group.metrics) {
        match kind {
            MetricType::Counter => describe_counter!(*name, *help),
            MetricType::Gauge => describe_gauge!(*name, *help),
            MetricType::Histogram => describe_histogram!(*name, *help),
        }
    }
}

const GROUPS: &[Group] = &[
    Group {
        heading: "The process",
        metrics: &[
            gauge("process_start_time_seconds", &[], "when the process has started, in seconds since 1970"),
            gauge("quadrille_build_info", &["version"], "always 1"),
            counter(
                "quadrille_reloads_total",
                &["result"],
                "configuration reloads, and at a key server those of keys, policy and certificates; `ok` or \
                 `failed`",
            ),
        ],
    },
    Group {
        heading: "Connections and handshakes",
        metrics: &[
            gauge("quadrille_connections", &[], "open client connections"),
            counter("quadrille_connections_total", &[], "accepted client connections"),
            counter(
                "quadrille_accept_pauses_total",
                &[],
                "how often an event loop accepted nobody because file descriptors ran short",
            ),
            counter(
                "quadrille_idle_connections_closed_total",
                &[],
                "idle client connections that were closed because file descriptors ran short, oldest first",
            ),
            counter(
                "quadrille_access_denied_total",
                &["what"],
                "what the rules of a filter chain did not let in: a `connection`, closed after its handshake, a \
                 `request`, answered with 403, one for its `token`, with 401 or 403, one for its `password`, with 401, 429 \
                 (wrong too often) or 503 (no thread to hash it), or one that an authorization server was `asked` about, \
                 with what that says",
            ),
            counter(
                "quadrille_token_keys_fetches_total",
                &["result"],
                "attempts to fetch the keys that tokens are signed with: `fetched` or `failed`",
            ),
            counter(
                "quadrille_spans_total",
                &["result"],
                "spans of requests that are traced: `sent` to the collector, `failed` to be, or `dropped` because too many \
                 waited",
            ),
            counter(
                "quadrille_compression_bytes_total",
                &["coding", "side"],
                "bytes of servers' answers `before` and `after` they were compressed by `coding`",
            ),
            counter(
                "quadrille_rate_limited_total",
                &["limit", "by", "result"],
                "requests that were too many under a limit: `limit` is the listener's address, with the route's host and \
                 path if it is the route's, or the domain of a service; `by` is `client`, `header`, `all`, `descriptor` or \
                 `service`; `result` is `refused`, `let_through` where a limit is not enforced, or `unanswered` where a \
                 service could not be asked",
            ),
            counter(
                "quadrille_handshakes_total",
                &["version", "cipher", "key_type", "session"],
                "handshakes that succeeded; `session` is `full` or `resumed`, `key_type` is `none` without a \
                 private-key operation",
            ),
            counter(
                "quadrille_handshake_failures_total",
                &["reason"],
                "handshakes that failed: `tls`, `closed` (by the client), `timeout`, `not_tls`, `plain_http`, \
                 `proxy_header`, `too_many_handshakes`, `no_chain` (no listener on the port is for it), \
                 `shed` (key queue full), `refused` (see `quadrille_handshakes_refused_total`), `key` (operation failed), `key_server` (key servers have not \
                 computed it)",
            ),
            counter(
                "quadrille_handshakes_refused_total",
                &["reason"],
                "handshakes refused before anything was computed for them, because there were more than can be done in \
                 time (`handshake_deadline`): `deadline` (this one would have been late), `overload`, `client_share` \
                 and `name_share` (its network or its name has taken more than its share); also failures, as `refused`",
            ),
            gauge("quadrille_overloaded", &[], "1 during overload, while handshakes may be refused, else 0"),
            gauge(
                "quadrille_networks_shut_out",
                &[],
                "networks that flood during overload, so that the kernel drops most of their connections before \
                 they are accepted; those are counted nowhere",
            ),
            gauge(
                "quadrille_event_loop_delay_seconds",
                &[],
                "how long a connection that is ready waits for its turn, on the slowest event loop",
            ),
            histogram(
                "quadrille_handshake_seconds",
                &["session"],
                "seconds from accept to the end of the handshake",
            ),
            counter(
                "quadrille_handshake_samples_total",
                &["session", "version", "sni"],
                "handshakes whose CPU was measured (`sampling`)",
            ),
            counter(
                "quadrille_handshake_cpu_nanoseconds_total",
                &["stage", "session", "version", "sni"],
                "nanoseconds of CPU of those handshakes, by stage",
            ),
            counter(
                "quadrille_requests_total",
                &["status"],
                "HTTP requests answered, by class (`2xx`); `none` without an answer",
            ),
            counter(
                "quadrille_requests_mirrored_total",
                &["result"],
                "copies of requests for a route's mirrors: `answered`, `failed`, or `dropped`, because too many were under \
                 way",
            ),
        ],
    },
    Group {
        heading: "QUIC",
        metrics: &[
            counter(
                "quadrille_quic_handshakes_total",
                &[],
                "completed handshakes by QUIC; also counted in `quadrille_handshakes_total`",
            ),
            counter(
                "quadrille_quic_retries_total",
                &[],
                "new clients that were asked to prove their address first (Retry), because many had not",
            ),
            counter(
                "quadrille_quic_version_negotiations_total",
                &[],
                "clients that were told which versions of QUIC are spoken here",
            ),
            counter(
                "quadrille_quic_stateless_resets_total",
                &[],
                "clients that were told that nobody knows their connection, because the gateway was started again",
            ),
            counter(
                "quadrille_quic_datagrams_handed_over_total",
                &[],
                "datagrams that have come to another event loop than their connection is on: their client has moved",
            ),
            counter(
                "quadrille_quic_datagrams_dropped_total",
                &["reason"],
                "datagrams that nothing became of; `malformed`, `unknown_connection`, `small` (a first one of less \
                 than 1200 bytes), `limit`, `closing`, or `too_many` on their way to another event loop",
            ),
        ],
    },
    Group {
        heading: "Private-key operations",
        metrics: &[
            counter(
                "quadrille_key_operations_total",
                &["key_type", "backend", "result"],
                "operations; `ok`, `failed`, or `recomputed`: a result that was wrong or missing, computed \
                 again (also counted as `ok` or `failed`)",
            ),
            histogram(
                "quadrille_key_operation_seconds",
                &["key_type", "backend"],
                "seconds to compute one batch",
            ),
            counter(
                "quadrille_key_cpu_nanoseconds_total",
                &["key_type", "backend"],
                "nanoseconds of CPU spent on operations",
            ),
            counter(
                "quadrille_key_cpu_saved_nanoseconds_total",
                &["key_type", "backend"],
                "nanoseconds of CPU that computing operations together has saved: what each would have cost by itself, \
                 as measured at start, less what they took; 0 where that is not measured (all but RSA in lanes)",
            ),
            gauge(
                "quadrille_key_wait_expected_seconds",
                &[],
                "how long an operation that comes now would wait behind all others",
            ),
            histogram(
                "quadrille_key_wait_seconds",
                &["key_type"],
                "seconds that the first operation of a batch had waited",
            ),
            histogram(
                "quadrille_key_batch_size",
                &["key_type", "backend"],
                "operations that the backend was offered together",
            ),
            gauge(
                "quadrille_key_batch_width",
                &["key_type", "backend"],
                "how many operations the backend computes for the price of one",
            ),
            gauge(
                "quadrille_key_batch_crossover",
                &["key_type", "backend"],
                "from how many operations on the backend is cheaper than scalar code, measured at start",
            ),
            gauge(
                "quadrille_gpu_in_use",
                &["device"],
                "1 where a GPU computes what is too much for the CPU (as backend `cuda`), 0 after it was \
                 lost; missing where there is none",
            ),
            counter(
                "quadrille_key_shed_total",
                &["key_type"],
                "operations refused because the queue was full",
            ),
            counter(
                "quadrille_key_withdrawn_total",
                &["key_type"],
                "operations withdrawn because the client had left",
            ),
            gauge("quadrille_key_queue_depth", &["key_type"], "operations that wait"),
            gauge(
                "quadrille_key_queue_oldest_seconds",
                &["key_type"],
                "seconds that the oldest waiting operation has waited",
            ),
        ],
    },
    Group {
        heading: "Key exchange",
        metrics: &[
            counter(
                "quadrille_handshake_key_exchanges_total",
                &["group", "by"],
                "handshakes that have exchanged keys, by group (`x25519mlkem768`, `x25519`, `p256`, `p384`, `p521`) and by \
                 who has computed the server's part: `engine` or `boringssl`",
            ),
            counter(
                "quadrille_key_exchange_operations_total",
                &["operation", "backend", "result"],
                "operations of the engine: `x25519` and `p256` (shared secrets), `x25519-key-pair`, `p256-key-pair`, \
                 `ml-kem-768` (an encapsulation); `failed` counts shares that a client must not have sent",
            ),
            histogram(
                "quadrille_key_exchange_seconds",
                &["operation", "backend"],
                "seconds to compute the operations of one pass",
            ),
            histogram(
                "quadrille_key_exchange_wait_seconds",
                &["operation"],
                "seconds that the first share of a batch had waited for the end of its event loop's turn",
            ),
            histogram(
                "quadrille_key_exchange_batch_size",
                &["operation", "backend"],
                "operations that were computed together",
            ),
        ],
    },
    Group {
        heading: "Returning clients",
        metrics: &[
            counter(
                "quadrille_resumption_offered_total",
                &["kind"],
                "handshakes in which the client offered a session: `ticket` or `id`",
            ),
            counter(
                "quadrille_resumption_hits_total",
                &["kind"],
                "handshakes that resumed the session that the client offered",
            ),
            counter(
                "quadrille_resumption_misses_total",
                &["kind", "reason"],
                "handshakes that did not resume the session that the client offered: `unknown_key`, \
                 `expired`, `from_the_future` (another gateway's clock is ahead), `other_context` (SNI, \
                 certificate, client authentication), `other_parameters` (version, cipher suite), `damaged`, \
                 `store_miss`, `store_timeout`, `store_unavailable`",
            ),
            counter(
                "quadrille_early_data_total",
                &["result"],
                "handshakes of clients that offered early data (0-RTT): `accepted` or `refused`",
            ),
            histogram(
                "quadrille_session_lookup_seconds",
                &["result"],
                "seconds to find a session by its id: `hit`, or the reason of a miss",
            ),
            gauge("quadrille_session_store_sessions", &[], "sessions by id that this process keeps"),
            gauge(
                "quadrille_session_store_suspended",
                &[],
                "1 while Redis is not asked because it does not answer",
            ),
            counter(
                "quadrille_session_store_writes_total",
                &["result"],
                "sessions sent to Redis: `ok` or `lost`",
            ),
            gauge("quadrille_ticket_keys", &[], "ticket keys that this process knows"),
            gauge(
                "quadrille_ticket_key_age_seconds",
                &[],
                "seconds since the current ticket key began to encrypt; `NaN` if unknown",
            ),
            gauge(
                "quadrille_ticket_key_next_rotation_seconds",
                &[],
                "seconds until the next ticket key takes over; `NaN` if there is none",
            ),
        ],
    },
    certificates::GROUP,
    Group {
        heading: "Keys on key servers, at the gateway",
        metrics: &[
            gauge(
                "quadrille_keyless_server_up",
                &["server"],
                "1 while this process has a connection to the key server",
            ),
            counter(
                "quadrille_keyless_operations_total",
                &["server", "result"],
                "operations that key servers have answered: `ok`, `refused`, `wrong`",
            ),
            histogram(
                "quadrille_keyless_operation_seconds",
                &["server"],
                "seconds from sending an operation to its reply",
            ),
            counter(
                "quadrille_keyless_failures_total",
                &["reason"],
                "operations without a result: `unavailable`, `deadline`, `refused`, `full`, `closed`",
            ),
            counter("quadrille_keyless_hedges_total", &[], "second requests, because the first took long"),
            counter(
                "quadrille_keyless_fallbacks_total",
                &[],
                "operations computed with the local key, because no key server has",
            ),
            counter(
                "quadrille_keyless_spilled_total",
                &["result"],
                "operations that would have waited too long here (`use: overflow`): `ok`, and those computed here \
                 after all because the key servers were `late` or have `failed`",
            ),
            counter(
                "quadrille_keyless_violations_total",
                &["server"],
                "connections closed because of what came on them",
            ),
        ],
    },
    Group {
        heading: "At a key server",
        metrics: &[
            counter(
                "quadrille_keyserver_operations_total",
                &["client", "key", "operation", "result"],
                "operations computed, by client and key: `sign`, `decrypt` or `generate`; `ok`, `failed`, `withdrawn`",
            ),
            counter(
                "quadrille_keyserver_refused_total",
                &["client", "reason"],
                "operations refused, by client: `no_key`, `denied`, `rate`, `opcode`, `input`, `queue_full`",
            ),
            histogram("quadrille_keyserver_seconds", &[], "seconds from taking an operation up to its reply"),
            gauge("quadrille_keyserver_connections", &[], "open connections of clients"),
            counter("quadrille_keyserver_connections_total", &[], "accepted connections of clients"),
            counter(
                "quadrille_keyserver_refused_connections_total",
                &["reason"],
                "connections of clients that were refused: `handshake`, `timeout`, `policy`, `too_many`",
            ),
            counter(
                "quadrille_keyserver_violations_total",
                &["client"],
                "connections closed because of what came on them",
            ),
            gauge("quadrille_keyserver_keys", &[], "keys that are served"),
        ],
    },
];

#[cfg(test)]
mod tests;
