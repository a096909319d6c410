//! What pages of other origins may do (the CORS protocol of the Fetch standard, section 3.3).

use super::request::Request;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use quadrille_config::model::Cors;

/// What is asked from a page of this origin.
pub(super) enum CrossOrigin {
    /// A preflight request, which is answered with these headers.
    Preflight(HeaderMap),
    /// A request whose answer gets these headers.
    Actual(HeaderMap),
}

impl CrossOrigin {
    /// What a request asks under this policy. One of no other origin, or of one that may not, gets to know no more than
    /// that answers differ.
    pub(super) fn of(request: &Request, cors: &Cors) -> Self {
        // Caches must not give the answer to pages of other origins, nor one that is for none to those that may.
        let mut headers = HeaderMap::with_capacity(6);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = request.headers.get(header::ORIGIN) else { return Self::Actual(headers) };
        let preflight = request.method == Method::OPTIONS
            && request
                .headers
                .get(header::ACCESS_CONTROL_REQUEST_METHOD)
                .is_some_and(|value| !value.is_empty());
        let is_allowed = |text: &str| cors.origins.iter().any(|allowed| allowed.matches(text));
        if !origin.to_str().is_ok_and(is_allowed) {
            return match preflight && !cors.forward_other_preflights {
                true => Self::Preflight(HeaderMap::new()),
                false => Self::Actual(headers),
            };
        }
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        if cors.credentials {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        put(&mut headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, &cors.expose);
        if !preflight {
            return Self::Actual(headers);
        }
        put(&mut headers, header::ACCESS_CONTROL_ALLOW_METHODS, &cors.methods);
        put(&mut headers, header::ACCESS_CONTROL_ALLOW_HEADERS, &cors.headers);
        put(&mut headers, header::ACCESS_CONTROL_MAX_AGE, &cors.max_age);
        Self::Preflight(headers)
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if !value.is_empty()
        && let Ok(value) = HeaderValue::from_str(value)
    {
        headers.insert(name, value);
    }
}

/// What an answer gets takes the place of what a server says of the same.
pub(super) fn add(headers: &mut HeaderMap, own: HeaderMap) {
    for (name, value) in own {
        let Some(name) = name else { continue };
        if name == header::VARY {
            headers.append(name, value);
        } else {
            headers.insert(name, value);
        }
    }
}
