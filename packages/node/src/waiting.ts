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
            this.#waiters.delete(waiter);
            resource.runInAsyncScope(enter);
        }
    }

    /** The oldest that waits for a socket of pool `name`, new or not; it gets one in its own asynchronous context. */
    takeFor(name: string): ClientRequest | undefined {
        for (const [waiter, resource] of this.#waiters) {
            if (waiter.name !== name || waiter.isFresh) continue;
            this.#waiters.delete(waiter);
            const receiver = requestSocket(waiter.request);
            const { onSocket } = receiver;
            receiver.onSocket = (...args) => resource.runInAsyncScope(onSocket, receiver, ...args);
            return waiter.request;
        }
        return undefined;
    }

    /** Node itself tells of an abort only when a socket has been found. */
    #leaveWhenDestroyed(waiter: Waiter<Options>): void {
        const { request } = waiter;
        const destroy = request.destroy;
        // It stays: to delete a property would make every later use of the request slow.
        request.destroy = (error?: Error) => {
            const wasWaiting = this.#waiters.delete(waiter);
            destroy.call(request, error);
            if (wasWaiting) requestSocket(request).onSocket(null);
            return request;
        };
    }
}
