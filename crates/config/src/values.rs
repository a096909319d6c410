//! Text format of single values: durations, counts, addresses, hosts.
//!
//! The configuration file and the command line read their values with these same functions. Each returns the value of
//! a text, or a message with the problem and its remedy.

mod header;
mod permission;

pub use header::{changeable_header, header_name, header_value};
pub use permission::{file_mode, user_id};

use crate::{
    enums::switch,
    model::{AccessLog, Expression, Place, Problem, RedisAddress, SessionCache, TicketKeys},
    srv_name,
    suggest::quote,
    unix_socket::{self, UNIX},
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

/// Parses a duration with its unit (`us`, `ms`, `s`, `m`, `h`, `d`): `10ms`, `1.5s`, `1h30m`, or a plain `0`.
pub fn duration(text: &str) -> Result<Duration, Problem> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number = leading(rest, |c| c.is_ascii_digit() || c == '.');
        let unit = leading(&rest[number.len()..], char::is_alphabetic);
        rest = &rest[number.len() + unit.len()..];
        total = total.checked_add(term(number, unit, text)?).ok_or_else(|| too_long(text))?;
    }
    match total {
        _ if text.is_empty() => Err(no_duration(text)),
        total if total > LONGEST => Err(too_long(text)),
        total => Ok(total),
    }
}

/// Parses a [`duration`] that is not zero, for timeouts and intervals.
pub fn timeout(text: &str) -> Result<Duration, Problem> {
    match duration(text)? {
        Duration::ZERO => Err(Problem::new("zero would time out immediately", "write a longer time")),
        timeout => Ok(timeout),
    }
}

/// Parses a [`timeout`], or `off` for none.
pub fn timeout_or_off(text: &str) -> Result<Option<Duration>, Problem> {
    if matches!(text, "off" | "false" | "no") { Ok(None) } else { timeout(text).map(Some) }
}

/// Returns the shortest text that [`duration`] reads as this value.
pub fn show_duration(value: Duration) -> String {
    let nanos = value.as_nanos();
    let fits = |unit: &&(&str, u64)| nanos != 0 && nanos.is_multiple_of(u128::from(unit.1));
    match UNITS.iter().rev().find(fits) {
        Some((unit, size)) => format!("{}{unit}", nanos / u128::from(*size)),
        None => format!("{nanos}s"),
    }
}

/// Parses a whole number of at least one, in digits.
pub fn count(text: &str) -> Result<NonZeroUsize, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| {
        Problem::new(format!("{} is not a whole number of at least 1", quote(text)), "write plain digits")
    })
}

/// Parses a whole number, zero included, in digits.
pub fn count_or_zero(text: &str) -> Result<usize, Problem> {
    if text == "0" {
        return Ok(0);
    }
    count(text)
        .map(NonZeroUsize::get)
        .map_err(|_| Problem::new(format!("{} is not a whole number", quote(text)), "write plain digits"))
}

/// Parses a number of threads; `auto` means one for each CPU.
pub fn threads(text: &str) -> Result<Option<NonZeroUsize>, Problem> {
    match text {
        "auto" => Ok(None),
        _ => count(text).map(Some).map_err(|problem| {
            Problem::new(problem.message, "write plain digits, or `auto` for one for each CPU")
        }),
    }
}

/// Parses an address to listen on: `0.0.0.0:8443`, `[::]:8443`, `localhost:8443`; `8443` and `:8443` mean every IPv4
/// and IPv6 address of this machine.
pub fn listen_address(text: &str) -> Result<SocketAddr, Problem> {
    own_address(text, Ipv6Addr::UNSPECIFIED.into())
}

/// Parses the address of the admin pages: like [`listen_address`], but a port alone means loopback.
pub fn admin_address(text: &str) -> Result<SocketAddr, Problem> {
    own_address(text, Ipv4Addr::LOCALHOST.into())
}

