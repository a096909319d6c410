//! All metrics in Prometheus's format; `metric_table` describes each of them.

use super::{metric_table, statistics, status, upstream};
use crate::connection::{Connection, ResumptionKind, ResumptionOutcome};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use quadrille_engine::{
    BatchReport, Batching, Engine, ExchangeOperation, ExchangeReport, KeyType, Observer, Overflow,
};
use quadrille_resumption::{SessionStore, Tickets};
use std::{
    cell::RefCell,
    collections::HashMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

/// Buckets in seconds, from a tenth of a millisecond to ten seconds.
const TIMES: [f64; 16] =
    [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Buckets for key operations, which are shorter, and for those of key exchange, which are shorter still.
const KEY_TIMES: [f64; 15] =
    [5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 1.0];
const KEYLESS_SECONDS: &str = "quadrille_keyless_operation_seconds";
const KEYSERVER_SECONDS: &str = "quadrille_keyserver_seconds";
const EXCHANGE_BATCH: &str = "quadrille_key_exchange_batch_size";
const SIZES: [f64; 12] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 16.0, 32.0, 64.0, 1024.0];

/// Installs the recorder for this process. `None` if there already is one.
pub(crate) fn install() -> Option<PrometheusHandle> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full("quadrille_handshake_seconds".into()), &TIMES)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Prefix("quadrille_key_".into()), &KEY_TIMES)
        })
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(upstream::SECONDS.into()), &TIMES))
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(KEYLESS_SECONDS.into()), &KEY_TIMES))
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full(KEYSERVER_SECONDS.into()), &KEY_TIMES)
        })
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Full("quadrille_key_batch_size".into()), &SIZES)
        })
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(EXCHANGE_BATCH.into()), &SIZES))
        .and_then(|builder| {
            builder
                .set_buckets_for_metric(Matcher::Full("quadrille_session_lookup_seconds".into()), &KEY_TIMES)
        })
        .ok()?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).ok()?;
    metric_table::describe();
    gauge!("process_start_time_seconds").set(status::started());
    gauge!("quadrille_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Some(handle)
}

/// Handles are looked up once for each set of labels and thread: the look-up costs more than the count.
type HandshakeLabels = (&'static str, &'static str, bool, Option<KeyType>);

