//! TLS session resumption.

use crate::{
    Field, Problem,
    enums::{name, switch},
    file::{
        schema::{Key, Preset, Section},
        shown::{placed_source, source, time},
    },
    model::{Resumption, SessionCache, Source, TicketKeys},
    values::{self, count_or_zero, timeout},
};
use serde_json::Value;

pub(super) const RESUMPTION: Section<Resumption> = Section {
    path: "resumption",
    about: "TLS session resumption, which saves returning clients a full handshake, and with it the private-key \
            operation. Several gateways behind one load balancer resume each other's sessions if they share \
            ticket keys and Redis; the [guide](../guide/fleet-resumption.md) shows how.",
    keys: &[
        Key::new(
            "tickets",
            "`off`, `local`, `fleet`, a path, or a list of paths",
            Preset::Is("local"),
            "Session tickets: the client stores the session, encrypted. TLS 1.3 has no other kind. The ticket \
                    key belongs to this process (`local`), is shared through Redis (`fleet`), or is read from files of \
                    48 or 80 bytes in nginx's format: the first encrypts, the others decrypt. Costs no memory here, \
                    and one ticket in each handshake.",
            |field, resumption| resumption.tickets = tickets(field).unwrap_or(TicketKeys::Local),
            |resumption| show_tickets(&resumption.tickets),
        ),
        Key::new(
            "cache",
            "`off`, `memory`, or an address of Redis",
            Preset::Is("memory"),
            "Storage of sessions for clients of TLS 1.2 and below without tickets: in this process, or for all \
                    gateways in `redis://user:password@host:port/database`, `rediss://...` (TLS) or \
                    `redis+cluster://host:port,host:port`. Redis costs a lookup in each handshake that resumes, \
                    unless this process has the session too.",
            |field, resumption| {
                field.set(&mut resumption.cache, |text| values::session_cache(text, field.place()));
            },
            |resumption| show_cache(&resumption.cache),
        ),
        Key::new(
            "cache_size",
            "count",
            Preset::Is("20480"),
            "Maximum number of sessions that this process caches, at under 1 KiB each, plus the client's \
                    certificate if there is one. The least used are evicted first. With 0, which needs Redis, it \
                    caches none, and looks up each session.",
            |field, resumption| field.set(&mut resumption.cache_size, count_or_zero),
            |resumption| resumption.cache_size.into(),
        ),
        Key::new(
            "lifetime",
            "duration, at most `7d`",
            Preset::Is("12h"),
            "Time for which a session may be resumed. A longer time saves more full handshakes; but a holder \
                    of the ticket key can decrypt more recorded traffic of TLS 1.2.",
            |field, resumption| field.set(&mut resumption.lifetime, values::session_lifetime),
            |resumption| time(resumption.lifetime),
        ),
        Key::new(
            "rotation",
            "duration, at least `1s`",
            Preset::Is("12h"),
            "Time for which a ticket key encrypts, if it is `local` or the fleet's: a ticket is accepted for \
                    at least this time. A shorter time limits the sessions that a stolen key can decrypt. In a fleet, \
                    clocks may differ by a minute with rotations of `5m` and more.",
            |field, resumption| field.set(&mut resumption.rotation, values::rotation),
            |resumption| time(resumption.rotation),
        ),
        Key::new(
            "early_data",
            "`on` or `off`",
            Preset::Is("off"),
            "Returning TLS 1.3 clients may send requests before the handshake is complete (0-RTT): one round \
                    trip less, without forward secrecy. Accepted only for `GET`, `HEAD`, `OPTIONS` and `TRACE` \
                    (other methods receive a 425 response), marked `Early-Data: 1` for the upstream, once for each \
                    ticket, and not on listeners that request client certificates. See the \
                    [guide](../guide/fleet-resumption.md#0-rtt).",
            |field, resumption| field.set(&mut resumption.early_data, switch),
            |resumption| name(resumption.early_data).into(),
        ),
        Key::new(
            "lookup_timeout",
            "duration",
            Preset::Is("20ms"),
            "Time that a handshake waits for Redis before it becomes a full one. After several timeouts, \
                    Redis is not used for some time.",
            |field, resumption| field.set(&mut resumption.lookup_timeout, timeout),
            |resumption| time(resumption.lookup_timeout),
        ),
        Key::new(
            "fleet_secret",
            "path",
            Preset::Means("none"),
            "A file that all gateways of a fleet share and that is never sent to Redis: sessions and \
                    ticket keys are sealed with it before they are sent. Create it with `quadrille tickets \
                    generate FILE`.",
            |field, resumption| resumption.fleet_secret = field.placed(Field::file_source),
            |resumption| placed_source(resumption.fleet_secret.as_ref()),
        ),
        Key::new(
            "redis_password",
            "path",
            Preset::Means("the one in the address"),
            "A file with the password, which then need not be in the configuration.",
            |field, resumption| resumption.redis_password = field.placed(Field::file_source),
            |resumption| placed_source(resumption.redis_password.as_ref()),
        ),
        Key::new(
            "redis_ca",
            "path",
            Preset::Means("the system's CAs"),
            "CA bundle (PEM) that the certificate of `rediss://` must verify against.",
            |field, resumption| resumption.redis_ca = field.placed(Field::file),
            |resumption| resumption.redis_ca.as_ref().map(|(ca, _)| ca.display().to_string()).into(),
        ),
    ],
};

