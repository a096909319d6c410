import type { ClientRequest } from 'node:http';
import { LruMap } from './lru.js';
import { NAME, type Options, poolName, servernameOf } from './node-agent.js';
import type { Profile } from './profile.js';

/** Target of a request: the pool whose sockets it may use. */
export interface Place {
    /** Name of the pool. */
    readonly name: string;
    /** Name for SNI. */
    readonly servername: string;
    readonly profile: Profile;
    /** Options that Node's agent reads of a request that gets a free socket. */
    readonly forReuse: Options;
}

/** Finds places and caches them: a request on an open connection costs little more than this lookup. */
export class Places {
    /** Cached places by Host header. */
    readonly #known = new LruMap<string, KnownPlace>(1000);

    /**
     * @param own the options of the request
     * @param common those of the agent, which take precedence, as in Node's agent
     */
    of(request: ClientRequest, own: Options, common: Options, profile: Profile): Place {
        const header = request.getHeader('host');
        if (typeof header !== 'string') return placeOf(request, own, common, profile);
        const known = this.#known.get(header);
        if (known?.place.profile === profile && matches(known.asked, own, common)) return known.place;
        const place = placeOf(request, own, common, profile);
        const asked = askedOf(own, common);
        // A session belongs to its caller, and is not cached.
        if (asked.session === undefined) this.#known.set(header, { asked, place });
        return place;
    }
}

interface KnownPlace {
    readonly asked: Asked;
    readonly place: Place;
}

/** Options that determine a pool's name, in addition to the profile. */
type Asked = Pick<Options, (typeof ASKED)[number]>;
const ASKED = ['host', 'port', 'servername', 'family', 'localAddress', 'socketPath', 'session'] as const;

function askedOf(own: Options, common: Options): Asked {
    return Object.fromEntries(ASKED.map((option) => [option, (option in common ? common : own)[option]]));
}

function matches(asked: Asked, own: Options, common: Options): boolean {
    for (const option of ASKED) if ((option in common ? common : own)[option] !== asked[option]) return false;
    return true;
}

function placeOf(request: ClientRequest, own: Options, common: Options, profile: Profile): Place {
    const asked = askedOf(own, common);
    const servername = asked.servername ?? servernameOf(asked, request);
    const name = poolName({ ...asked, servername }, profile);
    return { name, servername, profile, forReuse: { servername, [NAME]: name } };
}