thread_local! {
    static HANDSHAKES: RefCell<HashMap<HandshakeLabels, (Counter, Histogram)>> = RefCell::default();
    static RESUMPTIONS: RefCell<HashMap<ResumptionOutcome, [Counter; 2]>> = RefCell::default();
    static LOOKUPS: RefCell<HashMap<&'static str, Histogram>> = RefCell::default();
    static FAILURES: RefCell<HashMap<&'static str, Counter>> = RefCell::default();
    static DROPPED: RefCell<HashMap<&'static str, Counter>> = RefCell::default();
    static REFUSALS: RefCell<HashMap<&'static str, Counter>> = RefCell::default();
    static EXCHANGED: RefCell<HashMap<(&'static str, bool), Counter>> = RefCell::default();
    static EXCHANGES: RefCell<HashMap<(ExchangeOperation, &'static str), ExchangeHandles>> = RefCell::default();
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

/// Counts a handshake that was rejected by admission control.
pub(crate) fn handshake_refused(reason: &'static str) {
    REFUSALS.with_borrow_mut(|known| {
        known
            .entry(reason)
            .or_insert_with(|| counter!("quadrille_handshakes_refused_total", "reason" => reason))
            .increment(1);
    });
}

/// Sets the gauges of overload.
pub(crate) fn admission(overloaded: bool, key_wait: Duration, loop_delay: Duration, shut_out: usize) {
    gauge!("quadrille_networks_shut_out").set(shut_out as f64);
    gauge!("quadrille_overloaded").set(f64::from(u8::from(overloaded)));
    gauge!("quadrille_key_wait_expected_seconds").set(key_wait.as_secs_f64());
    gauge!("quadrille_event_loop_delay_seconds").set(loop_delay.as_secs_f64());
}

/// Counts a handshake with a key exchange in this group.
pub(crate) fn key_exchange(group: &'static str, by_engine: bool) {
    EXCHANGED.with_borrow_mut(|known| {
        let counter = known.entry((group, by_engine)).or_insert_with(|| {
            let by = if by_engine { "engine" } else { "boringssl" };
            counter!("quadrille_handshake_key_exchanges_total", "group" => group, "by" => by)
        });
        counter.increment(1);
    });
}

/// Counts the result of a session that a client offered, if any.
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

/// Returns the counter of requests over a rate limit that were `refused` or `let_through`, or for which a service did
/// not respond (`unanswered`).
pub(crate) fn rate_limited(limit: &str, by: &'static str, result: &'static str) -> Counter {
    counter!("quadrille_rate_limited_total", "limit" => limit.to_owned(), "by" => by, "result" => result)
}

/// Counts bytes of responses before and after compression.
pub(crate) fn compressed(coding: &'static str, sizes: [usize; 2]) {
    for (side, size) in ["before", "after"].into_iter().zip(sizes) {
        counter!("quadrille_compression_bytes_total", "coding" => coding, "side" => side)
            .increment(size as u64);
    }
}

/// Counts the result of a mirrored request: `answered`, `failed` or `dropped`.
pub(crate) fn mirrored(result: &'static str) {
    counter!("quadrille_requests_mirrored_total", "result" => result).increment(1);
}

/// Counts a handshake with early data.
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

pub(crate) fn acme_order(issued: bool) {
    counter!("quadrille_acme_orders_total", "result" => if issued { "issued" } else { "failed" })
        .increment(1);
}

/// Counts the result of a client's request for a name.
pub(crate) fn acme_asked(result: &'static str) {
    counter!("quadrille_acme_on_demand_total", "result" => result).increment(1);
}

/// Counts a record of shared certificates that the fleet has not sealed.
pub(crate) fn acme_record_refused() {
    counter!("quadrille_acme_records_refused_total").increment(1);
}

/// Sets whether the fleet with shared certificates is reachable.
pub(crate) fn acme_fleet(reachable: bool) {
    gauge!("quadrille_acme_fleet_reachable").set(f64::from(u8::from(reachable)));
}

/// Counts the result of a request to an OCSP responder.
pub(crate) fn ocsp_fetch(result: &'static str) {
    counter!("quadrille_ocsp_fetches_total", "result" => result).increment(1);
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

/// Counts a dropped QUIC datagram.
pub(crate) fn datagram_dropped(reason: &'static str) {
    DROPPED.with_borrow_mut(|known| {
        known
            .entry(reason)
            .or_insert_with(|| counter!("quadrille_quic_datagrams_dropped_total", "reason" => reason))
            .increment(1);
    });
}

/// Counts a datagram received by an event loop other than its connection's.
pub(crate) fn datagram_handed_over() {
    static COUNT: LazyLock<Counter> =
        LazyLock::new(|| counter!("quadrille_quic_datagrams_handed_over_total"));
    COUNT.increment(1);
}

/// Counts a Retry packet.
pub(crate) fn address_proof_asked() {
    static COUNT: LazyLock<Counter> = LazyLock::new(|| counter!("quadrille_quic_retries_total"));
    COUNT.increment(1);
}

/// Counts a stateless reset.
pub(crate) fn stateless_reset() {
    static COUNT: LazyLock<Counter> = LazyLock::new(|| counter!("quadrille_quic_stateless_resets_total"));
    COUNT.increment(1);
}

/// Counts a Version Negotiation packet.
pub(crate) fn version_negotiated() {
    static COUNT: LazyLock<Counter> = LazyLock::new(|| counter!("quadrille_quic_version_negotiations_total"));
    COUNT.increment(1);
}

/// Counts a completed QUIC handshake.
pub(crate) fn quic_handshake() {
    static COUNT: LazyLock<Counter> = LazyLock::new(|| counter!("quadrille_quic_handshakes_total"));
    COUNT.increment(1);
}

/// Counts a pause of an event loop that accepts no connections, because file descriptors ran short.
pub(crate) fn accepting_paused() {
    counter!("quadrille_accept_pauses_total").increment(1);
}

/// Counts idle connections that were closed because of it.
pub(crate) fn idle_connections_closed(count: usize) {
    counter!("quadrille_idle_connections_closed_total").increment(count as u64);
}

/// Updates the gauges before they are rendered.
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
        let (age, next) = tickets.ages(quadrille_unix_time::since_epoch());
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

/// Sets the gauges of a key type's batching, which is constant during the life of the process.
pub(crate) fn batching(engine: &Engine, key_type: KeyType, batching: Batching) {
    let labels = [("key_type", key_type.to_string()), ("backend", engine.backend().to_owned())];
    gauge!("quadrille_key_batch_width", &labels).set(batching.width as f64);
    gauge!("quadrille_key_batch_crossover", &labels).set(batching.crossover as f64);
}

/// Sets whether the GPU is in use.
pub(crate) fn gpu(gpu: &dyn Overflow, in_use: bool) {
    gauge!("quadrille_gpu_in_use", "device" => gpu.device().to_owned()).set(f64::from(u8::from(in_use)));
}

/// Observer that counts the engine's operations.
#[derive(Debug)]
pub(crate) struct EngineMetrics;

struct BatchHandles {
    ok: Counter,
    failed: Counter,
    recomputed: Counter,
    cpu: Counter,
    saved: Counter,
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
        let labels = [("key_type", key_type.clone()), ("backend", backend.to_owned())];
        Self {
            ok: operations("ok"),
            failed: operations("failed"),
            recomputed: operations("recomputed"),
            cpu: counter!("quadrille_key_cpu_nanoseconds_total", &labels),
            saved: counter!("quadrille_key_cpu_saved_nanoseconds_total", &labels),
            computed: histogram!("quadrille_key_operation_seconds", "key_type" => key_type.clone(), "backend" => backend),
            waited: histogram!("quadrille_key_wait_seconds", "key_type" => key_type.clone()),
            size: histogram!("quadrille_key_batch_size", "key_type" => key_type.clone(), "backend" => backend),
        }
    }
}

struct ExchangeHandles {
    ok: Counter,
    failed: Counter,
    computed: Histogram,
    waited: Histogram,
    size: Histogram,
}

impl ExchangeHandles {
    fn new(report: &ExchangeReport) -> Self {
        let operation = report.operation.to_string();
        let backend = report.backend;
        let operations = |result: &'static str| {
            counter!("quadrille_key_exchange_operations_total", "operation" => operation.clone(),
                "backend" => backend, "result" => result)
        };
        Self {
            ok: operations("ok"),
            failed: operations("failed"),
            computed: histogram!("quadrille_key_exchange_seconds", "operation" => operation.clone(),
                "backend" => backend),
            waited: histogram!("quadrille_key_exchange_wait_seconds", "operation" => operation.clone()),
            size: histogram!(EXCHANGE_BATCH, "operation" => operation, "backend" => backend),
        }
    }
}

/// Converts to nanoseconds; five hundred years fit.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
            let (cpu, saved) = (nanoseconds(report.cpu), nanoseconds(report.saved));
            handles.cpu.increment(cpu);
            handles.saved.increment(saved);
            statistics::key_work_done(report.operations, cpu, saved);
            handles.computed.record(report.computed);
            if !report.in_place {
                statistics::batch(report.operations);
                handles.waited.record(report.waited);
                handles.size.record(report.operations as f64);
            }
        });
    }

    fn exchanged(&self, report: &ExchangeReport) {
        EXCHANGES.with_borrow_mut(|known| {
            let labels = (report.operation, report.backend);
            let handles = known.entry(labels).or_insert_with(|| ExchangeHandles::new(report));
            handles.ok.increment((report.operations - report.failed) as u64);
            if report.failed > 0 {
                handles.failed.increment(report.failed as u64);
            }
            handles.computed.record(report.computed);
            handles.size.record(report.operations as f64);
            if !report.operation.is_made_ahead() {
                handles.waited.record(report.waited);
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
