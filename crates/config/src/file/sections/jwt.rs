//! JSON Web Tokens that requests need.

use crate::{
    Field, Problem,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list, source, text, time},
    },
    model::{
        JwtAuthentication, JwtKeys, JwtLocation, JwtProvider, JwtRequirement, JwtRule, PathMatch, RemoteKeys,
        RouteJwt, Source,
    },
    quote, values,
};
use http::{HeaderName, Uri};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};

pub(super) const JWT: Section<JwtDraft, JwtAuthentication> = Section {
    path: "listeners[].jwt",
    about: "A JSON Web Token (RFC 7519) that requests need, in `Authorization: Bearer`, with a signature of one issuer. \
            Other requests receive 401, and 403 if the token is for another audience.",
    keys: &[
        Key::new(
            "issuer",
            "text",
            Preset::Means("any"),
            "The `iss` claim of accepted tokens.",
            |field, draft| draft.issuer = field.text().unwrap_or_default().to_owned(),
            |jwt| provider(jwt).map(|one| text(&one.issuer)).into(),
        ),
        Key::new(
            "audiences",
            "list of texts",
            Preset::Means("any"),
            "The accepted values of the `aud` claim. List them: a token for another service is valid otherwise.",
            |field, draft| draft.audiences = texts(field),
            |jwt| {
                list(
                    provider(jwt).into_iter().flat_map(|one| &one.audiences).map(|text| text.as_str().into()),
                )
            },
        ),
        Key::new(
            "keys",
            "path, or the JSON itself",
            Preset::Means("`keys_url`"),
            "The issuer's public keys, a JSON Web Key Set (RFC 7517). A changed file takes effect at once.",
            |field, draft| draft.keys = keys(field),
            |jwt| provider(jwt).and_then(|one| one.keys.local()).map(source).into(),
        ),
        Key::new(
            "keys_url",
            "URL",
            Preset::Means("`keys`"),
            "The URL of the keys, fetched from the servers of `upstream` when a token first needs them, and again after \
                    10 minutes.",
            |field, draft| draft.url = field.parse(url),
            |jwt| remote(jwt).map(|remote| remote.uri.to_string()).into(),
        ),
        Key::new(
            "upstream",
            "name of an upstream",
            Preset::Means("none"),
            "The upstream of the servers of `keys_url`.",
            |field, draft| draft.upstream = field.upstream_name(),
            |jwt| remote(jwt).map(|remote| remote.upstream.as_str()).into(),
        ),
        Key::new(
            "cookie",
            "name of a cookie",
            Preset::Means("none"),
            "A cookie that may carry the token, too.",
            |field, draft| draft.cookie = field.text().map(str::to_owned),
            |jwt| provider(jwt).and_then(cookie).into(),
        ),
        Key::new(
            "required",
            "`on` or `off`",
            Preset::Is("on"),
            "Whether requests without a token are refused. With `off`, only invalid tokens are.",
            |field, draft| draft.optional = field.parse(switch) == Some(false),
            |jwt| is_required(jwt).into(),
        ),
        Key::new(
            "forward",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether servers receive the token.",
            |field, draft| field.set(&mut draft.forward, switch),
            |jwt| if_true(provider(jwt).is_some_and(|one| one.forward)),
        ),
        Key::new(
            "claim_headers",
            "mapping of headers to claims",
            Preset::Means("none"),
            "Headers that carry claims to servers: `{X-User: sub}`. Values from clients are removed from all requests of \
                    the listener. A dot separates the names of nested claims.",
            |field, draft| draft.claims = claims(field),
            |jwt| show_claims(provider(jwt)),
        ),
        Key::new(
            "leeway",
            "duration",
            Preset::Is("1m"),
            "Maximum clock difference between the issuer and the gateway.",
            |field, draft| draft.leeway = field.parse(values::duration),
            |jwt| provider(jwt).map(|one| time(one.leeway)).into(),
        ),
    ],
};

/// Values read for tokens.
#[derive(Default)]
pub(super) struct JwtDraft {
    issuer: String,
    audiences: Vec<String>,
    keys: Option<Source>,
    url: Option<Uri>,
    upstream: Option<String>,
    cookie: Option<String>,
    optional: bool,
    forward: bool,
    claims: Vec<(HeaderName, Vec<String>)>,
    leeway: Option<Duration>,
}

/// Reads the tokens that requests need, or `off`.
pub(super) fn jwt(field: &Field<'_>) -> RouteJwt {
    if field.is_scalar() && field.text().is_some_and(|text| matches!(switch(text), Ok(false))) {
        return RouteJwt::Off;
    }
    tokens(field).map_or(RouteJwt::Off, |tokens| RouteJwt::InPlace(Arc::new(tokens)))
}