/// Parses the session cache: `off`, `memory`, or an address of Redis.
pub fn session_cache(text: &str, place: Place) -> Result<SessionCache, Problem> {
    match text {
        "memory" => Ok(SessionCache::Memory),
        _ if RedisAddress::looks_like(text) => Ok(SessionCache::Redis(text.parse()?, place)),
        _ => match switch(text) {
            Ok(on) => Ok(if on { SessionCache::Memory } else { SessionCache::Off }),
            Err(_) => Err(Problem::new(
                format!("{} is not a session cache", quote(text)),
                "use off, memory or an address like redis://127.0.0.1:6379",
            )),
        },
    }
}

/// Parses the source of ticket keys: `off`, `local`, `fleet`; `None` if the text means files.
pub fn ticket_keys(text: &str, place: Place) -> Option<TicketKeys> {
    match text {
        "local" => Some(TicketKeys::Local),
        "fleet" => Some(TicketKeys::Fleet(place)),
        _ => switch(text).ok().map(|on| if on { TicketKeys::Local } else { TicketKeys::Off }),
    }
}

/// Parses the lifetime of a session: seven days at most (RFC 8446 section 4.6.1).
pub fn session_lifetime(text: &str) -> Result<Duration, Problem> {
    match timeout(text)? {
        lifetime if lifetime > WEEK => {
            Err(Problem::new("TLS limits session lifetimes to 7d", "write a shorter time"))
        }
        lifetime => Ok(lifetime),
    }
}

/// Parses the time for which a ticket key encrypts.
pub fn rotation(text: &str) -> Result<Duration, Problem> {
    match timeout(text)? {
        rotation if rotation < Duration::from_secs(1) => {
            Err(Problem::new("rotation more often than every second is not useful", "write `1s` or more"))
        }
        rotation => Ok(rotation),
    }
}

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Parses the address of an upstream server: `host:port`, with an IPv6 address in brackets, `unix:/path`, or `srv:name`.
pub fn server_address(text: &str) -> Result<String, Problem> {
    let shown = quote(text);
    if let Some(path) = text.strip_prefix(UNIX) {
        return unix_socket::path(path).map(|()| text.to_owned());
    }
    if let Some(name) = srv_name::of_address(text) {
        return srv_name::check(name).map(|()| text.to_owned());
    }
    if let Some((scheme, _)) = text.split_once("://") {
        let tls = if scheme == "https" { " and set `tls: on`" } else { "" };
        return Err(Problem::new(format!("{shown} is a URL"), format!("write `host:port`{tls}")));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(Problem::new(
            format!("{shown} has no port, and an IPv6 address needs brackets"),
            format!("write `[{text}]:80`"),
        ));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(Problem::new(format!("{shown} has no port"), "write `host:port`"));
    };
    if !matches!(port.parse::<u16>(), Ok(1..)) {
        return Err(Problem::new(format!("{shown} has no usable port"), "ports are 1 to 65535"));
    }
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_host_byte),
    };
    if good {
        Ok(text.to_owned())
    } else if !host.is_ascii() {
        Err(not_ascii(text, host))
    } else {
        Err(Problem::new(format!("{shown} has no host"), "write `host:port`"))
    }
}

/// Parses the host of a route: `example.com`, `*.example.com` (one label), or `*` for every host. The result is in
/// lower case, as hosts are compared.
pub fn route_host(text: &str) -> Result<Option<String>, Problem> {
    if text == "*" {
        return Ok(None);
    }
    let shown = quote(text);
    let name = text.strip_prefix("*.").unwrap_or(text);
    if text.contains("://") || text.contains('/') {
        return Err(Problem::new(
            format!("{shown} is a URL"),
            "write the host here and the rest under `path`",
        ));
    }
    if name.contains('*') {
        return Err(Problem::new(
            format!("{shown} is not a host"),
            "`*` can only stand for the whole first label",
        ));
    }
    if name.contains(':') {
        return Err(Problem::new(format!("{shown} has a port"), "routes match the host alone"));
    }
    if !name.is_ascii() {
        return Err(not_ascii(text, text));
    }
    if name.is_empty() || name.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err(Problem::new(format!("{shown} is not a host"), "write `example.com` or `*.example.com`"));
    }
    if let Some(odd) = name.chars().find(|c| !is_host_byte(*c as u8)) {
        return Err(format!("{shown} is not a host: {odd:?} cannot be in one").into());
    }
    Ok(Some(text.to_ascii_lowercase()))
}