/// Reads the settings of session resumption.
pub(super) fn resumption(field: &Field<'_>) -> Resumption {
    if field.is_scalar() {
        let on = field.parse(switch).unwrap_or(true);
        return if on { Resumption::default() } else { Resumption::off() };
    }
    let mut resumption = Resumption::default();
    if RESUMPTION.read(field, &mut resumption).is_some() {
        refuse_contradictions(field, &resumption);
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
    let files: Option<Vec<_>> = field.items().iter().map(Field::file_source).collect();
    Some(TicketKeys::Files(files?, field.place()))
}

fn show_tickets(tickets: &TicketKeys) -> Value {
    match tickets {
        TicketKeys::Off => "off".into(),
        TicketKeys::Local => "local".into(),
        TicketKeys::Fleet(_) => "fleet".into(),
        TicketKeys::Files(files, _) => files.iter().map(source).collect(),
    }
}

fn show_cache(cache: &SessionCache) -> Value {
    match cache {
        SessionCache::Off => "off".into(),
        SessionCache::Memory => "memory".into(),
        SessionCache::Redis(address, _) => address.to_string().into(),
    }
}

fn refuse_contradictions(field: &Field<'_>, resumption: &Resumption) {
    let error = |key: &str, problem: Problem| field.at(key).error(problem);
    if resumption.early_data
        && let Some(problem) = resumption.tickets.early_data_problem(&resumption.cache)
    {
        error("early_data", problem.into());
    }
    if resumption.cache_size == 0 && matches!(resumption.cache, SessionCache::Memory) {
        error(
            "cache_size",
            Problem::new(
                "a cache in this process keeps at least 1 session",
                "to keep none, write `cache: off`",
            ),
        );
    }
    match (&resumption.cache, &resumption.tickets, &resumption.fleet_secret) {
        (SessionCache::Redis(..), _, None) => error(
            "cache",
            Problem::new(
                "sessions in Redis are sealed with a secret that all gateways share",
                "make one with `quadrille tickets generate FILE` and name it as `fleet_secret: FILE`",
            ),
        ),
        (SessionCache::Off | SessionCache::Memory, TicketKeys::Fleet(_), _) => error(
            "tickets",
            Problem::new(
                "ticket keys of a fleet are shared through Redis",
                "give its address, such as `cache: redis://127.0.0.1:6379`",
            ),
        ),
        (SessionCache::Off | SessionCache::Memory, _, Some(_)) => error(
            "fleet_secret",
            Problem::new(
                "no effect: the cache is not in Redis",
                "remove `fleet_secret`, or write `cache: redis://HOST`",
            ),
        ),
        _ => {}
    }
}
