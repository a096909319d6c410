//! Negotiation of the content coding (RFC 9110 section 12.5.3).

use crate::http::request::accept::qualities;
use http::{HeaderMap, header};
use quadrille_config::model::ContentCoding;

/// Chooses the coding that the client prefers; among equals, the first in `codings`. Returns `None` if the client
/// accepts none or prefers the unchanged body.
pub(super) fn choose(codings: &[ContentCoding], headers: &HeaderMap) -> Option<ContentCoding> {
    let accepted = |wanted: &str| {
        let all = || qualities(headers, header::ACCEPT_ENCODING);
        let named = |wanted: &str| all().find(|(named, _)| named.eq_ignore_ascii_case(wanted));
        named(wanted).map(|(_, quality)| quality).ok_or_else(|| named("*").map_or(0, |(_, quality)| quality))
    };
    let quality_of = |coding: ContentCoding| match accepted(coding.name()) {
        // The older name of gzip (RFC 9110 section 8.4.1.3).
        Err(any) if coding == ContentCoding::Gzip => accepted("x-gzip").unwrap_or(any),
        Ok(quality) | Err(quality) => quality,
    };
    let mut best = None;
    for coding in codings {
        let quality = quality_of(*coding);
        if quality > best.map_or(0, |(quality, _)| quality) {
            best = Some((quality, *coding));
        }
    }
    let unchanged = accepted("identity").unwrap_or(0);
    best.filter(|(quality, _)| *quality >= unchanged).map(|(_, coding)| coding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContentCoding::{Brotli, Gzip, Zstd};
    use http::HeaderValue;

    #[test]
    fn the_preferred_coding_is_chosen() {
        for (accept, expected) in [
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("gzip, deflate, br", Some(Brotli)),
            ("gzip", Some(Gzip)),
            ("GZIP;q=0.5", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("gzip;q=1.0, zstd;q=0.9", Some(Gzip)),
            ("zstd;q=0, br;q=0.0, gzip", Some(Gzip)),
            ("*", Some(Zstd)),
            ("zstd;q=0, *", Some(Brotli)),
            ("*;q=0", None),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", Some(Gzip)),
            ("identity;q=0, gzip;q=0.1", Some(Gzip)),
            ("deflate, compress", None),
            ("gzip;q=nonsense", None),
            ("gzip;q=0", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accept));
            assert_eq!(choose(&[Zstd, Brotli, Gzip], &headers), expected, "{accept}");
        }
        assert_eq!(choose(&[Zstd, Brotli, Gzip], &HeaderMap::new()), None);
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        assert_eq!(choose(&[Gzip, Brotli], &headers), Some(Gzip), "the order is the configuration's");
    }
}
