/** A pending request for a socket. */
interface Applicant {
    readonly origin: string;
    readonly open: () => void;
}

/** Keeps the number of sockets within bounds: per origin, and in all. Time and sockets are managed by the caller. */
export class SocketBudget {
    readonly #byOrigin = new Map<string, number>();
    #total = 0;
    #waiting: Applicant[] = [];

    /**
     * @param makeRoom called when only the total bound keeps an origin from a socket: closes an idle one, if possible
     */
    constructor(
        private readonly perOrigin: number,
        private readonly inAll: number,
        private readonly makeRoom: () => void,
    ) {}

    get open(): number {
        return this.#total;
    }

    get waiting(): number {
        return this.#waiting.length;
    }

    /**
     * Calls `open` when a socket may be opened, now or later, oldest first; the caller must call `release` when it
     * closes.
     */
    apply(origin: string, open: () => void): void {
        this.#waiting.push({ origin, open });
        this.#admit();
    }

    release(origin: string): void {
        const left = (this.#byOrigin.get(origin) ?? 1) - 1;
        if (left > 0) this.#byOrigin.set(origin, left);
        else this.#byOrigin.delete(origin);
        this.#total--;
        this.#admit();
    }

    #admit(): void {
        const left: Applicant[] = [];
        const admitted: Applicant[] = [];
        for (const applicant of this.#waiting) {
            const held = this.#byOrigin.get(applicant.origin) ?? 0;
            if (held >= this.perOrigin || this.#total >= this.inAll) {
                left.push(applicant);
                continue;
            }
            this.#byOrigin.set(applicant.origin, held + 1);
            this.#total++;
            admitted.push(applicant);
        }
        this.#waiting = left;
        for (const { open } of admitted) open();
        if (this.#total >= this.inAll && left.some(({ origin }) => (this.#byOrigin.get(origin) ?? 0) < this.perOrigin))
            this.makeRoom();
    }
}
