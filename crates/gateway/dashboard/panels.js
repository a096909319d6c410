// The tiles, and the pictures of the last minutes.

import { Chart } from "./chart.js";
import { element, byId, setText } from "./elements.js";
import { batches, cpuOf, gauge, handshakeTimes, hitRate, keyTimes, rates, resumedShare } from "./stats.js";
import { duration, microseconds, number, percent } from "./format.js";

/** A point of the pictures: what happened since the snapshot before. */
export function point(interval) {
    const { mean } = batches(interval);
    return {
        ...rates(interval),
        ...keyTimes(interval),
        share: resumedShare(interval),
        hits: hitRate(interval),
        fill: mean,
        depth: gauge(interval.now, "quadrille_key_queue_depth") ?? 0,
    };
}

const HANDSHAKES = "No handshake yet. Connect a client, and this picture begins.";

/** Makes the pictures; call the result with the timeline and what has happened at all. */
export function charts() {
    const pictures = [
        ["handshakes", {
            series: [{ key: "full", label: "full" }, { key: "resumed", label: "resumed" }],
            stacked: true, format: number, empty: HANDSHAKES,
        }],
        ["resumption", {
            series: [
                { key: "share", label: "of all handshakes" },
                { key: "hits", label: "of clients that offered a session", optional: true },
            ],
            format: percent, empty: HANDSHAKES,
        }],
        ["fill", {
            series: [{ key: "fill", label: "operations in a batch" }, { key: "depth", label: "waiting in the queue" }],
            format: number, empty: "No private-key operation has been queued yet.",
        }],
        ["key-times", {
            series: [
                { key: "wait50", label: "wait, median" },
                { key: "wait99", label: "wait, 99th percentile" },
                { key: "computed50", label: "computing, median" },
            ],
            least: 1e-4, format: duration, empty: "No private-key operation has been computed yet.",
        }],
    ].map(([id, options]) => [id, new Chart(byId(id), options)]);
    return (points, snapshot) => {
        const happened = {
            handshakes: gauge(snapshot, "quadrille_handshakes_total") > 0,
            resumption: gauge(snapshot, "quadrille_handshakes_total") > 0,
            fill: gauge(snapshot, "quadrille_key_batch_size_count") > 0,
            "key-times": gauge(snapshot, "quadrille_key_operation_seconds_count") > 0,
        };
        for (const [id, chart] of pictures) chart.update(points, happened[id]);
    };
}

/** Writes the tiles. Rates are of the last seconds, percentiles of the last minute, CPU of all minutes on the page. */
export function tiles(timeline) {
    const [seconds, minute, page] = [timeline.last(6), timeline.last(60), timeline.last(Infinity)];
    const known = (interval, figure) => (interval === null ? null : figure(interval));
    const now = known(seconds, rates);
    tile("rate", number(now && now.full + now.resumed), now && `${number(now.full)} full, ${number(now.resumed)} resumed`);
    tile("operations", number(now && now.operations), now && (now.shed > 0 ? `${number(now.shed)} refused` : "none refused"));
    tile("share", percent(known(minute, resumedShare)), "of the last minute");
    const times = known(minute, handshakeTimes);
    tile("time", duration(times && times.p50), times && times.p99 !== null ? `99 %: ${duration(times.p99)}` : "median");
    const full = known(page, interval => cpuOf(interval, "full"));
    tile("cpu", microseconds(full && full.total),
        full ? `private key: ${microseconds(full.key)}` : "none measured yet");
    const filled = known(minute, batches);
    tile("batch", number(filled && filled.mean), filled && filled.width > 1 ? `up to ${filled.width} at once` : "one at a time");
    const open = timeline.latest && gauge(timeline.latest, "quadrille_connections");
    const refused = now && now.refused > 0 ? `, of them ${number(now.refused)} refused` : "";
    tile("connections", number(open), now && `${number(now.failed)} failures/s${refused}`);
    sizes(filled);
}

function tile(id, value, note) {
    const where = byId(`tile-${id}`);
    setText(where.querySelector(".value"), value);
    setText(where.querySelector(".note"), note ?? "");
}

/** How many batches of each size the last minute has had. */
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
