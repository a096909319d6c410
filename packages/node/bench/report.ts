export function median(values: number[]): number {
    const sorted = [...values].sort((one, other) => one - other);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? (sorted[middle] ?? NaN) : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}

/** Ratio of two series measured in the same rounds: the median, with the least and the greatest. */
export class Ratio {
    readonly #ratios: number[];

    constructor(series: number[], base: number[]) {
        this.#ratios = series.map((value, round) => value / (base[round] ?? NaN));
    }

    get median(): number {
        return median(this.#ratios);
    }

    toString(): string {
        const show = (value: number) => value.toFixed(2);
        return `${show(this.median)} (${show(Math.min(...this.#ratios))}-${show(Math.max(...this.#ratios))})`;
    }
}

/** Formats rows below their headings, numbers right-aligned. */
export function table(headings: string[], rows: (string | number)[][]): string {
    const cells = [
        headings,
        ...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? cell.toFixed(0) : cell))),
    ];
    const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
    const line = (row: string[]) =>
        row
            .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
            .join('  ');
    return cells.map((row) => `  ${line(row)}`).join('\n');
}

/** A target figure and its measurement. */
export class Target {
    constructor(
        readonly what: string,
        readonly measured: number,
        readonly bound: number,
        readonly sense: 'at most' | 'at least',
    ) {}

    get isMet(): boolean {
        return this.sense === 'at most' ? this.measured <= this.bound : this.measured >= this.bound;
    }

    toString(): string {
        return `${this.isMet ? 'met   ' : 'MISSED'}  ${this.what}: ${this.measured.toFixed(2)} (${this.sense} ${this.bound})`;
    }
}
