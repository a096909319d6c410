/**
 * Tells when idle sockets have waited for long enough, by one timer for all: a timer for each socket would be set and
 * cleared with every request. Times are those of `performance.now()`, in milliseconds.
 */
export class IdleClock {
    #timer: NodeJS.Timeout | undefined;
    /** When the timer runs out. */
    #end = Infinity;

    /** @param expire closes the sockets whose time is over at `now`, and tells when the next one's is */
    constructor(private readonly expire: (now: number) => number) {}

    /** Some socket must be closed at `end`. */
    expectAt(end: number, now: number): void {
        if (end >= this.#end) return;
        this.stop();
        this.#end = end;
        this.#timer = setTimeout(() => this.#ring(), Math.min(Math.ceil(end - now), LONGEST_TIMER));
        this.#timer.unref();
    }

    /** Whether the timer is late, because the event loop was busy. */
    isLate(now: number): boolean {
        return now >= this.#end;
    }

    /** What the timer does at its end. */
    check(now: number): void {
        this.stop();
        this.expectAt(this.expire(now), now);
    }

    stop(): void {
        clearTimeout(this.#timer);
        this.#end = Infinity;
    }

    #ring(): void {
        this.check(performance.now());
    }
}

const LONGEST_TIMER = 0x7fffffff;
