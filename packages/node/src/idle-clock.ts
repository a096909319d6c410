/**
 * Signals when idle sockets expire, with one timer for all: a timer per socket would be set and cleared with every
 * request. Times are those of `performance.now()`, in milliseconds.
 */
export class IdleClock {
    #timer: NodeJS.Timeout | undefined;
    /** Expiry time of the timer. */
    #end = Infinity;

    /**
     * @param expire closes the sockets that have expired at `now`, and returns the time at which the next one expires
     */
    constructor(private readonly expire: (now: number) => number) {}

    /** Ensures a call of `expire` at `end`, when a socket must be closed. */
    expectAt(end: number, now: number): void {
        if (end >= this.#end) return;
        this.stop();
        this.#end = end;
        this.#timer = setTimeout(() => this.#ring(), Math.min(Math.ceil(end - now), LONGEST_TIMER));
        this.#timer.unref();
    }

    /** Returns whether the timer is late, because the event loop was busy. */
    isLate(now: number): boolean {
        return now >= this.#end;
    }

    /** Runs the timer's action if it is due. */
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
