import { channel } from 'node:diagnostics_channel';
import type { Outcome } from './metrics.js';

/** `quadrille:handshake`: a handshake succeeded. Messages carry no key material. */
export interface HandshakeMessage {
    /** `host:port`. */
    readonly origin: string;
    readonly servername: string;
    readonly outcome: Outcome;
    readonly protocol: string | null;
    readonly cipher: string;
    /** Time from the TCP connection to the end of the handshake. */
    readonly milliseconds: number;
}

/** `quadrille:handshake:error`: a connection ended before its handshake was complete. */
export interface HandshakeErrorMessage {
    readonly origin: string;
    readonly servername: string;
    readonly offeredSession: boolean;
    readonly error: Error | undefined;
}

/** `quadrille:retry`: a request is sent again, or a handshake is repeated. */
export interface RetryMessage {
    readonly origin: string;
    /** `stale`: the peer had closed a reused socket; `full`: a handshake with a session failed. */
    readonly reason: 'stale' | 'full';
}

/** `quadrille:store:error`: sessions could not be read or written; they stay in memory. */
export interface StoreErrorMessage {
    readonly dir: string;
    readonly error: Error;
}

/** Names of the `diagnostics_channel`s; a message is built only if there is a subscriber. */
export const channels = {
    handshake: channel('quadrille:handshake'),
    handshakeError: channel('quadrille:handshake:error'),
    retry: channel('quadrille:retry'),
    storeError: channel('quadrille:store:error'),
} as const;
