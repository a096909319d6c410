/** Somebody who wants to open a socket. */
interface Applicant {
    readonly origin: string;
    readonly open: () => void;
}

/** What keeps sockets within bounds: for each origin, and in all. Time and sockets are somebody else's. */
export class SocketBudget {
    readonly #byOrigin = new Map<string, number>();
    #total = 0;
    #waiting: Applicant[] = [];

    /** @param makeRoom called when an origin could have a socket but for the bound on all: closes an idle one, if it can */
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

    /** Calls `open` when a socket may be opened, now or later, oldest first; whoever opens it calls `release` at its end. */
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