fn tokens(field: &Field<'_>) -> Option<JwtAuthentication> {
    let mut draft = JwtDraft::default();
    JWT.read(field, &mut draft)?;
    let keys = match (field.entry("keys"), field.entry("keys_url")) {
        (None, None) => field.fail(Problem::new("no keys verify the tokens", "add `keys` or `keys_url`"))?,
        (Some(_), Some(url)) => url.fail(Problem::new("`keys` is given too", "remove one"))?,
        (Some(_), None) => JwtKeys::Local(draft.keys?),
        (None, Some(_)) => JwtKeys::Remote(remote_keys(field, draft.url?, draft.upstream.take())?),
    };
    if let (JwtKeys::Local(_), Some(upstream)) = (&keys, field.entry("upstream")) {
        upstream.error(Problem::new("`keys` are not fetched", "remove this, or use `keys_url`"));
    }
    let JwtDraft { issuer, audiences, cookie, optional, forward, claims, leeway, .. } = draft;
    let mut locations = vec![JwtLocation::Header("authorization".into(), "Bearer ".into())];
    locations.extend(cookie.map(JwtLocation::Cookie));
    let provider = JwtProvider {
        name: "jwt".to_owned(),
        issuer,
        audiences,
        keys,
        locations,
        forward,
        payload_header: None,
        claim_headers: claims,
        payload_metadata: String::new(),
        header_metadata: String::new(),
        space_delimited: Vec::new(),
        leeway: leeway.unwrap_or(Duration::from_secs(60)),
        place: field.place(),
    };
    let requirement = match optional {
        true => JwtRequirement::AllowMissing,
        false => JwtRequirement::Provider(0, Vec::new()),
    };
    let rule = JwtRule {
        path: PathMatch::any(),
        headers: Vec::new(),
        query: Vec::new(),
        requirement: Some(requirement),
    };
    Some(JwtAuthentication {
        providers: vec![provider],
        rules: vec![rule],
        bypass_preflights: true,
        strip_failure_response: false,
        place: field.place(),
    })
}

fn remote_keys(field: &Field<'_>, uri: Uri, upstream: Option<String>) -> Option<RemoteKeys> {
    if field.entry("upstream").is_none() {
        return field.fail(Problem::new("`upstream` is missing", "name the upstream of `keys_url`"));
    }
    Some(RemoteKeys {
        upstream: upstream?,
        uri,
        timeout: Duration::from_secs(5),
        lifetime: Duration::from_secs(600),
        retry_after: Duration::from_secs(1),
        outlive: true,
    })
}

pub(super) fn show(jwt: &RouteJwt) -> Value {
    match jwt {
        RouteJwt::OfChain => Value::Null,
        RouteJwt::Off => "off".into(),
        RouteJwt::InPlace(tokens) => JWT.show(tokens),
    }
}

/// Reads the path of a file, or its JSON.
fn keys(field: &Field<'_>) -> Option<Source> {
    let text = field.text()?;
    if text.trim_start().starts_with('{') { Some(Source::inline(text)) } else { field.file_source() }
}

fn url(text: &str) -> Result<Uri, Problem> {
    let uri = text.parse::<Uri>().ok().filter(|uri| uri.host().is_some() && uri.scheme().is_some());
    uri.ok_or_else(|| {
        Problem::new(format!("{} is not a URL", quote(text)), "write `https://`, a host and a path")
    })
}

fn texts(field: &Field<'_>) -> Vec<String> {
    field.items().iter().filter_map(|field| field.text().map(str::to_owned)).collect()
}

fn claims(field: &Field<'_>) -> Vec<(HeaderName, Vec<String>)> {
    let claim = |(name, field): (&str, Field<'_>)| {
        let name = values::header_name(name).map_err(|problem| field.error(problem)).ok()?;
        Some((name, field.text()?.split('.').map(str::to_owned).collect()))
    };
    field.entries().into_iter().filter_map(claim).collect()
}

fn show_claims(provider: Option<&JwtProvider>) -> Value {
    let claims = provider.map(|one| &one.claim_headers[..]).unwrap_or_default();
    let claims: Map<_, _> =
        claims.iter().map(|(name, claim)| (name.to_string(), claim.join(".").into())).collect();
    if claims.is_empty() { Value::Null } else { claims.into() }
}

fn provider(jwt: &JwtAuthentication) -> Option<&JwtProvider> {
    jwt.providers.first()
}

fn remote(jwt: &JwtAuthentication) -> Option<&RemoteKeys> {
    provider(jwt)?.keys.remote()
}

fn cookie(provider: &JwtProvider) -> Option<&str> {
    provider.locations.iter().find_map(|location| match location {
        JwtLocation::Cookie(name) => Some(name.as_str()),
        _ => None,
    })
}

fn is_required(jwt: &JwtAuthentication) -> bool {
    let requirement = jwt.rules.first().and_then(|rule| rule.requirement.as_ref());
    requirement != Some(&JwtRequirement::AllowMissing)
}
