//! How returning clients avoid a full handshake.

use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{Resumption, SessionCache, Source, TicketKeys},
    values::{self, count_or_zero, timeout},
    words::switch,
};

pub(super) const RESUMPTION: Section = Section {
    path: "resumption",
    about: "How returning clients avoid a full handshake, and with it the private-key operation. Several gateways \
            behind one balancer resume each other's sessions if they share ticket keys and Redis; the \
            [guide](../guide/fleet-resumption.md) shows how.",
    keys: &[
        Key {
            name: "tickets",
            value: "`off`, `local`, `fleet`, a path, or a list of paths",
            preset: Preset::Is("local"),
            about: "Session tickets: the client keeps the session, encrypted. The only kind in TLS 1.3. The key is this \
                    process's (`local`), all gateways' through Redis (`fleet`), or in files of 48 or 80 bytes as nginx \
                    has them: the first encrypts, the others decrypt. Costs no memory here, and one ticket in each \
                    handshake.",
        },
        Key {
            name: "cache",
            value: "`off`, `memory`, or an address of Redis",
            preset: Preset::Is("memory"),
            about: "Where sessions are kept for clients of TLS 1.2 and below without tickets: in this process, or for \
                    all gateways in `redis://user:password@host:port/database`, `rediss://...` (TLS) or \
                    `redis+cluster://host:port,host:port`. Redis costs a question in each handshake that resumes, \
                    unless this process knows the session too.",
        },
        Key {
            name: "cache_size",
            value: "count",
            preset: Preset::Is("20480"),
            about: "Sessions that this process keeps at most, at under 1 KiB each; a client certificate comes on top. \
                    Those that are used least leave first. With 0, which needs Redis, it keeps none and asks for each.",
        },
        Key {
            name: "lifetime",
            value: "duration, at most `7d`",
            preset: Preset::Is("12h"),
            about: "How long a session may be resumed. Longer saves more full handshakes, and whoever gets the ticket key \
                    can read more of what was recorded in TLS 1.2.",
        },
        Key {
            name: "rotation",
            value: "duration, at least `1s`",
            preset: Preset::Is("12h"),
            about: "How long a ticket key encrypts, where it is `local` or the fleet's: a ticket is accepted for at \
                    least this long. Shorter limits what a stolen key opens. In a fleet, clocks may be a minute apart \
                    with rotations of `5m` and more.",
        },
        Key {
            name: "early_data",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "TLS 1.3 clients that return may send requests before the handshake is complete (0-RTT): one round \
                    trip less, and without forward secrecy. Only `GET`, `HEAD`, `OPTIONS` and `TRACE` (others are answered \
                    425), marked `Early-Data: 1` for the upstream, once for each ticket, and not where clients have \
                    certificates. See the [guide](../guide/fleet-resumption.md#0-rtt).",
        },
        Key {
            name: "lookup_timeout",
            value: "duration",
            preset: Preset::Is("20ms"),
            about: "How long a handshake waits for Redis before it becomes a full one. After several such, Redis is \
                    not asked for a while.",
        },
        Key {
            name: "fleet_secret",
            value: "path",
            preset: Preset::Means("none"),
            about: "A file that all gateways of a fleet share and Redis does not see: sessions and ticket keys are \
                    sealed with it before they leave. Make it with `quadrille tickets generate FILE`.",
        },
        Key {
            name: "redis_password",
            value: "path",
            preset: Preset::Means("the one in the address"),
            about: "A file with the password, so that it need not stand in this one.",
        },
        Key {
            name: "redis_ca",
            value: "path",
            preset: Preset::Means("the system's CAs"),
            about: "CA bundle (PEM) that the certificate of `rediss://` must verify against.",
        },
    ],
};

/// How returning clients avoid a full handshake.
pub(super) fn resumption(field: &Field<'_>) -> Resumption {
    if field.is_scalar() {
        let on = field.parse(switch).unwrap_or(true);
        return if on { Resumption::default() } else { Resumption::off() };
    }
    let mut resumption = Resumption::default();
    if let Some(keys) = field.mapping(&RESUMPTION) {
        if let Some(tickets) = keys.get("tickets").and_then(|field| tickets(&field)) {
            resumption.tickets = tickets;
        }
        if let Some(field) = keys.get("cache") {
            let place = field.place();
            let parsed = field.parse(|text| values::session_cache(text, place));
            resumption.cache = parsed.unwrap_or(resumption.cache);
        }
        keys.update("cache_size", &mut resumption.cache_size, count_or_zero);
        keys.update("lifetime", &mut resumption.lifetime, values::session_lifetime);
        keys.update("rotation", &mut resumption.rotation, values::rotation);
        keys.update("early_data", &mut resumption.early_data, switch);
        keys.update("lookup_timeout", &mut resumption.lookup_timeout, timeout);
        let file = |key| keys.get(key).and_then(|field| Some((field.file()?, field.place())));
        resumption.fleet_secret = file("fleet_secret").map(|(path, place)| (Source::File(path), place));
        resumption.redis_password = file("redis_password").map(|(path, place)| (Source::File(path), place));
        resumption.redis_ca = file("redis_ca");
        refuse_contradictions(&keys, &resumption);
    }
    resumption
}

fn tickets(field: &Field<'_>) -> Option<TicketKeys> {
    if field.is_scalar() {
        if let Some(word) = values::ticket_keys(field.text()?, field.place()) {
            return Some(word);
        }
        return Some(TicketKeys::Files(vec![Source::File(field.file()?)], field.place()));
    }
    let files: Option<Vec<_>> = field.items().iter().map(|item| item.file().map(Source::File)).collect();
    Some(TicketKeys::Files(files?, field.place()))
}

fn refuse_contradictions(keys: &Mapping<'_>, resumption: &Resumption) {
    let error = |key: &str, message: &str| keys.field().at(key).error(message);
    if resumption.early_data
        && let Some(problem) = resumption.tickets.early_data_problem(&resumption.cache)
    {
        error("early_data", problem);
    }
    if resumption.cache_size == 0 && matches!(resumption.cache, SessionCache::Memory) {
        error(
            "cache_size",
            "a cache in this process keeps at least 1 session; to keep none, write `cache: off`",
        );
    }
    match (&resumption.cache, &resumption.tickets, &resumption.fleet_secret) {
        (SessionCache::Redis(..), _, None) => error(
            "cache",
            "sessions in Redis are sealed with a secret that all gateways share; make one with `quadrille tickets generate FILE` and name it as `fleet_secret: FILE`",
        ),
        (SessionCache::Off | SessionCache::Memory, TicketKeys::Fleet(_), _) => error(
            "tickets",
            "the ticket keys of a fleet rotate through Redis; say where it is, such as `cache: redis://127.0.0.1:6379`",
        ),
        (SessionCache::Off | SessionCache::Memory, _, Some(_)) => error(
            "fleet_secret",
            "nothing leaves this process: the cache is not in Redis; remove `fleet_secret`, or write `cache: redis://HOST`",
        ),
        _ => {}
    }
}
