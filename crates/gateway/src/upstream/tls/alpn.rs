//! ALPN protocols offered to endpoints (RFC 7301).

use quadrille_config::model::UpstreamAlpn;

/// Offered protocols; empty in wire form for protocols without an ALPN name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alpn {
    None,
    Http1,
    Http2,
    Both,
}

impl Alpn {
    pub(crate) fn wire(self, names: UpstreamAlpn) -> &'static [u8] {
        match (names, self) {
            (UpstreamAlpn::Http, Self::None) => b"",
            (UpstreamAlpn::Http, Self::Http1) => b"\x08http/1.1",
            (UpstreamAlpn::Http, Self::Http2) => b"\x02h2",
            (UpstreamAlpn::Http, Self::Both) => b"\x02h2\x08http/1.1",
            // The first name, which Istio's Envoy offers by its `alpn` filter, indicates to the peer that a proxy of
            // the mesh uses HTTP; `istio` indicates a proxy of the mesh.
            (UpstreamAlpn::Istio, Self::None) => b"\x05istio",
            (UpstreamAlpn::Istio, Self::Http1) => b"\x0eistio-http/1.1\x05istio\x08http/1.1",
            (UpstreamAlpn::Istio, Self::Http2) => b"\x08istio-h2\x05istio\x02h2",
            (UpstreamAlpn::Istio, Self::Both) => b"\x08istio-h2\x0eistio-http/1.1\x05istio\x02h2\x08http/1.1",
        }
    }
}

/// Returns whether a selected name is HTTP/2; `None` if it does not determine HTTP.
pub(crate) fn is_http2(name: &[u8]) -> Option<bool> {
    match name {
        b"h2" | b"istio-h2" => Some(true),
        b"istio" => None,
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_long_as_they_say() {
        for names in [UpstreamAlpn::Http, UpstreamAlpn::Istio] {
            for offered in [Alpn::None, Alpn::Http1, Alpn::Http2, Alpn::Both] {
                let mut wire = offered.wire(names);
                while let [length, rest @ ..] = wire {
                    let (name, rest) = rest.split_at(usize::from(*length));
                    assert!(
                        ["h2", "http/1.1", "istio", "istio-h2", "istio-http/1.1"]
                            .iter()
                            .any(|known| known.as_bytes() == name)
                    );
                    wire = rest;
                }
            }
        }
        let chosen: [&[u8]; 4] = [b"istio-h2", b"h2", b"http/1.1", b"istio"];
        assert_eq!(chosen.map(is_http2), [Some(true), Some(true), Some(false), None]);
    }
}
