//! Cross-origin requests (CORS protocol, Fetch standard, section 3.3).

use crate::http::request::Request;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use quadrille_config::model::{Cors, Route};

/// Classification of a request with regard to CORS.
pub(crate) enum CrossOrigin {
    /// A preflight request; the response has these headers.
    Preflight(HeaderMap),
    /// An actual request; these headers are added to its response.
    Actual(HeaderMap),
}

impl CrossOrigin {
    /// Classifies a request under this policy. A request without an origin, or from a denied one, only gets `Vary`.
    pub(crate) fn of(request: &Request, cors: &Cors) -> Self {
        // Caches must not serve the response to pages of other origins, nor a response without CORS headers to
        // allowed ones.
        let mut headers = HeaderMap::with_capacity(6);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = request.headers.get(header::ORIGIN) else { return Self::Actual(headers) };
        let preflight = is_preflight(request);
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

/// Returns whether it is a preflight request (Fetch standard, section 3.3.2).
pub(crate) fn is_preflight(request: &Request) -> bool {
    let names_method = |headers: &HeaderMap| {
        headers.get(header::ACCESS_CONTROL_REQUEST_METHOD).is_some_and(|value| !value.is_empty())
    };
    request.method == Method::OPTIONS
        && request.headers.contains_key(header::ORIGIN)
        && names_method(&request.headers)
}

/// Returns whether the gateway itself responds to all preflight requests of a route, which need no credentials.
pub(crate) fn responds_to_preflights(route: &Route) -> bool {
    route.cors.as_ref().is_some_and(|cors| !cors.forward_other_preflights)
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if !value.is_empty()
        && let Ok(value) = HeaderValue::from_str(value)
    {
        headers.insert(name, value);
    }
}

/// Adds the CORS headers to a response, in place of the upstream's.
pub(crate) fn add(headers: &mut HeaderMap, own: HeaderMap) {
    for (name, value) in own {
        let Some(name) = name else { continue };
        if name == header::VARY {
            headers.append(name, value);
        } else {
            headers.insert(name, value);
        }
    }
}
