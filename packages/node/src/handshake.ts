import { type EventEmitter, errorMonitor } from 'node:events';
import * as tls from 'node:tls';
import { channels } from './channels.js';
import type { Meter, Outcome } from './metrics.js';
import { providePeerCertificate } from './peer-certificate.js';
import type { Profile } from './profile.js';
import { type SessionEntry, sessionEntry, type TicketReuse } from './session.js';
import type { SessionKey, SessionStore } from './store.js';

/** State shared by handshakes. */
export interface Sessions {
    readonly store: SessionStore;
    readonly ticketReuse: TicketReuse;
    readonly meter: Meter;
    /** Whether sessions are neither offered nor kept (`maxCachedSessions: 0`). */
    readonly isOff: boolean;
}

/** A connection to be opened. */
export interface Target {
    readonly host: string;
    readonly port: number | string;
    /** The name in SNI, or '' for none. */
    readonly servername: string;
    readonly profile: Profile;
    /** Whether to offer no session, because one has just failed. */
    readonly full?: boolean;
    /**
     * Whether the caller offers its own session. It is unknown what that session proves, so no session of the
     * connection is kept.
     */
    readonly isForeign?: boolean;
}

/**
 * Session handling of one handshake: the session offered, the sessions received, and the counters.
 */
export class Handshake {
    readonly origin: string;
    readonly #key: SessionKey | undefined;
    #offered: SessionEntry | undefined;
    #startedAt = 0;
    #isConnected = false;
    /** Time at which the server's certificate was verified and the end of its validity, once known. */
    #verified: { verifiedAt: number; leafExpiresAt: number } | undefined;
    /** Sessions that arrived before the certificate was verified (TLS 1.2). */
    #early: Buffer[] = [];
    #isDone = false;
    #failure: Error | undefined;

    constructor(
        private readonly sessions: Sessions,
        private readonly target: Target,
    ) {
        this.origin = `${target.host}:${target.port}`;
        if (!target.isForeign && !sessions.isOff)
            this.#key = target.profile.sessionKey(target.host, target.port, target.servername);
    }

    /** Whether a session was offered to the server. */
    get hasOffered(): boolean {
        return this.#offered !== undefined;
    }

    /** Whether the handshake has succeeded. */
    get isDone(): boolean {
        return this.#isDone;
    }

    /** Connects with the shared context, and offers a session if there is one: both are set in `options`. */
    connect(options: tls.ConnectionOptions): tls.TLSSocket {
        options.secureContext = this.target.profile.secureContext;
        const session = this.#take(Date.now());
        // A socket of the caller's starts its handshake before tls.connect returns.
        const setLater = options.socket === undefined && HAS_SET_SESSION;
        if (session && !setLater) options.session = session;
        const socket = tls.connect(options);
        // Node 20 decodes a session among the options twice, and the certificate in it makes that the dearest part of a
        // resumption.
        if (session && setLater) (socket as unknown as SessionSetter).setSession(session);
        this.#watch(socket);
        return socket;
    }

    /** Returns whether the offered session may be at fault: no error occurred before it was sent to the server. */
    mayBlameSession(): boolean {
        return this.hasOffered && this.#isConnected && !this.#isDone;
    }

    /** Sets the reason that the connection is about to end, where the socket does not provide it. */
    blame(error: Error): void {
        this.#failure ??= error;
    }

    #take(now: number): Buffer | undefined {
        const { store, ticketReuse } = this.sessions;
        if (this.#key && !this.target.full) this.#offered = store.take(this.#key, ticketReuse, now);
        return this.#offered?.bytes;
    }

