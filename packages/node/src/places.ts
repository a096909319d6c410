import type { ClientRequest } from 'node:http';
import { LruMap } from './lru.js';
import { NAME, type Options, poolName, servernameOf } from './node-agent.js';
import type { Profile } from './profile.js';

/** Where a request goes: the pool whose sockets it may use. */
export interface Place {
    /** Of the pool. */
    readonly name: string;
    /** For SNI. */
    readonly servername: string;
    readonly profile: Profile;
    /** All that Node's agent asks for of a request that gets a free socket. */
    readonly forReuse: Options;
}

/** Finds places, and remembers those of before: a request on an open connection costs little more than finding its place. */
export class Places {
    /** By Host header. */
    readonly #known = new LruMap<string, KnownPlace>(1000);

    /**
     * @param own the options of the request
     * @param common those of the agent, which come first, as in Node's agent
     */
    of(request: ClientRequest, own: Options, common: Options, profile: Profile): Place {
        const header = request.getHeader('host');
        if (typeof header !== 'string') return placeOf(request, own, common, profile);
        const known = this.#known.get(header);
        if (known?.place.profile === profile && matches(known.asked, own, common)) return known.place;
        const place = placeOf(request, own, common, profile);
        const asked = askedOf(own, common);
        // A session is its caller's, and is not kept here.
        if (asked.session === undefined) this.#known.set(header, { asked, place });
        return place;
    }
}

interface KnownPlace {
    readonly asked: Asked;
    readonly place: Place;
}

/** Everything in options, beside what the profile stands for, that the name of a pool is made of. */
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
