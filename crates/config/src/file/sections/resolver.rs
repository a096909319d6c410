//! DNS resolution of the names of upstream servers.

use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::{list, time},
    },
    model::{DnsRefresh, Resolver},
    quote,
    values::{show_duration, timeout, timeout_or_off},
};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

pub(super) const RESOLVER: Section<Resolver> = Section {
    path: "resolver",
    about: "The DNS servers that resolve the names of upstream servers.",
    keys: &[
        Key::new(
            "servers",
            "list of IP addresses, with a port or without",
            Preset::Means("the system's"),
            "DNS servers, queried over UDP, and over TCP where a response is too long for that. The system's \
                    are those of `/etc/resolv.conf`; names that they cannot resolve are then looked up as \
                    configured in `/etc/nsswitch.conf`. `/etc/hosts` comes first in any case.",
            |field, resolver| {
                resolver.servers = field.items().iter().filter_map(|item| item.parse(server)).collect();
            },
            |resolver| list(resolver.servers.iter().map(|server| server.to_string().into())),
        ),
        Key::new(
            "timeout",
            "duration",
            Preset::Is("5s"),
            "The time after which a lookup fails. A start and a reload wait at most this long for all names \
                    together.",
            |field, resolver| field.set(&mut resolver.timeout, timeout),
            |resolver| time(resolver.timeout),
        ),
    ],
};

/// Reads the settings, with defaults in place of wrong values.
pub(super) fn resolver(field: &Field<'_>) -> Resolver {
    let mut resolver = Resolver::default();
    RESOLVER.read(field, &mut resolver);
    resolver
}

/// Reads `ttl`, an interval, or `off`.
pub(super) fn refresh(text: &str) -> Result<DnsRefresh, Problem> {
    if text == "ttl" {
        return Ok(DnsRefresh::ByTtl);
    }
    let interval = timeout_or_off(text).map_err(|_| {
        let message = format!("{} is neither `ttl` nor `off` nor a duration", quote(text));
        Problem::new(message, "write one of them, such as `30s`")
    })?;
    Ok(interval.map_or(DnsRefresh::Off, DnsRefresh::Every))
}

pub(super) fn show_refresh(refresh: DnsRefresh) -> Value {
    match refresh {
        DnsRefresh::ByTtl => "ttl".into(),
        DnsRefresh::Every(interval) => show_duration(interval).into(),
        DnsRefresh::Off => "off".into(),
    }
}

fn server(text: &str) -> Result<SocketAddr, Problem> {
    const DNS: u16 = 53;
    let address = text.parse::<SocketAddr>().or_else(|_| text.parse::<IpAddr>().map(|ip| (ip, DNS).into()));
    address.map_err(|_| {
        let message = format!("{} is not the address of a DNS server", quote(text));
        Problem::new(message, "write an IP address, such as `10.0.0.2` or `\"[2001:db8::2]:5353\"`")
    })
}
