import { QuadrilleError } from './errors.js';

/** Milliseconds, or a number with a unit: `'500ms'`, `'30s'`, `'5m'`, `'24h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/** Converts `duration` to milliseconds; `name` is the option named by an error. */
export function milliseconds(name: string, duration: Duration | undefined, fallback: number): number {
    if (duration === undefined) return fallback;
    if (typeof duration === 'number' && duration >= 0) return duration;
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(duration));
    if (match) return Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
    throw new QuadrilleError(
        'ERR_QUADRILLE_OPTION',
        `${name} is '${String(duration)}': give milliseconds as a number, or a string such as '30s', '5m', '24h' or '7d'`,
    );
}

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
