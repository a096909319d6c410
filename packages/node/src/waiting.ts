import { AsyncResource } from 'node:async_hooks';
import type { ClientRequest } from 'node:http';
import { type Options, requestSocket } from './node-agent.js';
import type { Place } from './places.js';

/** A request that waits for a socket. */
export interface Waiter {
    readonly request: ClientRequest;
    readonly place: Place;
    /** Options of the request, without the agent's. */
    readonly options: Options;
    /** Whether only a new socket is acceptable: a reused one has just failed. */
    readonly isFresh: boolean;
}

/** Requests in the order of their arrival, over all origins. An aborted request leaves at once. */
export class WaitingRequests {
    readonly #queue: Queued[] = [];

    get size(): number {
        return this.#queue.length;
    }

    add(waiter: Waiter): void {
        const queued = new Queued(waiter, this.#queue);
        this.#queue.push(queued);
        const { request } = waiter;
        // No closure: closures would keep requests alive until a full garbage collection.
        (request as WaitingRequest)[QUEUED] = queued;
        // Node itself reports an abort only when a socket has been found. The property stays: deleting it would make
        // every later use of the request slow.
        request.destroy = leaveAndDestroy;
    }

    find(condition: (waiter: Waiter) => boolean): Waiter | undefined {
        return this.#queue.find(({ waiter }) => condition(waiter))?.waiter;
    }

    /** Admits waiting requests, oldest first, for which `wayIn` returns a way. */
    admit(wayIn: (waiter: Waiter) => (() => void) | undefined): void {
        // A copy, because proceeding may run arbitrary code.
        for (const queued of this.#queue.slice()) {
            const enter = queued.isWaiting ? wayIn(queued.waiter) : undefined;
            if (enter && queued.leave()) queued.context.runInAsyncScope(enter);
        }
    }

    /**
     * Calls `enter` for the oldest request that waits for a socket of pool `name`, new or not, in its own
     * asynchronous context.
     */
    admitTo(name: string, enter: (waiter: Waiter) => void): boolean {
        const queued = this.#queue.find(({ waiter }) => waiter.place.name === name && !waiter.isFresh);
        if (!queued?.leave()) return false;
        queued.context.runInAsyncScope(enter, undefined, queued.waiter);
        return true;
    }
}

class Queued {
    readonly context = new AsyncResource('QuadrilleWaitingRequest');
    isWaiting = true;

    constructor(
        readonly waiter: Waiter,
        private readonly queue: Queued[],
    ) {}

    /** Removes the request. Returns whether it was still waiting. */
    leave(): boolean {
        if (!this.isWaiting) return false;
        this.isWaiting = false;
        this.queue.splice(this.queue.indexOf(this), 1);
        return true;
    }
}

const QUEUED = Symbol('queued');

interface WaitingRequest extends ClientRequest {
    [QUEUED]: Queued;
}

/** Replacement of `destroy` for a request that waits or has waited. */
function leaveAndDestroy(this: ClientRequest, error?: Error): ClientRequest {
    const wasWaiting = (this as WaitingRequest)[QUEUED].leave();
    const { destroy } = Object.getPrototypeOf(this) as ClientRequest;
    destroy.call(this, error);
    if (wasWaiting) requestSocket(this).onSocket(null);
    return this;
}
