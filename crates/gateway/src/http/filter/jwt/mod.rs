//! JSON Web Token authentication, with the responses of Envoy's filter.
//!
//! Stricter than Envoy in two ways: `allow_missing` never accepts a request in which one of several tokens is
//! invalid, and the headers that carry claims to upstreams are removed from every client request.

mod fetched_keys;
mod keys;
mod locations;
mod of_routes;
mod status;
mod token;

pub(crate) use fetched_keys::KeyFetchers;
pub(crate) use of_routes::OfRoutes;
pub(crate) use status::Problem;

use crate::{
    connection::Connection,
    http::{
        error::refusal::Refusal,
        filter::call::Call,
        request::{Request, header_spelling},
    },
    upstream::{ConnectionPool, Upstream, Upstreams},
};
use base64ct::{Base64, Encoding};
use bytes::Bytes;
use fetched_keys::FetchedKeys;
use http::{HeaderName, HeaderValue, Method, header};
use keys::KeySet;
use locations::{Found, Locations, MOST_TOKENS};
use quadrille_config::{
    Diagnostic,
    model::{JwtAuthentication, JwtKeys, JwtProvider, JwtRequirement, Source},
};
use serde_json::{Map, Value};
use std::sync::Arc;
use token::Token;

/// Metadata namespace under which conditions find claims.
const STEP: &str = "envoy.filters.http.jwt_authn";

/// Token requirements of requests, with the keys that verify the tokens.
pub(crate) struct Authentication {
    model: Arc<JwtAuthentication>,
    /// Keys, by provider index.
    keys: Vec<Keys>,
    /// Token locations of each provider.
    own: Vec<Locations>,
    /// Token locations of all providers.
    all: Locations,
}

/// The keys of a provider.
enum Keys {
    AtHand(KeySet),
    /// `None` while the upstream does not exist.
    Fetched(Arc<FetchedKeys>, Option<Arc<Upstream>>),
}

/// Failures that a requirement tolerates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leniency {
    None,
    Missing,
    MissingOrFailed,
}

