//! For whom a peer speaks: `X-Forwarded-For` from its end, as far as the proxies in it are trusted.

use http::{HeaderMap, HeaderName, HeaderValue};
use quadrille_config::model::TrustedProxies;
use std::net::{IpAddr, SocketAddr};

pub(super) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    /// The client: the peer, or the one for whom a trusted peer speaks. Port 0 if that peer names none.
    pub(super) client: SocketAddr,
    pub(super) stance: Stance,
}

/// What becomes of what the peer says of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stance {
    /// What is known takes its place.
    Replace,
    /// It is kept, and the peer appended.
    Believe,
    /// What is known takes its place, but for `X-Forwarded-For`, to which the peer is appended.
    AppendOnly,
}

impl Sender {
    /// The peer, or the one for whom it speaks; nobody is trusted where there are no settings.
    pub(super) fn of(peer: SocketAddr, trusted: Option<&TrustedProxies>, headers: &HeaderMap) -> Self {
        match trusted {
            Some(TrustedProxies::AppendedTo) => Self { client: peer, stance: Stance::AppendOnly },
            Some(trusted) if trusted.contains(peer.ip()) => {
                Self { client: last_untrusted(peer, trusted, headers), stance: Stance::Believe }
            }
            _ => Self { client: peer, stance: Stance::Replace },
        }
    }
}

/// From the end of the list, the first address that is no trusted proxy's; the first of all if each is. What is no address
/// ends the search: nobody can say who wrote what stands before it.
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

/// The one address that is named, if nothing else is.
pub(super) fn only(headers: &HeaderMap) -> Option<IpAddr> {
    let mut lines = headers.get_all(FORWARDED_FOR).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    Some(address(only.as_bytes())?.ip())
}

/// The address before the last so many.
pub(super) fn from_the_end(headers: &HeaderMap, skipped: usize) -> Option<IpAddr> {
    let lines: Vec<&HeaderValue> = headers.get_all(FORWARDED_FOR).iter().collect();
    let mut entries = lines.into_iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    Some(address(entries.nth(skipped)?)?.ip())
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`.
fn address(entry: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(entry.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let ip: Result<IpAddr, _> = bare.parse();
    ip.map(|ip| SocketAddr::new(ip, 0)).or_else(|_| text.parse()).ok()
}

/// The list with one more address at its end.
pub(super) fn appended(headers: &HeaderMap, peer: &HeaderValue) -> HeaderValue {
    let mut list: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    list.push(peer.as_bytes());
    HeaderValue::from_bytes(&list.join(&b", "[..])).unwrap_or_else(|_| peer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_who_the_last_trusted_proxy_has_seen() {
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
