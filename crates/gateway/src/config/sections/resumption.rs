//! How returning clients avoid a full handshake.

use crate::{
    config::{
        reader::Field,
        schema::{Key, Preset, Section},
        values::{count, timeout},
        words::switch,
    },
    model::Resumption,
};
use std::time::Duration;

pub(super) const RESUMPTION: Section = Section {
    path: "resumption",
    about: "How returning clients avoid a full handshake, and with it the private-key operation.",
    keys: &[
        Key {
            name: "tickets",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "Session tickets: the client keeps the session, encrypted. The only kind in TLS 1.3. Costs no memory \
                    here, and one ticket in each handshake.",
        },
        Key {
            name: "cache",
            value: "`on` or `off`",
            preset: Preset::Is("on"),
            about: "A session cache in this process, for clients of TLS 1.2 and below without tickets.",
        },
        Key {
            name: "cache_size",
            value: "count",
            preset: Preset::Is("20480"),
            about: "Sessions that the cache holds at most; the oldest leave first. Each takes memory until it expires or is \
                    pushed out, the more with a client certificate.",
        },
        Key {
            name: "lifetime",
            value: "duration, at most `7d`",
            preset: Preset::Is("12h"),
            about: "How long a session may be resumed. Longer saves more full handshakes, and whoever gets the ticket key \
                    can read more of what was recorded in TLS 1.2.",
        },
    ],
};

/// How returning clients avoid a full handshake.
pub(super) fn resumption(field: &Field<'_>) -> Resumption {
    let mut resumption = Resumption::default();
    if field.is_scalar() {
        let on = field.parse(switch).unwrap_or(true);
        return Resumption { tickets: on, cache: on, ..resumption };
    }
    if let Some(keys) = field.mapping(&RESUMPTION) {
        keys.update("tickets", &mut resumption.tickets, switch);
        keys.update("cache", &mut resumption.cache, switch);
        keys.update("cache_size", &mut resumption.cache_size, count);
        keys.update("lifetime", &mut resumption.lifetime, lifetime);
    }
    resumption
}

/// RFC 8446, section 4.6.1: seven days at most.
fn lifetime(text: &str) -> Result<Duration, String> {
    match timeout(text)? {
        lifetime if lifetime > LONGEST => Err("TLS lets sessions live for 7d at most; write less".to_owned()),
        lifetime => Ok(lifetime),
    }
}

const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
