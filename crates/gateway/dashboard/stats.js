// Statistics of an interval, computed from counters. Pure functions; null without data.

const all = () => true;

/** Returns the interval since the process started. */
export function sinceStart(snapshot, now) {
    const seconds = now - (gauge(snapshot, "process_start_time_seconds") ?? now);
    return { before: new Map(), now: snapshot, seconds: Math.max(seconds, 1) };
}

/** Returns the sum of a gauge's series; null if it has none. */
export function gauge(snapshot, name, where = all) {
    const samples = (snapshot.get(name) ?? []).filter(sample => where(sample.labels));
    return samples.length === 0 ? null : samples.reduce((sum, sample) => sum + sample.value, 0);
}

/** Returns the increase of a counter. A new series started at zero. */
export function increase({ before, now }, name, where = all) {
    let sum = 0;
    for (const value of increases({ before, now }, name, where).values()) sum += value;
    return sum;
}

/** Returns the increase of a counter by the values of a label. */
export function increaseBy(interval, name, label, where = all) {
    const sums = new Map();
    for (const [sample, value] of increases(interval, name, where)) {
        const key = sample.labels[label] ?? "";
        sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return sums;
}

function increases({ before, now }, name, where) {
    const earlier = new Map((before.get(name) ?? []).map(sample => [sample.key, sample.value]));
    const grown = new Map();
    for (const sample of now.get(name) ?? []) {
        if (where(sample.labels)) grown.set(sample, Math.max(0, sample.value - (earlier.get(sample.key) ?? 0)));
    }
    return grown;
}

/** Returns the increase of a histogram: its count, its sum, and the counts up to each bound. */
export function distribution(interval, name, where = all) {
    const upTo = increaseBy(interval, `${name}_bucket`, "le", where);
    const bounds = [...upTo.keys()].map(bound => [bound === "+Inf" ? Infinity : Number(bound), upTo.get(bound)]);
    bounds.sort((one, other) => one[0] - other[0]);
    return { count: increase(interval, `${name}_count`, where), sum: increase(interval, `${name}_sum`, where), bounds };
}

/** Returns the `q`-quantile, with linear interpolation within buckets. */
export function quantile({ count, bounds }, q) {
    if (count <= 0) return null;
    const rank = q * count;
    let [lower, below] = [0, 0];
    for (const [bound, upTo] of bounds) {
        if (upTo >= rank && upTo > below) {
            return bound === Infinity ? lower : lower + (bound - lower) * ((rank - below) / (upTo - below));
        }
        if (bound !== Infinity) [lower, below] = [bound, upTo];
    }
    return lower;
}

/** Returns handshakes and operations per second. */
export function rates(interval) {
    const { seconds } = interval;
    const sessions = increaseBy(interval, "quadrille_handshakes_total", "session");
    return {
        full: (sessions.get("full") ?? 0) / seconds,
        resumed: (sessions.get("resumed") ?? 0) / seconds,
        failed: increase(interval, "quadrille_handshake_failures_total") / seconds,
        operations: increase(interval, "quadrille_key_operations_total", ({ result }) => result !== "recomputed") / seconds,
        shed: increase(interval, "quadrille_key_shed_total") / seconds,
        refused: increase(interval, "quadrille_handshakes_refused_total") / seconds,
    };
}

/** Returns HTTP requests per second, by status class and in total. */
export function requests(interval) {
    const by = increaseBy(interval, "quadrille_requests_total", "status");
    const rate = status => (by.get(status) ?? 0) / interval.seconds;
    const each = {
        ok: rate("1xx") + rate("2xx"), redirects: rate("3xx"), clientErrors: rate("4xx"), serverErrors: rate("5xx"), unanswered: by.has("none") ? rate("none") : null,
    };
    return { ...each, answered: Object.values(each).reduce((sum, value) => sum + (value ?? 0), 0) };
}

/** Returns the time to the upstreams' response headers, in seconds. */
export function upstreamTimes(interval) {
    const times = distribution(interval, "quadrille_upstream_seconds");
    return { upstream50: quantile(times, 0.5), upstream99: quantile(times, 0.99) };
}

/** Returns failed handshakes by reason, the most frequent first. */
export function failures(interval) {
    const by = increaseBy(interval, "quadrille_handshake_failures_total", "reason");
    return [...by].filter(([, count]) => count > 0).sort((one, other) => other[1] - one[1]);
}

/**
 * Returns the CPU time of private-key operations in seconds: the time spent, and the time saved by batching, which the
 * gateway counts for each batch. `share` is the saved part of the cost of single operations.
 */
export function cpuSaved(interval) {
    const seconds = name => increase(interval, name) / 1e9;
    const spent = seconds("quadrille_key_cpu_nanoseconds_total");
    const saved = seconds("quadrille_key_cpu_saved_nanoseconds_total");
    return { spent, saved, share: spent + saved > 0 ? saved / (spent + saved) : null };
}

/** Returns the share of resumed handshakes. */
export function resumedShare(interval) {
    const { full, resumed } = rates(interval);
    return full + resumed > 0 ? resumed / (full + resumed) : null;
}

/** Returns the share of offered sessions that were resumed; null if none was offered. */
export function hitRate(interval) {
    const offered = increase(interval, "quadrille_resumption_offered_total");
    return offered > 0 ? increase(interval, "quadrille_resumption_hits_total") / offered : null;
}

/** Returns the mean size of batches, their counts by size, and the number of operations that fit in one pass. */
export function batches(interval) {
    const sizes = distribution(interval, "quadrille_key_batch_size");
    const widths = (interval.now.get("quadrille_key_batch_width") ?? []).map(sample => sample.value);
    let before = 0;
    const counts = sizes.bounds.map(([bound, upTo]) => {
        const count = upTo - before;
        before = upTo;
        return { bound, count };
    });
    return { mean: sizes.count > 0 ? sizes.sum / sizes.count : null, counts, count: sizes.count, width: Math.max(1, ...widths) };
}

/** Returns the queueing times of operations, and the computing times of batches, in seconds. */
export function keyTimes(interval) {
    const waits = distribution(interval, "quadrille_key_wait_seconds");
    const computed = distribution(interval, "quadrille_key_operation_seconds");
    return { wait50: quantile(waits, 0.5), wait99: quantile(waits, 0.99), computed50: quantile(computed, 0.5) };
}

/** Returns the times from accept to the end of the handshake, in seconds. */
export function handshakeTimes(interval) {
    const times = distribution(interval, "quadrille_handshake_seconds");
    return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

/**
 * Returns the CPU time by stage for each kind of measured handshake, the most expensive first:
 * `[{version, session, samples, total, stages: Map of stage to microseconds}]`. A null `sni` selects all names.
 */
export function stages(interval, sni = null) {
    const named = labels => sni === null || labels.sni === sni;
    const kinds = new Map();
    for (const sample of interval.now.get("quadrille_handshake_samples_total") ?? []) {
        const { version, session } = sample.labels;
        kinds.set(`${version} ${session}`, { version, session });
    }
    const measured = [...kinds.values()].map(kind => {
        const where = labels => named(labels) && labels.version === kind.version && labels.session === kind.session;
        const samples = increase(interval, "quadrille_handshake_samples_total", where);
        const spent = increaseBy(interval, "quadrille_handshake_cpu_nanoseconds_total", "stage", where);
        const stages = new Map([...spent].map(([stage, nanoseconds]) => [stage, nanoseconds / 1000 / samples]));
        const total = [...stages.values()].reduce((sum, microseconds) => sum + microseconds, 0);
        return { ...kind, samples, total, stages };
    });
    return measured.filter(kind => kind.samples > 0).sort((one, other) => other.total - one.total);
}

/** Returns the names for which handshakes were measured since the process started. */
export function sampledNames(snapshot) {
    return [...new Set((snapshot.get("quadrille_handshake_samples_total") ?? []).map(sample => sample.labels.sni))].sort();
}

/** Returns the CPU time in microseconds of a handshake of this session type, over all versions. */
export function cpuOf(interval, session) {
    const where = labels => labels.session === session;
    const samples = increase(interval, "quadrille_handshake_samples_total", where);
    const name = "quadrille_handshake_cpu_nanoseconds_total";
    if (samples === 0) return null;
    const ofKey = labels => where(labels) && labels.stage === "PrivateKey";
    return {
        total: increase(interval, name, where) / 1000 / samples,
        key: increase(interval, name, ofKey) / 1000 / samples,
    };
}