/// Returns the problem of a text with an internationalized host, whose ASCII form is the remedy (RFC 5891).
fn not_ascii(text: &str, host: &str) -> Problem {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let remedy = match idna::domain_to_ascii(name) {
        Ok(ascii) if ascii.is_ascii() && !ascii.is_empty() => {
            format!("write `{}`", text.replace(name, &ascii))
        }
        _ => "write the host in its `xn--` form".to_owned(),
    };
    Problem::new(format!("{} is not ASCII", quote(text)), remedy)
}

/// Parses a host name, without wildcard or port.
pub fn host(text: &str) -> Result<String, Problem> {
    match route_host(text)? {
        Some(host) if !host.starts_with('*') => Ok(host),
        _ => Err(Problem::new(format!("{} is a pattern", quote(text)), "write one host")),
    }
}

/// Parses the path prefix of a route; `/` is every path.
pub fn route_path(text: &str) -> Result<Option<String>, Problem> {
    match text {
        "/" => Ok(None),
        _ => path(text).map(Some),
    }
}

/// Parses a path of a URL, without a query.
pub fn path(text: &str) -> Result<String, Problem> {
    let shown = quote(text);
    if !text.starts_with('/') {
        return Err(Problem::new(
            format!("{shown} does not begin with a slash"),
            format!("write `/{}`", text.trim_start()),
        ));
    }
    if text.contains(['?', '#', '*']) {
        return Err(Problem::new(
            format!("{shown} has a query, a fragment or a pattern"),
            "write a plain path",
        ));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{shown} has a character that a URL must percent-encode").into());
    }
    Ok(text.to_owned())
}

/// Parses a weight, relative to others.
pub fn weight(text: &str) -> Result<NonZeroU32, Problem> {
    let count = count(text)?;
    Ok(NonZeroU32::try_from(count).unwrap_or(NonZeroU32::MAX))
}

/// Parses a port that can be connected to.
pub fn port(text: &str) -> Result<u16, Problem> {
    match text.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(Problem::new(format!("{} is not a port", quote(text)), "ports are 1 to 65535")),
    }
}

/// Parses `https` or `http`.
pub fn scheme(text: &str) -> Result<String, Problem> {
    match text {
        "https" | "http" => Ok(text.to_owned()),
        _ => Err(Problem::new(format!("{} is not a scheme", quote(text)), "write `https` or `http`")),
    }
}

/// Parses the status of a redirect.
pub fn redirect_status(text: &str) -> Result<u16, Problem> {
    match text.parse() {
        Ok(status @ (301 | 302 | 303 | 307 | 308)) => Ok(status),
        _ => Err(Problem::new(
            format!("{} is not a redirect status", quote(text)),
            "write 301, 302, 303, 307 or 308",
        )),
    }
}

/// Parses a regular expression that must match a whole text.
pub fn whole_regex(text: &str) -> Result<Expression, Problem> {
    crate::model::whole(text).map_err(|error| {
        let last = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
        format!("{} is not a regular expression: {last}", quote(text)).into()
    })
}

/// Parses the HTTP status of a final response.
pub fn status(text: &str) -> Result<u16, Problem> {
    let status = text.parse().ok().filter(|status| (200..=599).contains(status));
    status.ok_or_else(|| {
        Problem::new(format!("{} is not the status of a response", quote(text)), "use 200 to 599")
    })
}

