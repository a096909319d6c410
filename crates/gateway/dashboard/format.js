// Numbers and times as people read them.

/** `1,234`, `12.3`, `0.4`; a dash where there is no number. */
export function number(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : 1;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A share as a percentage. */
export function percent(share) {
    if (share === null || share === undefined) return "–";
    return `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
}

/** Seconds with a fitting unit: `85 µs`, `1.2 ms`, `3 s`. */
export function duration(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
    if (seconds < 1e-3) return `${number(Math.round(seconds * 1e6))} µs`;
    if (seconds < 1) return `${number(round(seconds * 1e3))} ms`;
    return `${number(round(seconds))} s`;
}

/** Seconds of CPU: `0.4 s`, `3 min 20 s`. */
export function cpuTime(seconds) {
    return seconds < 60 ? duration(seconds) : age(seconds);
}

/** Microseconds. */
export function microseconds(value) {
    return value === null || value === undefined ? "–" : `${number(value >= 10 ? Math.round(value) : round(value))} µs`;
}

/** A long time in its two largest units: `3 d 4 h`, `12 min 5 s`. */
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

/** `2026-12-31`, in UTC, of Unix time. */
export function day(unixSeconds) {
    const date = new Date(unixSeconds * 1000);
    return Number.isNaN(date.getTime()) ? "–" : date.toISOString().slice(0, 10);
}

function round(value) {
    return Math.round(value * 10) / 10;
}
