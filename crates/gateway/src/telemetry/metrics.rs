//! Everything that is counted, in Prometheus's form.
//!
//! | metric | labels |
//! |---|---|
//! | `quadrille_handshakes_total` | `version`, `cipher`, `key_type`, `session` (`full`, `resumed`) |
//! | `quadrille_handshake_failures_total` | `reason`: `tls`, `closed` (by the client), `timeout`, `not_tls`, `plain_http`, `proxy_header`, `too_many_handshakes`, `no_chain` (of the listener accepts it), `shed` (key queue full), `key` (operation failed), `key_server` (key servers have not computed it) |
//! | `quadrille_handshake_seconds` | `session` |
//! | `quadrille_handshake_samples_total` | `session`, `version`, `sni` (a configured name, `other` or `none`) |
//! | `quadrille_handshake_cpu_nanoseconds_total` | `stage` (a message, or `PrivateKey`), `session`, `version`, `sni` |
//! | `quadrille_key_operations_total` | `key_type`, `backend`, `result` (`ok`, `failed`, `recomputed`) |
//! | `quadrille_key_operation_seconds` | `key_type`, `backend`; computing one batch |
//! | `quadrille_key_wait_seconds` | `key_type`; the first of a batch in the queue |
//! | `quadrille_key_batch_size` | `key_type`, `backend`; operations offered to the backend together |
//! | `quadrille_key_shed_total`, `quadrille_key_withdrawn_total` | `key_type` |
//! | `quadrille_key_queue_depth`, `quadrille_key_queue_oldest_seconds` | `key_type` |
//! | `quadrille_key_batch_width`, `quadrille_key_batch_crossover` | `key_type`, `backend`; operations at the price of one, and from how many on the backend pays |
//! | `quadrille_gpu_in_use` | `device`; 0 after it was lost, missing where there is none |
//! | `quadrille_resumption_offered_total` | `kind`: `ticket`, `id` |
//! | `quadrille_resumption_hits_total` | `kind` |
//! | `quadrille_resumption_misses_total` | `kind`, `reason`: `unknown_key`, `expired`, `from_the_future` (another gateway's clock is ahead), `other_site` (SNI, certificate, client authentication), `other_parameters` (version, cipher suite), `damaged`, `store_miss`, `store_timeout`, `store_unavailable` |
//! | `quadrille_early_data_total` | `result`: `accepted`, `refused`; handshakes of clients that offered early data |
//! | `quadrille_session_lookup_seconds` | `result`: `hit`, or a reason |
//! | `quadrille_session_store_sessions` (in this process), `quadrille_session_store_suspended` | |
//! | `quadrille_session_store_writes_total` | `result`: `ok`, `lost` |
//! | `quadrille_ticket_keys`, `quadrille_ticket_key_age_seconds`, `quadrille_ticket_key_next_rotation_seconds` | |
//! | `quadrille_connections`, `quadrille_connections_total` | |
//! | `quadrille_requests_total` | `status` (`2xx` ...) |
//! | `quadrille_reloads_total` | `result` |

use super::{statistics, status};
use crate::connection::{Connection, ResumptionKind, ResumptionOutcome};
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use quadrille_engine::{BatchReport, Batching, Engine, KeyType, Observer, Overflow};
use quadrille_resumption::{SessionStore, Tickets, unix_now};
use std::{
    cell::RefCell,
    collections::HashMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

/// Seconds, from a tenth of a millisecond to ten seconds.
const TIMES: [f64; 16] =
    [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Key operations are shorter.
const KEY_TIMES: [f64; 14] =
    [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 1.0];
const KEYLESS_SECONDS: &str = "quadrille_keyless_operation_seconds";
const KEYSERVER_SECONDS: &str = "quadrille_keyserver_seconds";
const SIZES: [f64; 12] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 16.0, 32.0, 64.0, 1024.0];

/// Installs the recorder for this process. `None` if there is one already.
pub(crate) fn install() -> Option<PrometheusHandle> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("quadrille_handshake_seconds".into()), &TIMES)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Prefix("quadrille_key_".into()), &KEY_TIMES)
        })
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(KEYLESS_SECONDS.into()), &KEY_TIMES))
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full(KEYSERVER_SECONDS.into()), &KEY_TIMES)
        })
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full("quadrille_key_batch_size".into()), &SIZES)
        })
        .and_then(|builder| {
            builder
                .set_buckets_for_metric(Matcher::Full("quadrille_session_lookup_seconds".into()), &KEY_TIMES)
        })
        .ok()?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).ok()?;
    describe();
    gauge!("process_start_time_seconds").set(status::started());
    gauge!("quadrille_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Some(handle)
}

