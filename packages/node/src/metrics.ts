import { type DurationSummary, Histogram } from './histogram.js';
import { LruMap } from './lru.js';

/** Outcome of a successful handshake. */
export type Outcome =
    /** An abbreviated handshake. */
    | 'resumed'
    /** Full: there was no session to offer. */
    | 'ticketMiss'
    /** Full: the server declined the offered session. */
    | 'declined'
    /** Full: the options of the connection forbid resumption. */
    | 'bypassed'
    /** Full: the retry after a failed handshake with a session. */
    | 'retried';

/** Counters since the start. */
export interface Counts {
    /** Full handshakes, for any reason. */
    readonly full: number;
    readonly resumed: number;
    readonly ticketMiss: number;
    readonly declined: number;
    readonly bypassed: number;
    /** Connections that ended before their handshake was complete. */
    readonly failed: number;
    /** Requests that found an open socket. */
    readonly reusedSockets: number;
    /** Requests sent again because the peer had closed the assigned socket. */
    readonly staleRetries: number;
    /** Handshakes repeated in full because the one with a session failed. */
    readonly fullRetries: number;
    /** Time from the TCP connection to the end of the handshake. */
    readonly handshakeMs: DurationSummary;
}

export interface Metrics extends Counts {
    /** Counters by `host:port`; only the 1000 most recently used. */
    readonly origins: Readonly<Record<string, Counts>>;
}

/** Counts events, in total and by origin. */
export class Meter {
    readonly #all = new Tally();
    readonly #origins = new LruMap<string, Tally>(1000);

    handshake(origin: string, outcome: Outcome, milliseconds: number): void {
        for (const tally of this.#tallies(origin)) {
            tally[outcome]++;
            tally.handshakes.record(milliseconds);
        }
    }

    failed(origin: string): void {
        for (const tally of this.#tallies(origin)) tally.failed++;
    }

    reused(origin: string): void {
        this.#of(origin).reusedSockets++;
        this.#all.reusedSockets++;
    }

    retried(origin: string, reason: 'staleRetries' | 'fullRetries'): void {
        for (const tally of this.#tallies(origin)) tally[reason]++;
    }

    snapshot(): Metrics {
        const origins = [...this.#origins.entries()].map(([origin, tally]) => [origin, tally.counts()] as const);
        return { ...this.#all.counts(), origins: Object.fromEntries(origins) };
    }

    #tallies(origin: string): Tally[] {
        return [this.#of(origin), this.#all];
    }

    #of(origin: string): Tally {
        let tally = this.#origins.get(origin);
        if (!tally) {
            tally = new Tally();
            this.#origins.set(origin, tally);
        }
        return tally;
    }
}

class Tally {
    resumed = 0;
    ticketMiss = 0;
    declined = 0;
    bypassed = 0;
    retried = 0;
    failed = 0;
    reusedSockets = 0;
    staleRetries = 0;
    fullRetries = 0;
    readonly handshakes = new Histogram();

    counts(): Counts {
        const { resumed, ticketMiss, declined, bypassed, failed, reusedSockets, staleRetries, fullRetries } = this;
        return {
            full: ticketMiss + declined + bypassed + this.retried,
            resumed,
            ticketMiss,
            declined,
            bypassed,
            failed,
            reusedSockets,
            staleRetries,
            fullRetries,
            handshakeMs: this.handshakes.summary(),
        };
    }
}
