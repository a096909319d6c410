import { createHash } from 'node:crypto';
import * as tls from 'node:tls';
import { digestOf, identityOf, isOpaque, secretDigestOf, tokenOf } from './fingerprint.js';
import { LruMap } from './lru.js';
import type { PolicyOptions } from './policy.js';
import type { SessionKey } from './store.js';
import { defaultTrust, trustedByDefault } from './trust.js';

/** Options that a caller may add to Node's TLS options. */
export interface IdentityOptions {
    /**
     * Names the checks of a custom `checkServerIdentity`. Node does not call that function when a session is resumed,
     * so connections with one never resume, unless this tag states that equal tags mean equal checks.
     */
    identityTag?: string;
}

export type TlsOptions = tls.ConnectionOptions & IdentityOptions;

/** One effective set of TLS options, with the SecureContext that all its connections share. */
export class Profile {
    #context: tls.SecureContext | undefined;
    readonly #keys = new LruMap<string, SessionKey>(1000);
    /** The key returned last: most lookups repeat. */
    #last: { host: string; port: string | number; servername: string; key: SessionKey } | undefined;

    /**
     * @param id identifies it in this process
     * @param verification everything that a session's validity depends on, as text without secrets; undefined if
     * sessions must not be used
     * @param persistable whether `verification` is valid in another process
     */
    constructor(
        readonly id: number,
        private readonly verification: string | undefined,
        private readonly persistable: boolean,
        private contextOptions: tls.SecureContextOptions,
        given: tls.SecureContext | undefined,
    ) {
        this.#context = given;
    }

    /** Created at first use, because readers of metrics and reused sockets do not need it. */
    get secureContext(): tls.SecureContext {
        if (!this.#context) {
            this.#context = tls.createSecureContext(this.contextOptions);
            // The private key is in the context now.
            this.contextOptions = {};
        }
        return this.#context;
    }

    /** Returns the key for sessions with a server; undefined if the options forbid sessions. */
    sessionKey(host: string, port: string | number, servername: string): SessionKey | undefined {
        if (this.verification === undefined) return undefined;
        const last = this.#last;
        if (last?.host === host && last.port === port && last.servername === servername) return last.key;
        const name = JSON.stringify([host, String(port), servername]);
        let key = this.#keys.get(name);
        if (!key) {
            const id = createHash('sha256')
                .update(JSON.stringify([name, this.verification]))
                .digest('hex');
            key = { id, persistable: this.persistable };
            this.#keys.set(name, key);
        }
        this.#last = { host, port, servername, key };
        return key;
    }
}

/** Finds the profile for options, so that equal options share one SecureContext. */
export class Profiles {
    readonly #profiles: LruMap<string, Profile>;
    #last = 0;
    #usual: UsualProfile | undefined;

    constructor(
        private readonly policy: PolicyOptions,
        limit: number,
    ) {
        this.#profiles = new LruMap(limit);
    }

    /**
     * @param own the options of one connection
     * @param common those of the agent, if they are not among `own`: they take precedence, and are the same each
     * time, so that the last profile applies unless `own` has a relevant option
     */
    of(own: TlsOptions, common?: TlsOptions): Profile {
        if (!common || hasRelevant(own)) return this.#find({ ...own, ...common });
        if (!this.#usual?.isCurrent()) this.#usual = new UsualProfile(this.#find({ ...own, ...common }));
        return this.#usual.profile;
    }

    #find(options: TlsOptions): Profile {
        const effective = this.#effective(options);
        // Digests stand for long values, private keys among them.
        const name = JSON.stringify(Object.entries(effective).map(([option, value]) => [option, token(option, value)]));
        let profile = this.#profiles.get(name);
        if (!profile) {
            profile = this.#create(effective);
            this.#profiles.set(name, profile);
        }
        return profile;
    }

    #effective(options: TlsOptions): Record<string, unknown> {
        const effective: Record<string, unknown> = {
            rejectUnauthorized: rejectsUnauthorized(options),
            trust: trustOf(options),
        };
        for (const option of RELEVANT_OPTIONS) {
            const value =
                (options as Record<string, unknown>)[option] ?? (this.policy as Record<string, unknown>)[option];
            if (value !== undefined && value !== null) effective[option] = value;
        }
        if (effective.secureProtocol !== undefined) {
            // Node rejects version options in addition to it.
            if (options.minVersion === undefined) delete effective.minVersion;
            if (options.maxVersion === undefined) delete effective.maxVersion;
        }
        if (effective.checkServerIdentity === stockCheckServerIdentity) delete effective.checkServerIdentity;
        // Replaced by the application for the whole process.
        else if (effective.checkServerIdentity === undefined && tls.checkServerIdentity !== stockCheckServerIdentity)
            effective.checkServerIdentity = tls.checkServerIdentity;
        effective.ciphers ??= tls.DEFAULT_CIPHERS;
        effective.ecdhCurve ??= tls.DEFAULT_ECDH_CURVE;
        if (effective.secureProtocol === undefined) {
            effective.minVersion ??= tls.DEFAULT_MIN_VERSION;
            effective.maxVersion ??= tls.DEFAULT_MAX_VERSION;
        }
        return effective;
    }

    #create(effective: Record<string, unknown>): Profile {
        const contextOptions = Object.fromEntries(
            Object.entries(effective).filter(([option]) => CONTEXT_OPTIONS.includes(option)),
        ) as tls.SecureContextOptions;
        const given = effective.secureContext as tls.SecureContext | undefined;
        const verified = Object.entries(effective).filter(([option]) => !OUTSIDE_VERIFICATION.includes(option));
        const verification = mayResume(effective)
            ? JSON.stringify([
                  process.versions.node,
                  process.versions.openssl,
                  verified.map(([option, value]) => [option, token(option, value)]),
              ])
            : undefined;
        const persistable = !verified.some(([, value]) => isOpaque(value));
        return new Profile(++this.#last, verification, persistable, contextOptions, given);
    }
}

