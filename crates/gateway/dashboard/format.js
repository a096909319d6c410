// Formatting of numbers and times.

/** Formats a number: `1,234`, `12.3`, `0.4`; a dash without a value. */
export function number(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : 1;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Formats a share as a percentage. */
export function percent(share) {
    if (share === null || share === undefined) return "–";
    return `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
}

/** Formats seconds with a suitable unit: `85 µs`, `1.2 ms`, `3 s`. */
export function duration(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
    if (seconds < 1e-3) return `${number(Math.round(seconds * 1e6))} µs`;
    if (seconds < 1) return `${number(round(seconds * 1e3))} ms`;
    return `${number(round(seconds))} s`;
}

/** Formats CPU time in seconds: `0.4 s`, `3 min 20 s`. */
export function cpuTime(seconds) {
    return seconds < 60 ? duration(seconds) : age(seconds);
}

/** Formats microseconds. */
export function microseconds(value) {
    return value === null || value === undefined ? "–" : `${number(value >= 10 ? Math.round(value) : round(value))} µs`;
}

/** Formats seconds in the two largest units: `3 d 4 h`, `12 min 5 s`. */
export function age(seconds) {
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    let left = Math.max(0, Math.floor(seconds));
    const parts = units.map(([unit, size]) => {
        const count = Math.floor(left / size);
        left -= count * size;
        return [count, unit];
    });
    const first = parts.findIndex(([count]) => count > 0);
    if (first < 0) return "0 s";
    return parts.slice(first, first + 2).filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** Formats the date of a Unix time in UTC: `2026-12-31`. */
export function day(unixSeconds) {
    const date = new Date(unixSeconds * 1000);
    return Number.isNaN(date.getTime()) ? "–" : date.toISOString().slice(0, 10);
}

function round(value) {
    return Math.round(value * 10) / 10;
}
