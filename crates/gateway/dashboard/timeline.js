// Snapshots in order. Differences are taken only within one process: a counter that was reset gives no rate.

import { gauge } from "./stats.js";

/** Time windows of the page in seconds, with the minimum spacing of their snapshots: every one, or one in ten seconds. */
export const MINUTES = { window: 300, spacing: 0 };
export const HOUR = { window: 3600, spacing: 10 };

/**
 * Two snapshots of the same process, and the seconds between them.
 * @typedef {{before: Snapshot, now: Snapshot, seconds: number}} Interval
 */
export class Timeline {
    #window;
    #spacing;
    #entries = [];
    #newest = null;
    #points = [];

    constructor({ window, spacing }) {
        this.#window = window;
        this.#spacing = spacing;
    }

    /** Length of the window in seconds. */
    get window() {
        return this.#window;
    }

    /**
     * Adds a snapshot taken at `time`, in seconds of a monotonic clock, unless it is too close to the previous one.
     * `figures` computes a point of the charts from the interval since the previous snapshot; after a restart there is no
     * point, and the charts have a gap.
     */
    add(snapshot, time, figures) {
        const entry = { snapshot, time, process: gauge(snapshot, "process_start_time_seconds") };
        const before = this.#entries.at(-1);
        const goesOn = before !== undefined && continues(before, entry);
        this.#newest = entry;
        if (goesOn && time - before.time < this.#spacing - SLACK) return;
        if (!goesOn) this.#entries = [];
        this.#entries.push(entry);
        const values = goesOn ? figures(interval(before, entry)) : null;
        this.#points.push({ time, values });
        this.#forget(time);
    }

    /** Adds a gap, because the gateway was not reachable. */
    interrupt(time) {
        this.#points.push({ time, values: null });
        this.#forget(time);
    }

    /** The newest snapshot, if there is one. */
    get latest() {
        return this.#newest?.snapshot ?? null;
    }

    /** Returns the interval of the last `seconds`, or the known part; null after the first snapshot of a process. */
    last(seconds) {
        const now = this.#newest;
        const before = this.#entries.find(entry => now.time - entry.time <= seconds + SLACK);
        return before === undefined || before === now ? null : interval(before, now);
    }

    /** Points of the charts; `values` is null in a gap. */
    get points() {
        return this.#points;
    }

    #forget(time) {
        const kept = entry => time - entry.time <= this.#window + SLACK;
        this.#points = this.#points.filter(kept);
        // The newest is kept at any age: after a gap, the next snapshot is compared with it.
        this.#entries = this.#entries.filter((entry, index) => kept(entry) || index === this.#entries.length - 1);
    }
}

/** Tolerance in seconds, since snapshots are not taken at exact times. */
const SLACK = 1;

function interval(before, now) {
    return { before: before.snapshot, now: now.snapshot, seconds: now.time - before.time };
}

/** Returns whether both are of the same process: same start time, and no counter has decreased. */
function continues(before, now) {
    if (before.process !== now.process || now.time <= before.time) return false;
    for (const [name, samples] of before.snapshot) {
        if (!name.endsWith("_total") && !name.endsWith("_count")) continue;
        const later = new Map((now.snapshot.get(name) ?? []).map(sample => [sample.key, sample.value]));
        if (samples.some(sample => (later.get(sample.key) ?? 0) < sample.value)) return false;
    }
    return true;
}
