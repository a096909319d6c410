// Parser of Prometheus's text format.

/**
 * @typedef {{labels: Object<string, string>, key: string, value: number}} Sample
 * @typedef {Map<string, Sample[]>} Snapshot  by the series' name
 */

/** Parses an exposition. Invalid lines are ignored. */
export function parse(text) {
    const snapshot = new Map();
    for (const line of text.split("\n")) {
        const sample = line.startsWith("#") ? null : readLine(line);
        if (sample === null) continue;
        const family = snapshot.get(sample.name);
        if (family) family.push(sample);
        else snapshot.set(sample.name, [sample]);
    }
    return snapshot;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?/y;
const ESCAPED = { n: "\n", '"': '"', "\\": "\\" };

function readLine(line) {
    const match = LINE.exec(line);
    if (match === null) return null;
    const [, name, written = "", number] = match;
    const labels = readLabels(written);
    const value = readNumber(number);
    if (labels === null || value === null) return null;
    return { name, labels, key: `${name}{${written}}`, value };
}

function readLabels(written) {
    const labels = Object.create(null);
    LABEL.lastIndex = 0;
    let end = 0;
    while (end < written.length) {
        const match = LABEL.exec(written);
        if (match === null) return null;
        labels[match[1]] = match[2].replace(/\\(.)/g, (all, escaped) => ESCAPED[escaped] ?? all);
        end = LABEL.lastIndex;
    }
    return labels;
}

function readNumber(text) {
    if (text === "+Inf" || text === "Inf") return Infinity;
    if (text === "-Inf") return -Infinity;
    const value = Number(text);
    return Number.isNaN(value) ? null : value;
}