/** A profile with the process-wide settings that it depends on: valid until these change. */
class UsualProfile {
    readonly #rejectUnauthorized = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    readonly #ciphers = tls.DEFAULT_CIPHERS;
    readonly #curves = tls.DEFAULT_ECDH_CURVE;
    readonly #minVersion = tls.DEFAULT_MIN_VERSION;
    readonly #maxVersion = tls.DEFAULT_MAX_VERSION;
    readonly #checkServerIdentity = tls.checkServerIdentity;
    readonly #trust = trustedByDefault();

    constructor(readonly profile: Profile) {}

    isCurrent(): boolean {
        return (
            this.#rejectUnauthorized === process.env.NODE_TLS_REJECT_UNAUTHORIZED &&
            this.#ciphers === tls.DEFAULT_CIPHERS &&
            this.#curves === tls.DEFAULT_ECDH_CURVE &&
            this.#minVersion === tls.DEFAULT_MIN_VERSION &&
            this.#maxVersion === tls.DEFAULT_MAX_VERSION &&
            this.#checkServerIdentity === tls.checkServerIdentity &&
            this.#trust === trustedByDefault()
        );
    }
}

function hasRelevant(options: object): boolean {
    // Not by for-in, which costs twice as much.
    for (const option of Object.keys(options)) if (RELEVANT.has(option)) return true;
    return false;
}

function token(option: string, value: unknown): string {
    return SECRET_OPTIONS.includes(option) ? secretDigestOf(value) : tokenOf(value);
}

/** Determined as in Node: an explicit undefined is strict. */
export function rejectsUnauthorized(options: tls.ConnectionOptions): boolean {
    if ('rejectUnauthorized' in options) return options.rejectUnauthorized !== false;
    return process.env.NODE_TLS_REJECT_UNAUTHORIZED !== '0';
}

/**
 * Returns whether sessions may be resumed. A resumed connection skips all of these checks, so callers that need them
 * get full handshakes.
 */
function mayResume(effective: Record<string, unknown>): boolean {
    if (effective.checkServerIdentity !== undefined && effective.identityTag === undefined) return false;
    return effective.requestOCSP !== true && effective.pskCallback === undefined;
}

function trustOf(options: TlsOptions): string {
    if (options.secureContext) return `context ${identityOf(options.secureContext)}`;
    return options.ca ? digestOf(options.ca) : defaultTrust();
}

/** Saved before an application can replace it. */
const stockCheckServerIdentity = tls.checkServerIdentity;

/** Options of `tls.createSecureContext`, as of Node 24. */
const CONTEXT_OPTIONS: readonly string[] = [
    'allowPartialTrustChain',
    'ca',
    'cert',
    'certificateCompression',
    'ciphers',
    'clientCertEngine',
    'crl',
    'dhparam',
    'ecdhCurve',
    'honorCipherOrder',
    'key',
    'maxVersion',
    'minVersion',
    'passphrase',
    'pfx',
    'privateKeyEngine',
    'privateKeyIdentifier',
    'secureOptions',
    'secureProtocol',
    'sessionIdContext',
    'sessionTimeout',
    'sigalgs',
    'ticketKeys',
];

/**
 * And those of `tls.connect`. `rejectUnauthorized` and the trusted authorities are always included, with their
 * effective values.
 */
const RELEVANT_OPTIONS: readonly string[] = [
    ...CONTEXT_OPTIONS,
    'ALPNProtocols',
    'checkServerIdentity',
    'identityTag',
    'minDHSize',
    'pskCallback',
    'requestOCSP',
    'secureContext',
];

const RELEVANT: ReadonlySet<string> = new Set([...RELEVANT_OPTIONS, 'rejectUnauthorized']);

/** Options whose values are never stored. */
const SECRET_OPTIONS: readonly string[] = ['key', 'passphrase', 'pfx', 'ticketKeys'];

/**
 * Options that distinguish contexts, but not sessions: a session depends on the certificate, and on the tag of an
 * identity check.
 */
const OUTSIDE_VERIFICATION: readonly string[] = ['checkServerIdentity', 'key', 'passphrase', 'ticketKeys'];