fn describe() {
    describe_counter!("quadrille_handshakes_total", "TLS handshakes that succeeded");
    describe_counter!("quadrille_handshake_failures_total", "TLS handshakes that failed, by reason");
    describe_histogram!("quadrille_handshake_seconds", "From accept to the end of the handshake");
    describe_counter!("quadrille_handshake_samples_total", "Handshakes whose CPU time was measured");
    describe_counter!(
        "quadrille_handshake_cpu_nanoseconds_total",
        "CPU time of the measured handshakes, by message; PrivateKey is the private-key operation"
    );
    describe_counter!("quadrille_key_operations_total", "Private-key operations");
    describe_histogram!(
        "quadrille_key_operation_seconds",
        "Time to compute one batch of private-key operations"
    );
    describe_histogram!("quadrille_key_wait_seconds", "How long the first operation of a batch had waited");
    describe_histogram!("quadrille_key_batch_size", "Private-key operations offered to the backend together");
    describe_counter!(
        "quadrille_key_shed_total",
        "Private-key operations refused because the queue was full"
    );
    describe_counter!(
        "quadrille_key_withdrawn_total",
        "Private-key operations withdrawn because the client had left"
    );
    describe_gauge!("quadrille_key_queue_depth", "Private-key operations that wait");
    describe_gauge!("quadrille_key_queue_oldest_seconds", "How long the oldest of them has waited");
    describe_gauge!(
        "quadrille_key_batch_width",
        "Private-key operations that the backend computes for the price of one"
    );
    describe_gauge!(
        "quadrille_key_batch_crossover",
        "From how many private-key operations on the backend is cheaper than the scalar one, measured at start"
    );
    describe_gauge!("quadrille_gpu_in_use", "Whether the GPU takes part: 0 after it was lost");
    describe_counter!(
        "quadrille_resumption_offered_total",
        "Handshakes in which the client offered a session"
    );
    describe_counter!("quadrille_resumption_hits_total", "Handshakes that resumed a session");
    describe_counter!("quadrille_early_data_total", "Handshakes of clients that offered early data (0-RTT)");
    describe_counter!("quadrille_resumption_misses_total", "Full handshakes of returning clients, by reason");
    describe_histogram!("quadrille_session_lookup_seconds", "Time to find a session by its id");
    describe_gauge!("quadrille_session_store_sessions", "Sessions by id that this process keeps");
    describe_gauge!(
        "quadrille_session_store_suspended",
        "1 while Redis is not asked because it does not answer"
    );
    describe_counter!("quadrille_session_store_writes_total", "Sessions sent to Redis, by result");
    describe_gauge!("quadrille_ticket_keys", "Ticket keys that this process knows");
    describe_gauge!(
        "quadrille_ticket_key_age_seconds",
        "How long the current ticket key has been encrypting"
    );
    describe_gauge!("quadrille_ticket_key_next_rotation_seconds", "When the next ticket key takes over");
    describe_gauge!("process_start_time_seconds", "When this process has started, in Unix time");
    describe_gauge!("quadrille_build_info", "Always 1; the label is the version");
    describe_gauge!("quadrille_connections", "Open client connections");
    describe_counter!("quadrille_connections_total", "Accepted client connections");
    describe_counter!("quadrille_requests_total", "HTTP requests answered, by class of status");
    describe_counter!("quadrille_reloads_total", "Configuration reloads, by result");
}

/// Handles are looked up once for each set of labels and thread: the look-up would cost more than the count.
type HandshakeLabels = (&'static str, &'static str, bool, Option<KeyType>);

