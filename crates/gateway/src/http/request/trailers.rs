//! Trailer fields that are forwarded (RFC 9110 section 6.5).

use super::{forwarded_headers, header_spelling::is_same, hop_by_hop};
use http::{HeaderMap, HeaderName};
use std::sync::Arc;

/// The trailer fields of one message that are forwarded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trailers {
    /// Whether all are discarded.
    discards: bool,
    /// Names that the route changes in the header section.
    changed: Option<Arc<[HeaderName]>>,
    /// Names that access steps set or remove in the header section.
    owned: Vec<HeaderName>,
}

/// Fields that control framing, routing, authentication, request processing, caching or content (RFC 9110 section
/// 6.5.1), or that upstreams expect from a proxy. Recipients that merge trailers into the header section would obey
/// them.
const NEVER: [&str; 48] = [
    "accept-encoding",
    "age",
    "alt-svc",
    "authorization",
    "cache-control",
    "clear-site-data",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-security-policy",
    "content-type",
    "cookie",
    "date",
    "early-data",
    "expect",
    "expires",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "sec-websocket-accept",
    "sec-websocket-key",
    "set-cookie",
    "strict-transport-security",
    "traceparent",
    "tracestate",
    "trailer",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-http-method-override",
    "x-request-id",
];

impl Trailers {
    /// Discards all trailers.
    pub(crate) fn none() -> Self {
        Self { discards: true, ..Self::default() }
    }

    /// Forwards all trailers but those that a message may not have, and those with these names, which the route
    /// changes and access steps own.
    pub(crate) fn except(
        changed: Option<&Arc<[HeaderName]>>,
        owned: impl Iterator<Item = HeaderName>,
    ) -> Self {
        Self { discards: false, changed: changed.cloned(), owned: owned.collect() }
    }

    /// Returns the trailers that are forwarded; `None` without any.
    pub(crate) fn filter(&self, mut trailers: HeaderMap) -> Option<HeaderMap> {
        if self.discards {
            return None;
        }
        let refused: Vec<HeaderName> = trailers.keys().filter(|name| !self.allows(name)).cloned().collect();
        refused.iter().for_each(|name| _ = trailers.remove(name));
        (!trailers.is_empty()).then_some(trailers)
    }

    fn allows(&self, name: &HeaderName) -> bool {
        let is_any = |names: &[HeaderName]| names.iter().any(|other| is_same(name.as_str(), other.as_str()));
        !NEVER.iter().any(|never| is_same(name.as_str(), never))
            && !hop_by_hop::NAMES.iter().any(|hop| is_same(name.as_str(), hop.as_str()))
            && !forwarded_headers::is_about_client(name)
            && !is_any(self.changed.as_deref().unwrap_or_default())
            && !is_any(&self.owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_header_section_decides_are_discarded() {
        let changed: Arc<[HeaderName]> = Arc::from([HeaderName::from_static("x-internal-token")]);
        let owned = [HeaderName::from_static("x-remote-user")];
        let trailers = Trailers::except(Some(&changed), owned.into_iter());
        for (name, passes) in [
            ("x-sum", true),
            ("grpc-status", true),
            ("server-timing", true),
            ("etag", true),
            ("digest", true),
            ("connection", false),
            ("upgrade", false),
            ("proxy_connection", false),
            ("te", false),
            ("content_length", false),
            ("transfer-encoding", false),
            ("authorization", false),
            ("cookie", false),
            ("x-forwarded-for", false),
            ("x_forwarded-host", false),
            ("x-real_ip", false),
            ("forwarded", false),
            ("x-envoy-internal", false),
            ("x_envoy_original_path", false),
            ("x-internal-token", false),
            ("x_internal_token", false),
            ("x_remote-user", false),
        ] {
            let one = HeaderMap::from_iter([(HeaderName::from_static(name), "1".parse().expect("a value"))]);
            assert_eq!(trailers.filter(one.clone()).is_some(), passes, "{name}");
            assert!(Trailers::none().filter(one).is_none());
        }
    }
}
