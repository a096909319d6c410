// Snapshots in their order. Differences are only ever taken within one process: a counter that has begun anew is no rate.

import { gauge } from "./stats.js";

/** How far back the page looks, in seconds, and how close its snapshots are there: each one, or one in ten seconds. */
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

    /** How far back it looks, in seconds. */
    get window() {
        return this.#window;
    }

    /**
     * Adds a snapshot taken at `time`, in seconds of a clock that only goes forward, unless it comes too close to the one
     * before. `figures` makes a point of the pictures from the interval since the snapshot before; after a restart there is
     * none, and the pictures have a gap.
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

    /** The gateway could not be asked. */
    interrupt(time) {
        this.#points.push({ time, values: null });
        this.#forget(time);
    }

    /** The newest snapshot, if there is one. */
    get latest() {
        return this.#newest?.snapshot ?? null;
    }

    /** What happened in the last `seconds`, as far as it is known; null after the first snapshot of a process. */
    last(seconds) {
        const now = this.#newest;
        const before = this.#entries.find(entry => now.time - entry.time <= seconds + SLACK);
        return before === undefined || before === now ? null : interval(before, now);
    }

    /** The points of the pictures; `values` is null where there is a gap. */
    get points() {
        return this.#points;
    }

    #forget(time) {
        const kept = entry => time - entry.time <= this.#window + SLACK;
        this.#points = this.#points.filter(kept);
        // The newest stays whatever its age: after a silence, what comes next is compared with it.
        this.#entries = this.#entries.filter((entry, index) => kept(entry) || index === this.#entries.length - 1);
    }
}

/** A snapshot does not come on the second. */
const SLACK = 1;

function interval(before, now) {
    return { before: before.snapshot, now: now.snapshot, seconds: now.time - before.time };
}

/** Whether it is the same process. Its start says so; if that is not told, counters that went back do. */
function continues(before, now) {
    if (before.process !== now.process || now.time <= before.time) return false;
    for (const [name, samples] of before.snapshot) {
        if (!name.endsWith("_total") && !name.endsWith("_count")) continue;
        const later = new Map((now.snapshot.get(name) ?? []).map(sample => [sample.key, sample.value]));
        if (samples.some(sample => (later.get(sample.key) ?? 0) < sample.value)) return false;
    }
    return true;
}