/// Parses an ALPN protocol (RFC 7301): 1 to 255 bytes.
pub fn alpn(text: &str) -> Result<String, Problem> {
    match text.len() {
        1..=255 => Ok(text.to_owned()),
        _ => Err("an ALPN protocol has 1 to 255 bytes".into()),
    }
}

/// Parses the name of an upstream: letters, digits, `_`, `-` and `.`, which logs and metrics can contain.
pub fn upstream_name(text: &str) -> Result<String, Problem> {
    let good = (1..=128).contains(&text.len()) && text.bytes().all(is_host_byte);
    let refuse =
        || Problem::new(format!("{} cannot be a name", quote(text)), "use letters, digits, `_`, `-` and `.`");
    good.then(|| text.to_owned()).ok_or_else(refuse)
}

/// Parses the path of a file.
pub fn file(text: &str) -> Result<PathBuf, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::new("the path is empty", "write the path of a file"));
    }
    if text.contains(['\n', '\r', '\0']) {
        return Err(Problem::new(format!("{} is not a path", quote(text)), "write it on one line"));
    }
    Ok(PathBuf::from(text))
}

/// Parses `off`, `stdout`, or the path of a file. A file named `off` must be written `./off`.
pub fn access_log(text: &str) -> Result<AccessLog, Problem> {
    match text.to_ascii_lowercase().as_str() {
        "off" | "false" | "no" => Ok(AccessLog::Off),
        "stdout" | "on" | "true" | "yes" | "-" => Ok(AccessLog::Stdout),
        "stderr" => {
            Err(Problem::new("`stderr` carries the gateway's own log", "write stdout or the path of a file"))
        }
        _ => file(text).map(AccessLog::File),
    }
}

/// Maximum duration: beyond any sensible setting, and no deadline overflows by adding it.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Units in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses one number with its unit.
fn term(number: &str, unit: &str, text: &str) -> Result<Duration, Problem> {
    let value: f64 = number.parse().map_err(|_| no_duration(text))?;
    if unit.is_empty() {
        return Err(Problem::new(
            format!("{} has no unit", quote(text)),
            format!("write `{number}s` or `{number}ms`"),
        ));
    }
    let known = UNITS.iter().find(|(name, _)| *name == unit || (*name == "us" && unit == "\u{b5}s"));
    let (_, nanos) = known.ok_or_else(|| {
        Problem::new(format!("{} has an unknown unit", quote(text)), "use us, ms, s, m, h or d")
    })?;
    Duration::try_from_secs_f64(value * (*nanos as f64 / 1e9)).map_err(|_| too_long(text))
}

fn no_duration(text: &str) -> Problem {
    Problem::new(
        format!("{} is not a duration", quote(text)),
        "write a number and a unit, such as 10ms, 1.5s or 2m",
    )
}

fn too_long(text: &str) -> Problem {
    Problem::new(format!("{} is longer than a year", quote(text)), "write a shorter time")
}

fn leading(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    &text[..end]
}

/// Parses an address of this machine; a port alone means the address `all`.
fn own_address(text: &str, all: IpAddr) -> Result<SocketAddr, Problem> {
    let shown = quote(text);
    if let Ok(ip) = text.parse() {
        return Err(Problem::new(
            format!("{shown} has no port"),
            format!("write `{}`", SocketAddr::new(ip, 8443)),
        ));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let ip = match host {
        "" => Some(all),
        "*" => Some(Ipv6Addr::UNSPECIFIED.into()),
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        _ => host.trim_start_matches('[').trim_end_matches(']').parse().ok(),
    };
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match (ip, digits, port.parse()) {
        (Some(ip), true, Ok(port)) => Ok(SocketAddr::new(ip, port)),
        (Some(_), true, Err(_)) => {
            Err(Problem::new(format!("{shown} has no usable port"), "ports are 0 to 65535"))
        }
        _ => Err(Problem::new(
            format!("{shown} is not an address of this machine"),
            "write an IP address and a port: `0.0.0.0:8443`",
        )),
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}
