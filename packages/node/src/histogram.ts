/** Durations in buckets that grow by an eighth: percentiles within 7 %, in constant memory. */
export class Histogram {
    readonly #buckets = new Uint32Array(BUCKETS);
    count = 0;
    /** Sum in milliseconds. */
    sum = 0;
    max = 0;

    record(milliseconds: number): void {
        this.count++;
        this.sum += milliseconds;
        this.max = Math.max(this.max, milliseconds);
        const bucket = bucketOf(milliseconds);
        this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    }

    /** Returns the value that `share` (0 to 1) of the records do not exceed; 0 without records. */
    percentile(share: number): number {
        let left = Math.ceil(this.count * share);
        for (let bucket = 0; bucket < BUCKETS; bucket++) {
            left -= this.#buckets[bucket] ?? 0;
            if (left <= 0) return this.count === 0 ? 0 : Math.min(middleOf(bucket), this.max);
        }
        return this.max;
    }

    summary(): DurationSummary {
        return {
            count: this.count,
            mean: this.count === 0 ? 0 : this.sum / this.count,
            p50: this.percentile(0.5),
            p90: this.percentile(0.9),
            p99: this.percentile(0.99),
            max: this.max,
        };
    }
}

/** Summary in milliseconds. */
export interface DurationSummary {
    readonly count: number;
    readonly mean: number;
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
}

/** Buckets range from a hundredth of a millisecond to more than four minutes. */
const SMALLEST = 0.01;
const GROWTH = Math.log(1.125);
const BUCKETS = 146;

function bucketOf(milliseconds: number): number {
    const bucket = Math.floor(Math.log(Math.max(milliseconds, SMALLEST) / SMALLEST) / GROWTH);
    return Math.min(bucket, BUCKETS - 1);
}

function middleOf(bucket: number): number {
    return SMALLEST * Math.exp((bucket + 0.5) * GROWTH);
}