thread_local! {
    static HANDSHAKES: RefCell<HashMap<HandshakeLabels, (Counter, Histogram)>> = RefCell::default();
    static RESUMPTIONS: RefCell<HashMap<ResumptionOutcome, [Counter; 2]>> = RefCell::default();
    static LOOKUPS: RefCell<HashMap<&'static str, Histogram>> = RefCell::default();
    static FAILURES: RefCell<HashMap<&'static str, Counter>> = RefCell::default();
    static BATCHES: RefCell<HashMap<(KeyType, &'static str), BatchHandles>> = RefCell::default();
}

pub(crate) fn handshake(connection: &Connection) {
    let key_type = connection.key.map(|key| key.key_type);
    let labels = (connection.version, connection.cipher, connection.resumed, key_type);
    HANDSHAKES.with_borrow_mut(|known| {
        let (count, seconds) = known.entry(labels).or_insert_with(|| {
            let (version, cipher, resumed, key_type) = labels;
            let session = if resumed { "resumed" } else { "full" };
            let key_type = key_type.map_or_else(|| "none".to_owned(), |key_type| key_type.to_string());
            let count = counter!("quadrille_handshakes_total", "version" => version, "cipher" => cipher,
                "key_type" => key_type, "session" => session);
            (count, histogram!("quadrille_handshake_seconds", "session" => session))
        });
        count.increment(1);
        seconds.record(connection.handshake);
    });
}

pub(crate) fn handshake_failed(reason: &'static str) {
    FAILURES.with_borrow_mut(|known| {
        known
            .entry(reason)
            .or_insert_with(|| counter!("quadrille_handshake_failures_total", "reason" => reason))
            .increment(1);
    });
}

/// What became of the session that a client offered, if it offered one.
pub(crate) fn resumption(outcome: ResumptionOutcome) {
    let (ResumptionOutcome::Hit(kind) | ResumptionOutcome::Miss(kind, _)) = outcome else { return };
    RESUMPTIONS.with_borrow_mut(|known| {
        let counters = known.entry(outcome).or_insert_with(|| {
            let kind = match kind {
                ResumptionKind::Ticket => "ticket",
                ResumptionKind::Id => "id",
            };
            let became = match outcome {
                ResumptionOutcome::Miss(_, reason) => {
                    counter!("quadrille_resumption_misses_total", "kind" => kind, "reason" => reason)
                }
                _ => counter!("quadrille_resumption_hits_total", "kind" => kind),
            };
            [counter!("quadrille_resumption_offered_total", "kind" => kind), became]
        });
        counters.iter().for_each(|counter| counter.increment(1));
    });
}

/// A client that offered early data.
pub(crate) fn early_data(accepted: bool) {
    counter!("quadrille_early_data_total", "result" => if accepted { "accepted" } else { "refused" })
        .increment(1);
}

pub(crate) fn session_lookup(result: &'static str, took: Duration) {
    LOOKUPS.with_borrow_mut(|known| {
        known
            .entry(result)
            .or_insert_with(|| histogram!("quadrille_session_lookup_seconds", "result" => result))
            .record(took);
    });
}

pub(crate) fn request(status: u16) {
    static BY_CLASS: LazyLock<[Counter; 6]> = LazyLock::new(|| {
        ["none", "1xx", "2xx", "3xx", "4xx", "5xx"]
            .map(|class| counter!("quadrille_requests_total", "status" => class))
    });
    BY_CLASS[usize::from(status / 100).min(5)].increment(1);
}

pub(crate) fn reload(ok: bool) {
    counter!("quadrille_reloads_total", "result" => if ok { "ok" } else { "failed" }).increment(1);
}

static OPEN: LazyLock<(Gauge, Counter)> =
    LazyLock::new(|| (gauge!("quadrille_connections"), counter!("quadrille_connections_total")));

pub(crate) fn connection_opened() {
    OPEN.0.increment(1);
    OPEN.1.increment(1);
}

pub(crate) fn connection_closed() {
    OPEN.0.decrement(1);
}

/// Brings the gauges up to date before they are shown.
pub(crate) fn update_gauges(engine: &Engine, tickets: Option<&Tickets>, sessions: Option<&dyn SessionStore>) {
    let now = Instant::now();
    for depth in engine.depths() {
        let key_type = depth.key_type.to_string();
        let oldest = depth.oldest.map_or(0.0, |oldest| now.saturating_duration_since(oldest).as_secs_f64());
        gauge!("quadrille_key_queue_depth", "key_type" => key_type.clone()).set(depth.waiting as f64);
        gauge!("quadrille_key_queue_oldest_seconds", "key_type" => key_type).set(oldest);
    }
    if let Some(tickets) = tickets {
        gauge!("quadrille_ticket_keys").set(tickets.ring().keys().len() as f64);
        let (age, next) = tickets.ages(unix_now());
        for (name, time) in
            [("quadrille_ticket_key_age_seconds", age), ("quadrille_ticket_key_next_rotation_seconds", next)]
        {
            gauge!(name).set(time.map_or(f64::NAN, |time| time.as_secs_f64()));
        }
    }
    if let Some(store) = sessions {
        let statistics = store.statistics();
        gauge!("quadrille_session_store_sessions").set(statistics.sessions as f64);
        gauge!("quadrille_session_store_suspended").set(f64::from(u8::from(statistics.suspended)));
        counter!("quadrille_session_store_writes_total", "result" => "ok").absolute(statistics.written);
        counter!("quadrille_session_store_writes_total", "result" => "lost").absolute(statistics.lost);
    }
}

/// Shows how operations of this type are batched, which does not change while the process lives.
pub(crate) fn batching(engine: &Engine, key_type: KeyType, batching: Batching) {
    let labels = [("key_type", key_type.to_string()), ("backend", engine.backend().to_owned())];
    gauge!("quadrille_key_batch_width", &labels).set(batching.width as f64);
    gauge!("quadrille_key_batch_crossover", &labels).set(batching.crossover as f64);
}

/// Shows whether the GPU takes part.
pub(crate) fn gpu(gpu: &dyn Overflow, in_use: bool) {
    gauge!("quadrille_gpu_in_use", "device" => gpu.device().to_owned()).set(f64::from(u8::from(in_use)));
}

/// The engine's accounting.
#[derive(Debug)]
pub(crate) struct EngineMetrics;

struct BatchHandles {
    ok: Counter,
    failed: Counter,
    recomputed: Counter,
    computed: Histogram,
    waited: Histogram,
    size: Histogram,
}

impl BatchHandles {
    fn new(report: &BatchReport) -> Self {
        let key_type = report.key_type.to_string();
        let backend = report.backend;
        let operations = |result: &'static str| {
            counter!("quadrille_key_operations_total", "key_type" => key_type.clone(), "backend" => backend,
                "result" => result)
        };
        Self {
            ok: operations("ok"),
            failed: operations("failed"),
            recomputed: operations("recomputed"),
            computed: histogram!("quadrille_key_operation_seconds", "key_type" => key_type.clone(), "backend" => backend),
            waited: histogram!("quadrille_key_wait_seconds", "key_type" => key_type.clone()),
            size: histogram!("quadrille_key_batch_size", "key_type" => key_type.clone(), "backend" => backend),
        }
    }
}