impl Authentication {
    /// Reads the keys of all providers.
    ///
    /// # Errors
    /// Names a provider whose keys cannot be read. All tokens of a provider without a usable key are rejected.
    pub(crate) fn new(
        model: &Arc<JwtAuthentication>,
        upstreams: &Upstreams,
        fetchers: &KeyFetchers,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Diagnostic> {
        let keys = model.providers.iter().map(|provider| match &provider.keys {
            JwtKeys::Local(source) => keys_at_hand(provider, source, warnings).map(Keys::AtHand),
            JwtKeys::Remote(remote) => {
                Ok(Keys::Fetched(fetchers.of(remote), upstreams.get(&remote.upstream).cloned()))
            }
        });
        let keys = keys.collect::<Result<_, _>>()?;
        let locations = || model.providers.iter().map(|provider| &provider.locations[..]).enumerate();
        let own = locations().map(|one| Locations::of([one].into_iter())).collect();
        Ok(Self { keys, own, all: Locations::of(locations()), model: Arc::clone(model) })
    }

    /// Checks that a request has the required tokens, and adds their claims to it.
    ///
    /// # Errors
    /// Returns a refusal with the challenge of RFC 6750.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        if !self.is_prepared() {
            Box::pin(self.prepare(call.request(), call.connection, call.pool)).await;
        }
        let (tls, now) = (call.connection.tls, quadrille_unix_time::since_epoch().as_secs());
        self.authenticate(call.request_mut(), tls, now).map_err(|problem| {
            let status = if problem == Problem::AudienceNotAllowed { 403 } else { 401 };
            let body = if self.discloses() { problem.text().as_bytes() } else { b"" };
            let challenge = self.challenge(call.request(), tls, problem);
            let headers =
                challenge.map(|challenge| (header::WWW_AUTHENTICATE, challenge)).into_iter().collect();
            let refusal = Refusal::own(problem.text(), status, Bytes::from_static(body));
            refusal.counted_as("token").with_headers(headers)
        })
    }

    /// Returns whether all keys are local, or fetched and fresh: then [`prepare`](Self::prepare) is not needed.
    fn is_prepared(&self) -> bool {
        self.keys.iter().all(|keys| match keys {
            Keys::AtHand(_) => true,
            Keys::Fetched(keys, _) => keys.is_fresh(),
        })
    }

    /// Fetches the remote keys that the request's tokens may need.
    async fn prepare(&self, request: &Request, connection: &Arc<Connection>, pool: &Arc<ConnectionPool>) {
        for found in self.all.find(request).iter().take(MOST_TOKENS) {
            let Ok(token) = Token::parse(&found.text) else { continue };
            let Some(index) = self.provider_of(found, &token) else { continue };
            if let Keys::Fetched(keys, upstream) = &self.keys[index] {
                keys.prepare(upstream.as_ref(), connection, pool).await;
            }
        }
    }

    /// Checks that a request has the required tokens at this time, in seconds since 1970, and adds their claims to
    /// it.
    ///
    /// # Errors
    /// Returns the problem with the tokens.
    fn authenticate(&self, request: &mut Request, tls: bool, now: u64) -> Result<(), Problem> {
        for provider in &self.model.providers {
            let payload = provider.payload_header.iter().map(|(name, _)| name);
            for name in payload.chain(provider.claim_headers.iter().map(|(name, _)| name)) {
                header_spelling::remove(&mut request.headers, name);
                request.owned_headers.push(name.clone());
            }
        }
        if self.model.bypass_preflights && is_preflight(request) {
            return Ok(());
        }
        let view = request.view(tls);
        let mut rules = self.model.rules.iter();
        let rule = rules.find(|rule| view.matches(&rule.path, &rule.headers, &rule.query));
        match rule.and_then(|rule| rule.requirement.as_ref()) {
            Some(requirement) => self.meets(requirement, request, now),
            None => Ok(()),
        }
    }

    /// Returns the challenge of RFC 6750 section 3, unless failures are not disclosed.
    fn challenge(&self, request: &Request, tls: bool, problem: Problem) -> Option<HeaderValue> {
        /// Maximum length of the path in the challenge, in bytes, as in Envoy.
        const SHOWN: usize = 256;
        if self.model.strip_failure_response {
            return None;
        }
        let scheme = if tls { "https" } else { "http" };
        let path = request.uri.path_and_query().map_or("", |path| path.as_str()).as_bytes();
        let path = &path[..path.len().min(SHOWN)];
        let error: &[u8] = if problem == Problem::Missing { b"\"" } else { b"\", error=\"invalid_token\"" };
        let parts = [b"Bearer realm=\"", scheme.as_bytes(), b"://", request.host().as_bytes(), path, error];
        HeaderValue::from_bytes(&parts.concat()).ok()
    }

    /// Returns whether the problem is disclosed to clients.
    fn discloses(&self) -> bool {
        !self.model.strip_failure_response
    }

    fn meets(&self, requirement: &JwtRequirement, request: &mut Request, now: u64) -> Result<(), Problem> {
        match requirement {
            JwtRequirement::Provider(provider, audiences) => {
                self.verify(&self.own[*provider], audiences, Leniency::None, request, now)
            }
            JwtRequirement::AllowMissing => self.verify(&self.all, &[], Leniency::Missing, request, now),
            JwtRequirement::AllowMissingOrFailed => {
                self.verify(&self.all, &[], Leniency::MissingOrFailed, request, now)
            }
            JwtRequirement::All(all) => all.iter().try_for_each(|one| self.meets(one, request, now)),
            JwtRequirement::Any(any) => self.meets_one(any, request, now),
        }
    }

    /// Evaluates alternatives. `AllowMissing` refers to the tokens that the other alternatives require.
    fn meets_one(&self, any: &[JwtRequirement], request: &mut Request, now: u64) -> Result<(), Problem> {
        let allows = |leniency| any.contains(&leniency);
        let (missing, failed) =
            (allows(JwtRequirement::AllowMissing), allows(JwtRequirement::AllowMissingOrFailed));
        let is_regular = |one: &&JwtRequirement| {
            !matches!(one, JwtRequirement::AllowMissing | JwtRequirement::AllowMissingOrFailed)
        };
        if any.iter().filter(is_regular).count() == 0 {
            return match (failed, missing) {
                (true, _) => self.meets(&JwtRequirement::AllowMissingOrFailed, request, now),
                (false, true) => self.meets(&JwtRequirement::AllowMissing, request, now),
                (false, false) => Err(Problem::Missing),
            };
        }
        let mut found = Problem::Missing;
        for one in any.iter().filter(is_regular) {
            match self.meets(one, request, now) {
                Ok(()) => return Ok(()),
                // A problem with a token is more informative than a missing token.
                Err(problem) => {
                    let is_telling = !matches!(problem, Problem::Missing | Problem::UnknownIssuer);
                    if is_telling || found == Problem::Missing {
                        found = problem;
                    }
                }
            }
        }
        if failed || missing && found == Problem::Missing { Ok(()) } else { Err(found) }
    }

    /// Verifies all tokens. Each must be valid: an upstream may use another one than the verified one.
    fn verify(
        &self,
        locations: &Locations,
        audiences: &[String],
        leniency: Leniency,
        request: &mut Request,
        now: u64,
    ) -> Result<(), Problem> {
        let found = locations.find(request);
        let forgiven = |problem| match leniency {
            Leniency::MissingOrFailed => Ok(()),
            Leniency::Missing if problem == Problem::Missing => Ok(()),
            _ => Err(problem),
        };
        if found.is_empty() {
            return forgiven(Problem::Missing);
        }
        if found.len() > MOST_TOKENS {
            return forgiven(Problem::MultipleTokens);
        }
        found.iter().rev().try_for_each(|token| self.take(token, audiences, request, now).or_else(forgiven))
    }

    /// Returns the provider of a token: one with the token's issuer, or else one without a configured issuer.
    fn provider_of(&self, found: &Found, token: &Token<'_>) -> Option<usize> {
        let issued = |issuer: &str| {
            found.providers.iter().find(|provider| self.model.providers[**provider].issuer == issuer)
        };
        issued(&token.issuer).or_else(|| issued("")).copied()
    }

    /// Verifies a token and adds its claims to the request.
    fn take(
        &self,
        found: &Found,
        audiences: &[String],
        request: &mut Request,
        now: u64,
    ) -> Result<(), Problem> {
        let token = Token::parse(&found.text)?;
        let index = self.provider_of(found, &token).ok_or(Problem::UnknownIssuer)?;
        let provider = &self.model.providers[index];
        token.check_time(now, provider.leeway.as_secs())?;
        let wanted = if audiences.is_empty() { &provider.audiences } else { audiences };
        if !token.is_for(wanted) {
            return Err(Problem::AudienceNotAllowed);
        }
        match &self.keys[index] {
            Keys::AtHand(keys) => keys.verify(&token)?,
            Keys::Fetched(keys, _) => keys.verify(&token)?,
        }
        tell(provider, &token, request);
        if !provider.forward {
            found.remove(request);
        }
        Ok(())
    }
}