    #watch(socket: tls.TLSSocket): void {
        this.#startedAt = performance.now();
        // A socket passed by the caller may be connected already.
        this.#isConnected = !socket.connecting;
        socket.once('connect', () => {
            this.#isConnected = true;
            this.#startedAt = performance.now();
        });
        socket.on('session', (session: Buffer) => this.#keep(socket, session));
        // First in line, so that the counters are correct for later listeners.
        socket.prependOnceListener('secureConnect', () => this.#succeed(socket));
        // A listener for 'error' itself would hide errors that the application does not handle.
        (socket as EventEmitter).once(errorMonitor, (error: Error) => this.blame(error));
        socket.once('close', () => this.#isDone || this.#fail());
    }

    #succeed(socket: tls.TLSSocket): void {
        this.#isDone = true;
        const milliseconds = performance.now() - this.#startedAt;
        const resumed = socket.isSessionReused();
        const outcome = this.#outcome(resumed);
        if (outcome === 'declined') this.#dropOffered();
        if (resumed && this.#offered) providePeerCertificate(socket, this.#offered.bytes);
        this.#rememberVerification(socket, resumed);
        for (const session of this.#early.splice(0)) this.#keep(socket, session);
        this.sessions.meter.handshake(this.origin, outcome, milliseconds);
        if (!channels.handshake.hasSubscribers) return;
        const { origin } = this;
        const { servername } = this.target;
        const cipher = socket.getCipher().name;
        channels.handshake.publish({
            origin,
            servername,
            outcome,
            protocol: socket.getProtocol(),
            cipher,
            milliseconds,
        });
    }

    #fail(): void {
        const error = this.#failure;
        if (error && this.mayBlameSession()) this.#dropOffered();
        else if (!this.#isConnected) this.#giveBack();
        this.sessions.meter.failed(this.origin);
        if (!channels.handshakeError.hasSubscribers) return;
        const { origin, hasOffered } = this;
        const { servername } = this.target;
        channels.handshakeError.publish({ origin, servername, offeredSession: hasOffered, error });
    }

    #dropOffered(): void {
        if (this.#key && this.#offered) this.sessions.store.drop(this.#key, this.#offered);
    }

    /** Returns the session to the store: it was not sent to a server, so it is still fresh. */
    #giveBack(): void {
        if (!this.#key || !this.#offered) return;
        this.#offered.used = false;
        this.sessions.store.put(this.#key, this.#offered, Date.now());
    }

    #outcome(resumed: boolean): Outcome {
        if (resumed) return 'resumed';
        if (this.#offered) return 'declined';
        if (this.target.full) return 'retried';
        return this.#key ? 'ticketMiss' : 'bypassed';
    }

    /** Records the verification. Only authorized connections may be resumed: OpenSSL does not verify a second time. */
    #rememberVerification(socket: tls.TLSSocket, resumed: boolean): void {
        if (!socket.authorized) return;
        if (resumed) {
            this.#verified = this.#offered && {
                verifiedAt: this.#offered.verifiedAt,
                leafExpiresAt: this.#offered.leafExpiresAt,
            };
            return;
        }
        // Not getPeerX509Certificate, which in Node removes the certificate from the connection: its second call, and
        // each later getPeerCertificate, would return none.
        const { valid_to: validTo } = (socket.getPeerCertificate() ?? {}) as Partial<tls.PeerCertificate>;
        const leafExpiresAt = Date.parse(validTo ?? '');
        if (Number.isNaN(leafExpiresAt)) return;
        this.#verified = { verifiedAt: Date.now(), leafExpiresAt };
    }

    #keep(socket: tls.TLSSocket, session: Buffer): void {
        if (!this.#key) return;
        if (!this.#isDone) {
            this.#early.push(session);
            return;
        }
        if (!this.#verified) return;
        const now = Date.now();
        const entry = sessionEntry(session, { ...this.#verified, protocol: socket.getProtocol() }, now);
        if (entry) this.sessions.store.put(this.#key, entry, now);
    }
}

/** Undocumented in Node, and not available in every runtime. */
interface SessionSetter {
    setSession(session: Buffer): void;
}

const HAS_SET_SESSION = 'setSession' in tls.TLSSocket.prototype;
