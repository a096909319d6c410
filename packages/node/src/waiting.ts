import { AsyncResource } from 'node:async_hooks';
import type { ClientRequest } from 'node:http';
import { requestSocket } from './node-agent.js';

/** A request that wants a socket. */
export interface Waiter<Options> {
    readonly request: ClientRequest;
    /** Of the pool: an origin with one set of options. */
    readonly name: string;
    readonly options: Options;
    /** Only a new socket will do: a reused one has just failed. */
    readonly isFresh: boolean;
}

/** Requests in the order of their arrival, over all origins. An aborted one leaves at once. */
export class WaitingRequests<Options> implements Iterable<Waiter<Options>> {
    /** With the asynchronous context of each. */
    readonly #waiters = new Map<Waiter<Options>, AsyncResource>();

    get size(): number {
        return this.#waiters.size;
    }

    [Symbol.iterator](): Iterator<Waiter<Options>> {
        return this.#waiters.keys();
    }

    add(waiter: Waiter<Options>): void {
        this.#waiters.set(waiter, new AsyncResource('QuadrilleWaitingRequest'));
        this.#leaveWhenDestroyed(waiter);
    }

    /** Lets those go on, oldest first, for whom `wayIn` has a way. */
    admit(wayIn: (waiter: Waiter<Options>) => (() => void) | undefined): void {
        for (const [waiter, resource] of this.#waiters) {
            const enter = wayIn(waiter);
            if (!enter) continue;
            this.#remove(waiter);
            resource.runInAsyncScope(enter);
        }
    }

    /** The oldest that waits for a socket of pool `name`, new or not; it gets one in its own asynchronous context. */
    takeFor(name: string): ClientRequest | undefined {
        for (const [waiter, resource] of this.#waiters) {
            if (waiter.name !== name || waiter.isFresh) continue;
            this.#remove(waiter);
            const receiver = requestSocket(waiter.request);
            receiver.onSocket = resource.bind(receiver.onSocket);
            return waiter.request;
        }
        return undefined;
    }

    /** Node itself tells of an abort only when a socket has been found. */
    #leaveWhenDestroyed(waiter: Waiter<Options>): void {
        const { request } = waiter;
        const destroy = request.destroy;
        request.destroy = (error?: Error) => {
            const isWaiting = this.#waiters.has(waiter);
            if (isWaiting) this.#remove(waiter);
            destroy.call(request, error);
            if (isWaiting) requestSocket(request).onSocket(null);
            return request;
        };
    }

    #remove(waiter: Waiter<Options>): void {
        this.#waiters.delete(waiter);
        delete (waiter.request as { destroy?: unknown }).destroy;
    }
}