fn keys_at_hand(
    provider: &JwtProvider,
    source: &Source,
    warnings: &mut Vec<String>,
) -> Result<KeySet, Diagnostic> {
    let text = source.read().map_err(|error| {
        let what = format!("cannot read the keys of `{}`, {source}: {error}", provider.name);
        Diagnostic::new(&provider.place, what)
    })?;
    Ok(KeySet::parse(&text).unwrap_or_else(|problem| {
        warnings.push(format!("{}: tokens of `{}` are rejected: {problem}", provider.place, provider.name));
        KeySet::default()
    }))
}

/// Adds the claims of a token to the request, for the upstream and later steps.
fn tell(provider: &JwtProvider, token: &Token<'_>, request: &mut Request) {
    let mut add = |name: &HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            request.headers.append(name, value);
        }
    };
    if let Some((name, padded)) = &provider.payload_header {
        let padding = if *padded { (4 - token.encoded_payload.len() % 4) % 4 } else { 0 };
        add(name, format!("{}{}", token.encoded_payload, "=".repeat(padding)));
    }
    for (name, claim) in &provider.claim_headers {
        if let Some(text) = claim_text(&token.payload, claim) {
            add(name, text);
        }
    }
    if !provider.header_metadata.is_empty() {
        request.metadata.set(STEP, &provider.header_metadata, Value::Object(token.header.clone()));
    }
    if !provider.payload_metadata.is_empty() {
        let payload = normalized(token.payload.clone(), &provider.space_delimited);
        request.metadata.set(STEP, &provider.payload_metadata, Value::Object(payload));
    }
}

/// Formats a claim as Envoy does: a string, number or boolean as text, a list or object as JSON in base64. Returns
/// `None` if the claim is absent or empty.
fn claim_text(payload: &Map<String, Value>, claim: &[String]) -> Option<String> {
    let (last, objects) = claim.split_last()?;
    let inner = objects.iter().try_fold(payload, |object, name| object.get(name)?.as_object())?;
    match inner.get(last)? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number_text(number)),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null => None,
        value => Some(Base64::encode_string(value.to_string().as_bytes())),
    }
}

/// Formats a number as Envoy does, which treats all numbers as 64-bit floating point.
fn number_text(number: &serde_json::Number) -> String {
    let value = number.as_f64().unwrap_or_default();
    match number.as_u64() {
        Some(whole) if whole < 1 << 53 => whole.to_string(),
        _ if value >= 0.0 && value.fract() == 0.0 && value < 18_446_744_073_709_551_616.0 => {
            (value as u64).to_string()
        }
        _ => format!("{value:.6}"),
    }
}

fn normalized(mut payload: Map<String, Value>, space_delimited: &[String]) -> Map<String, Value> {
    for name in space_delimited {
        if let Some(Value::String(text)) = payload.get(name) {
            let words: Vec<Value> =
                text.split(' ').filter(|word| !word.is_empty()).map(Value::from).collect();
            payload.insert(name.clone(), Value::Array(words));
        }
    }
    payload
}

/// Returns whether the request is a preflight (Fetch standard, section 3.3.2). Preflights carry no tokens.
fn is_preflight(request: &Request) -> bool {
    let says = |name: HeaderName| request.headers.get(name).is_some_and(|value| !value.is_empty());
    request.method == Method::OPTIONS && says(header::ORIGIN) && says(header::ACCESS_CONTROL_REQUEST_METHOD)
}

#[cfg(test)]
mod tests;
