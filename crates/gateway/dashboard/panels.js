// Tiles, and charts of the last minutes or the last hour.

import { Chart } from "./chart.js";
import { element, byId, setText } from "./elements.js";
import {
    batches, cpuOf, cpuSaved, gauge, handshakeTimes, hitRate, keyTimes, rates, requests, resumedShare, sinceStart, upstreamTimes,
} from "./stats.js";
import { cpuTime, duration, microseconds, number, percent } from "./format.js";

/** Returns a point of the charts: the activity since the previous snapshot. */
export function point(interval) {
    const { mean } = batches(interval);
    return {
        ...rates(interval),
        ...requests(interval),
        ...upstreamTimes(interval),
        ...keyTimes(interval),
        share: resumedShare(interval),
        hits: hitRate(interval),
        fill: mean,
        depth: gauge(interval.now, "quadrille_key_queue_depth") ?? 0,
    };
}

const HANDSHAKES = "No handshake yet. The chart starts with the first connection.";

const PICTURES = [
    ["handshakes", "quadrille_handshakes_total", {
        series: [{ key: "full", label: "full" }, { key: "resumed", label: "resumed" }],
        stacked: true, format: number, empty: HANDSHAKES,
    }],
    ["requests", "quadrille_requests_total", {
        series: [
            { key: "ok", label: "2xx" },
            { key: "redirects", label: "3xx" },
            { key: "clientErrors", label: "4xx" },
            { key: "serverErrors", label: "5xx" },
            { key: "unanswered", label: "no response", optional: true },
        ],
        stacked: true, format: number, empty: "No request yet.",
    }],
    ["upstream", "quadrille_upstream_seconds_count", {
        series: [{ key: "upstream50", label: "median" }, { key: "upstream99", label: "99th percentile" }],
        logarithmic: true, format: duration, empty: "No request has been forwarded yet.",
    }],
    ["resumption", "quadrille_handshakes_total", {
        series: [
            { key: "share", label: "of all handshakes" },
            { key: "hits", label: "of clients that offered a session", optional: true },
        ],
        top: 1, format: percent, empty: HANDSHAKES,
    }],
    ["fill", "quadrille_key_batch_size_count", {
        series: [{ key: "fill", label: "operations per batch" }, { key: "depth", label: "queued operations" }],
        format: number, empty: "No private-key operation has been queued yet.",
    }],
    ["key-times", "quadrille_key_operation_seconds_count", {
        series: [
            { key: "wait50", label: "wait, median" },
            { key: "wait99", label: "wait, 99th percentile" },
            { key: "computed50", label: "computing, median" },
        ],
        logarithmic: true, format: duration, empty: "No private-key operation has been computed yet.",
    }],
];

/** Creates the charts; call the result with a timeline and the newest snapshot. */
export function charts() {
    const made = PICTURES.map(([id, counted, options]) => [counted, new Chart(byId(id), options)]);
    return (timeline, snapshot) => {
        for (const [counted, chart] of made) chart.update(timeline.points, timeline.window, gauge(snapshot, counted) > 0);
    };
}

/**
 * Updates the tiles: rates of the last seconds, percentiles of the last minute, saved CPU time of the last hour.
 * `now` is Unix time.
 */
export function tiles(minutes, hour, now) {
    const [seconds, minute, hours] = [minutes.last(6), minutes.last(60), hour.last(Infinity)];
    const known = (interval, figure) => (interval === null ? null : figure(interval));
    const saved = known(hours, cpuSaved);
    tile("saved", percent(saved && saved.share), saved && saved.share !== null
        ? `${cpuTime(saved.saved)} of ${cpuTime(saved.saved + saved.spent)}, last hour`
        : "no private-key operation yet");
    const rate = known(seconds, rates);
    tile("rate", number(rate && rate.full + rate.resumed), rate && `${number(rate.full)} full, ${number(rate.resumed)} resumed`);
    const asked = known(seconds, requests);
    tile("requests", number(asked && asked.answered), asked && (asked.serverErrors > 0 ? `${number(asked.serverErrors)}/s are 5xx` : "no 5xx"));
    const upstream = known(minute, upstreamTimes);
    tile("upstream", duration(upstream && upstream.upstream50), upstream && upstream.upstream99 !== null ? `99 %: ${duration(upstream.upstream99)}` : "median");
    tile("operations", number(rate && rate.operations), rate && (rate.shed > 0 ? `${number(rate.shed)} rejected` : "none rejected"));
    tile("share", percent(known(minute, resumedShare)), "in the last minute");
    const times = known(minute, handshakeTimes);
    tile("time", duration(times && times.p50), times && times.p99 !== null ? `99 %: ${duration(times.p99)}` : "median");
    const full = cpuOf(measured(minutes, now), "full");
    tile("cpu", microseconds(full && full.total),
        full ? `private key: ${microseconds(full.key)}` : "none measured yet");
    const filled = known(minute, batches);
    tile("batch", number(filled && filled.mean), filled && company(filled));
    const open = minutes.latest && gauge(minutes.latest, "quadrille_connections");
    const refused = rate && rate.refused > 0 ? `, ${number(rate.refused)} of them rejected` : "";
    tile("connections", number(open), rate && `${number(rate.failed)} failures/s${refused}`);
    sizes(filled);
}

/** Returns an interval with measured handshakes: the last minutes, or else the life of the process. */
export function measured(minutes, now) {
    const interval = minutes.last(Infinity);
    const recent = interval !== null && (cpuOf(interval, "full") ?? cpuOf(interval, "resumed")) !== null;
    return recent ? interval : sinceStart(minutes.latest, now);
}

/** Describes the mean size of batches. */
function company({ mean, width }) {
    if (width === 1) return "this backend has no batches";
    return mean !== null && mean < 1.05 ? "too few concurrent operations for a batch" : `up to ${width} at the cost of one`;
}

function tile(id, value, note) {
    const where = byId(`tile-${id}`);
    setText(where.querySelector(".value"), value);
    setText(where.querySelector(".note"), note ?? "");
}

/** Shows the number of batches by size in the last minute. */
function sizes(filled) {
    const where = byId("sizes");
    if (filled === null || filled.count === 0) return where.replaceChildren();
    const most = Math.max(...filled.counts.map(({ count }) => count));
    const last = filled.counts.findLastIndex(({ count }) => count > 0);
    const shown = filled.counts.slice(0, Math.max(last + 1, Math.min(filled.width, filled.counts.length)));
    const columns = shown.map(({ bound, count }, index) => {
        const column = element("i", "");
        column.style.height = `${(count / most) * 100}%`;
        const previous = index === 0 ? 0 : shown[index - 1].bound;
        const label = bound === Infinity ? `> ${previous}` : bound - previous > 1 ? `≤ ${bound}` : String(bound);
        const share = count / filled.count;
        const whole = element("li", "", element("span", "column", column), element("span", "size", label));
        whole.title = `${percent(share)} of the batches`;
        return whole;
    });
    where.replaceChildren(...columns);
}
