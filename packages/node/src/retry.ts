import type { ClientRequest } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { Handshake } from './handshake.js';

/** Reason that a request moves to another socket. */
export type RetryReason = 'stale' | 'full';

/** Called when the request has been detached from its failed socket; assigns another one. */
export type OnRetry = (reason: RetryReason) => void;

/**
 * Retries requests whose socket failed, where no side effect can happen twice: during a handshake (no request was
 * sent), and on a reused socket that ends before the first byte of a response, for methods that may be repeated (RFC
 * 9110, section 9.2.2).
 *
 * Node assigns a socket to a request permanently, so this class stands between the two: it records writes, withholds
 * the events that signal the end, removes Node's listeners from the old socket, and replays the writes on the new
 * one.
 */
export class SocketGuard {
    #watch: Watch | undefined;

    /** Installed once on each socket: replacing methods for each request would cost more than checking for a watch. */
    constructor(
        private readonly socket: TLSSocket,
        readonly handshake: Handshake,
    ) {
        const write = socket.write;
        const emit = socket.emit;
        socket.write = (...args: unknown[]) =>
            Reflect.apply(write, socket, this.#watch?.record(args) ?? args) as boolean;
        socket.emit = (...args: [string | symbol, ...unknown[]]) =>
            this.#holdsBack(args[0], args[1]) || (Reflect.apply(emit, socket, args) as boolean);
    }

    /** Watches `request`, which is about to get this socket; a request that cannot be repeated is ignored. */
    watch(request: ClientRequest, isReused: boolean, onRetry: OnRetry): void {
        this.#release();
        const reason = isReused ? 'stale' : 'full';
        const isRepeatable = isReused ? IDEMPOTENT.has(request.method) : this.handshake.hasOffered;
        if (isRepeatable) this.#watch = new Watch(request, this.socket, reason, onRetry);
    }

    #holdsBack(event: string | symbol, argument: unknown): boolean {
        const watch = this.#watch;
        if (!watch) return false;
        if (event === 'data' || (event === 'secureConnect' && watch.reason === 'full')) this.#release();
        if (event !== 'end' && event !== 'close' && event !== 'error') return false;
        if (!this.#mayRetry(watch, event, argument)) {
            this.#release();
            return false;
        }
        this.#watch = undefined;
        this.handshake.blame(argument instanceof Error ? argument : new Error('the server closed the connection'));
        // Deferred: the pool also handles this event.
        watch.detach();
        process.nextTick(watch.onRetry, watch.reason);
        this.socket.destroy();
        // No listener is left for an error; the pool needs 'close'.
        return event !== 'close';
    }

    #release(): void {
        this.#watch?.release();
        this.#watch = undefined;
    }

    #mayRetry(watch: Watch, event: string, error: unknown): boolean {
        if (watch.request.destroyed || watch.isTooLong || !watch.canDetach()) return false;
        if (watch.reason === 'full') return this.handshake.mayBlameSession();
        return event !== 'error' || CLOSED_BY_PEER.has((error as NodeJS.ErrnoException | undefined)?.code ?? '');
    }
}

/** Everything needed to send `request` again. */
class Watch {
    readonly #written: Written[] = [];
    #bytes = 0;
    #isReleased = false;

    constructor(
        readonly request: ClientRequest,
        readonly socket: TLSSocket,
        readonly reason: RetryReason,
        readonly onRetry: OnRetry,
    ) {}

    get isTooLong(): boolean {
        return this.#bytes > LONGEST_RECORD;
    }

    /** Records the arguments of one `socket.write`, and returns those to be used. */
    record(args: unknown[]): unknown[] {
        if (this.isTooLong) return args;
        const [chunk] = args;
        const encoding = typeof args[1] === 'string' ? (args[1] as BufferEncoding) : undefined;
        const last = args[args.length - 1];
        const callback = typeof last === 'function' ? (last as Callback) : undefined;
        // Bytes belong to the caller, which may reuse the buffer by then.
        const copy = typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array);
        this.#bytes += copy.length;
        const written: Written = { chunk: copy, encoding, callback };
        this.#written.push(written);
        return [chunk, encoding, (error?: Error | null) => this.#settle(written, error)];
    }

    /**
     * Returns whether Node's HTTP client has attached the expected listeners; otherwise it is safer to pass the event
     * on.
     */
    canDetach(): boolean {
        const names = new Set(
            ['end', 'close', 'error', 'data'].flatMap((event) => this.socket.listeners(event).map(({ name }) => name)),
        );
        return ['socketOnEnd', 'socketCloseListener', 'socketErrorListener', 'socketOnData'].every((name) =>
            names.has(name),
        );
    }

    /** Detaches the request from the failed socket, as if it had never had one. */
    detach(): void {
        const { request, socket } = this;
        for (const [event, names] of CLIENT_LISTENERS) {
            for (const listener of socket.listeners(event)) {
                if (names.has(listener.name)) socket.removeListener(event, listener as Listener);
            }
        }
        socket.on('error', () => {});
        const internals = request as unknown as RequestInternals;
        const timeout = socket.timeout ?? 0;
        (socket as unknown as SocketInternals)._httpMessage = null;
        (socket as unknown as SocketInternals).parser = null;
        internals.parser = null;
        request.reusedSocket = false;
        // Runs before Node flushes what was written in between.
        request.prependOnceListener('socket', (next: TLSSocket) => {
            if (timeout > 0) next.setTimeout(timeout);
            if (internals.timeoutCb && !next.listeners('timeout').includes(internals.timeoutCb))
                next.once('timeout', internals.timeoutCb);
            for (const { chunk, encoding, callback } of this.#written) next.write(chunk, encoding, callback);
        });
    }

    /** Binds the request to its socket: no further retries. */
    release(): void {
        this.#isReleased = true;
        for (const written of this.#written.splice(0)) if (written.error) this.#settle(written, written.error);
    }

    /** Reports a write's result; a failed write is not reported while the request may still be sent again. */
    #settle(written: Written, error: Error | null | undefined): void {
        if (error && !this.#isReleased) {
            written.error = error;
            return;
        }
        const { callback } = written;
        written.callback = undefined;
        callback?.(error);
    }
}

type Listener = (...args: unknown[]) => void;
type Callback = (error?: Error | null) => void;

interface Written {
    readonly chunk: string | Buffer;
    readonly encoding: BufferEncoding | undefined;
    /** Undefined once called. */
    callback: Callback | undefined;
    error?: Error;
}

/** Internal fields of Node's HTTP client, equal in Node 20, 22 and 24. */
interface RequestInternals {
    parser: unknown;
    timeoutCb?: Listener;
}

interface SocketInternals {
    _httpMessage: unknown;
    parser: unknown;
}

/**
 * The functions with which Node's HTTP client (lib/_http_client.js) listens to a socket, equal in Node 20, 22 and 24.
 */
const CLIENT_LISTENERS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
    ['close', new Set(['socketCloseListener'])],
    ['data', new Set(['socketOnData'])],
    ['drain', new Set(['ondrain'])],
    ['end', new Set(['socketOnEnd'])],
    ['error', new Set(['socketErrorListener'])],
    ['timeout', new Set(['emitRequestTimeout'])],
]);
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);
const CLOSED_BY_PEER: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);
const LONGEST_RECORD = 65_536;