impl Observer for EngineMetrics {
    fn batch(&self, report: &BatchReport) {
        BATCHES.with_borrow_mut(|known| {
            let labels = (report.key_type, report.backend);
            let handles = known.entry(labels).or_insert_with(|| BatchHandles::new(report));
            handles.ok.increment((report.operations - report.failed) as u64);
            if report.failed > 0 {
                handles.failed.increment(report.failed as u64);
            }
            if report.recomputed > 0 {
                handles.recomputed.increment(report.recomputed as u64);
            }
            handles.computed.record(report.computed);
            if !report.in_place {
                statistics::batch(report.operations);
                handles.waited.record(report.waited);
                handles.size.record(report.operations as f64);
            }
        });
    }

    fn retired(&self, overflow: &dyn Overflow, reason: &str) {
        gpu(overflow, false);
        tracing::error!(
            device = overflow.device(),
            reason,
            "the GPU is lost; the CPU computes alone until this process is started again"
        );
    }

    fn shed(&self, key_type: KeyType) {
        counter!("quadrille_key_shed_total", "key_type" => key_type.to_string()).increment(1);
    }

    fn withdrawn(&self, key_type: KeyType) {
        counter!("quadrille_key_withdrawn_total", "key_type" => key_type.to_string()).increment(1);
    }
}
