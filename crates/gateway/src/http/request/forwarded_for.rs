//! Client addresses from `X-Forwarded-For`, read from its end as far as the proxies in it are trusted.

use http::{HeaderMap, HeaderName, HeaderValue};
use quadrille_config::model::TrustedProxies;
use std::net::{IpAddr, SocketAddr};

pub(crate) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    /// Address of the client: the peer, or the client that a trusted peer names. The port is 0 if the peer names
    /// none.
    pub(crate) client: SocketAddr,
    pub(crate) stance: Stance,
}

/// Handling of forwarding headers from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// The headers are replaced.
    Replace,
    /// The headers are kept, and the peer is appended.
    Believe,
    /// The headers are replaced, except `X-Forwarded-For`, to which the peer is appended.
    AppendOnly,
}

impl Sender {
    /// Determines the sender: the peer, or the client that it names. Without settings, no peer is trusted.
    pub(crate) fn of(peer: SocketAddr, trusted: Option<&TrustedProxies>, headers: &HeaderMap) -> Self {
        match trusted {
            Some(TrustedProxies::AppendedTo) => Self { client: peer, stance: Stance::AppendOnly },
            Some(trusted) if trusted.contains(peer.ip()) => {
                Self { client: last_untrusted(peer, trusted, headers), stance: Stance::Believe }
            }
            _ => Self { client: peer, stance: Stance::Replace },
        }
    }
}

/// Returns the last address in the list that does not belong to a trusted proxy, or the first of all if each does. An
/// entry that is not an address ends the search: the origin of the entries before it is unknown.
fn last_untrusted(peer: SocketAddr, trusted: &TrustedProxies, headers: &HeaderMap) -> SocketAddr {
    let mut client = peer;
    for line in headers.get_all(FORWARDED_FOR).iter().collect::<Vec<_>>().into_iter().rev() {
        for entry in line.as_bytes().rsplit(|byte| *byte == b',') {
            let Some(address) = address(entry) else { return client };
            client = address;
            if !trusted.contains(client.ip()) {
                return client;
            }
        }
    }
    client
}

/// Returns the only address in the list; `None` if there is any other entry.
pub(crate) fn only(headers: &HeaderMap) -> Option<IpAddr> {
    let mut lines = headers.get_all(FORWARDED_FOR).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    Some(address(only.as_bytes())?.ip())
}

/// Returns the address before the last `skipped` entries.
pub(crate) fn from_the_end(headers: &HeaderMap, skipped: usize) -> Option<IpAddr> {
    let lines: Vec<&HeaderValue> = headers.get_all(FORWARDED_FOR).iter().collect();
    let mut entries = lines.into_iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    Some(address(entries.nth(skipped)?)?.ip())
}

/// Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`.
fn address(entry: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(entry.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let ip: Result<IpAddr, _> = bare.parse();
    ip.map(|ip| SocketAddr::new(ip, 0)).or_else(|_| text.parse()).ok()
}

/// Returns the list with one more address at its end.
pub(crate) fn appended(headers: &HeaderMap, peer: &HeaderValue) -> HeaderValue {
    let mut list: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    list.push(peer.as_bytes());
    HeaderValue::from_bytes(&list.join(&b", "[..])).unwrap_or_else(|_| peer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_one_that_the_last_trusted_proxy_saw() {
        let trusted = TrustedProxies::In(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        for (lines, client) in [
            (&[][..], "10.0.0.1:7"),
            (&["192.0.2.1"], "192.0.2.1:0"),
            (&["198.51.100.1, 192.0.2.1"], "192.0.2.1:0"),
            (&["198.51.100.1,192.0.2.1:5 ,10.9.9.9, fd00::1"], "192.0.2.1:5"),
            (&["198.51.100.1", "192.0.2.1", "10.9.9.9"], "192.0.2.1:0"),
            (&["2001:db8::1, [fd00::2]:9"], "[2001:db8::1]:0"),
            (&["[2001:db8::1]"], "[2001:db8::1]:0"),
            (&["10.0.0.3, ::ffff:10.0.0.2"], "10.0.0.3:0"),
            (&["192.0.2.1, unknown, 10.9.9.9"], "10.9.9.9:0"),
            (&["192.0.2.1, "], "10.0.0.1:7"),
            (&["192.0.2.1", "10.0.0.1.2"], "10.0.0.1:7"),
            (&["192.0.2.1", "\u{fc}"], "10.0.0.1:7"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            }
            let peer = "10.0.0.1:7".parse().unwrap();
            let sender = Sender::of(peer, Some(&trusted), &headers);
            assert_eq!(
                sender,
                Sender { client: client.parse().unwrap(), stance: Stance::Believe },
                "{lines:?}"
            );
            for (trusted, stance) in [
                (None, Stance::Replace),
                (Some(&TrustedProxies::default()), Stance::Replace),
                (Some(&TrustedProxies::AppendedTo), Stance::AppendOnly),
            ] {
                assert_eq!(Sender::of(peer, trusted, &headers), Sender { client: peer, stance });
            }
        }
    }
}
