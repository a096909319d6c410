// History of the hour before the page was opened.

import { parse } from "./exposition.js";

/**
 * Returns the snapshots in `/history`, the oldest first, each with its age in seconds. For each series, `/history` contains
 * the changes: the index of the first snapshot with a value, and the value or null.
 * @returns {{age: number, snapshot: Snapshot}[]}
 */
export function snapshots({ ages, series }) {
    const frames = ages.map(age => ({ age, snapshot: new Map() }));
    for (const [written, changes] of Object.entries(series)) {
        const [[name, [sample]]] = parse(`${written} 0`);
        changes.forEach(([first, value], index) => {
            if (value === null) return;
            const end = changes[index + 1]?.[0] ?? frames.length;
            const held = { ...sample, value };
            for (const { snapshot } of frames.slice(first, end)) {
                const family = snapshot.get(name);
                if (family) family.push(held);
                else snapshot.set(name, [held]);
            }
        });
    }
    return frames;
}

/** Reduces a snapshot to these families, which are kept for an hour. */
export function reduced(snapshot, families) {
    return new Map([...snapshot].filter(([name]) => families.has(name) || families.has(name.replace(/_(bucket|sum|count)$/, ""))));
}
