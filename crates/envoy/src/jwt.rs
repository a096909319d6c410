//! The JSON Web Token authentication filter.

use crate::{
    common::{data_source, duration, time_limit},
    reader::{Field, Message, ReadMessage},
    request_condition::{header_matchers, path_match, query_matchers},
    schema,
};
use ::http::{HeaderName, Uri};
use quadrille_config::{
    Problem,
    model::{JwtAuthentication, JwtKeys, JwtLocation, JwtProvider, JwtRequirement, JwtRule, RemoteKeys},
    quote,
    yaml::Value,
};
use std::{collections::HashMap, time::Duration};

/// Envoy's default clock skew.
const LEEWAY: Duration = Duration::from_secs(60);
const KEYS_LIFETIME: Duration = Duration::from_secs(600);
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Default used here; Envoy requires an explicit value.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads `envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication`.
pub(crate) fn jwt_authentication(field: &Field<'_>) -> Option<JwtAuthentication> {
    let message = field.message(&schema::JWT_AUTHENTICATION)?;
    let providers = entries(&message, "providers")?;
    let names: Vec<&str> = providers.iter().map(|(name, _)| *name).collect();
    let providers =
        providers.iter().map(|(name, field)| provider(name, field)).collect::<Option<Vec<_>>>()?;
    let named = entries(&message, "requirement_map")?;
    let named = named.into_iter().map(|(name, field)| Some((name, requirement(&field, &names)?)));
    let named = named.collect::<Option<HashMap<_, _>>>()?;
    let rules = message.list("rules");
    let rules = rules.iter().map(|field| rule(field, &names, &named)).collect::<Option<Vec<_>>>()?;
    Some(JwtAuthentication {
        providers,
        rules,
        bypass_preflights: message.flag("bypass_cors_preflight"),
        strip_failure_response: message.flag("strip_failure_response"),
        place: field.place(),
    })
}

/// Reads the entries of a mapping by name.
fn entries<'a>(message: &Message<'a>, name: &'static str) -> Option<Vec<(&'a str, Field<'a>)>> {
    let Some(field) = message.get(name) else { return Some(Vec::new()) };
    match &field.node().value {
        Value::Mapping(entries) => {
            Some(entries.iter().map(|entry| (entry.key.as_str(), field.child(entry))).collect())
        }
        _ => field.fail("expected a mapping by name"),
    }
}

fn provider(name: &str, field: &Field<'_>) -> Option<JwtProvider> {
    let message = field.message(&schema::JWT_PROVIDER)?;
    let texts = |name| message.list(name).iter().map(text).collect::<Option<Vec<_>>>();
    let headers = message.list("from_headers");
    let headers = headers.iter().map(|field| {
        let message = field.message(&schema::JWT_HEADER)?;
        let name = header_name(&message.require("name")?)?;
        Some(JwtLocation::Header(name.as_str().to_owned(), message.string("value_prefix")))
    });
    let mut locations = headers.collect::<Option<Vec<_>>>()?;
    locations.extend(texts("from_params")?.into_iter().map(JwtLocation::Parameter));
    locations.extend(texts("from_cookies")?.into_iter().map(JwtLocation::Cookie));
    if locations.is_empty() {
        locations = JwtProvider::default_locations();
    }
    let padded = message.flag("pad_forward_payload_header");
    let payload_header = match message.get("forward_payload_header").filter(|field| field.text() != Some(""))
    {
        Some(field) => Some((header_name(&field)?, padded)),
        None => None,
    };
    let space_delimited = match message.get("normalize_payload_in_metadata") {
        Some(field) => {
            let message = field.message(&schema::JWT_NORMALIZE)?;
            message.list("space_delimited_claims").iter().map(text).collect::<Option<_>>()?
        }
        None => Vec::new(),
    };
    let leeway = message.number("clock_skew_seconds").filter(|seconds| *seconds > 0);
    Some(JwtProvider {
        name: name.to_owned(),
        issuer: message.string("issuer"),
        audiences: texts("audiences")?,
        keys: keys(&message)?,
        locations,
        forward: message.flag("forward"),
        payload_header,
        claim_headers: message.list("claim_to_headers").iter().map(claim_header).collect::<Option<_>>()?,
        payload_metadata: message.string("payload_in_metadata"),
        header_metadata: message.string("header_in_metadata"),
        space_delimited,
        leeway: leeway.map_or(LEEWAY, |seconds| Duration::from_secs(seconds.into())),
        place: field.place(),
    })
}

fn keys(provider: &Message<'_>) -> Option<JwtKeys> {
    match provider.one_of(&["remote_jwks", "local_jwks"]) {
        Some(("remote_jwks", field)) => remote_keys(&field).map(JwtKeys::Remote),
        Some((_, field)) => data_source(&field).map(JwtKeys::Local),
        None => provider.field().fail("`local_jwks` or `remote_jwks` is missing"),
    }
}

fn remote_keys(field: &Field<'_>) -> Option<RemoteKeys> {
    let message = field.message(&schema::REMOTE_JWKS)?;
    let (upstream, uri, timeout) = http_uri(&message.require("http_uri")?.message(&schema::HTTP_URI)?)?;
    let lifetime = match message.get("cache_duration") {
        Some(field) => duration(&field)?,
        None => KEYS_LIFETIME,
    };
    let background = message.get("async_fetch");
    let retry_after = match &background {
        Some(field) => match field.message(&schema::JWKS_ASYNC_FETCH)?.get("failed_refetch_duration") {
            Some(field) => duration(&field)?,
            None => RETRY_AFTER,
        },
        None => RETRY_AFTER,
    };
    Some(RemoteKeys { upstream, uri, timeout, lifetime, retry_after, outlive: background.is_some() })
}

/// Reads the cluster of the JWKS server, the URI, and the timeout.
fn http_uri(message: &Message<'_>) -> Option<(String, Uri, Duration)> {
    let uri = message.require("uri")?.parse(|text| match text.parse::<Uri>() {
        Ok(uri) if uri.scheme().is_some() && uri.authority().is_some() => Ok(uri),
        _ => Err(Problem::new(
            format!("{} is not an absolute URI", quote(text)),
            "write `https://issuer.example/.well-known/jwks.json`",
        )),
    })?;
    let cluster = message.require("cluster")?.text()?.to_owned();
    Some((cluster, uri, time_limit(message, FETCH_TIMEOUT)?))
}

fn text(field: &Field<'_>) -> Option<String> {
    field.text().map(str::to_owned)
}

fn header_name(field: &Field<'_>) -> Option<HeaderName> {
    field.parse(|text| {
        HeaderName::try_from(text).map_err(|_| format!("{} is not a header name", quote(text)).into())
    })
}

fn claim_header(field: &Field<'_>) -> Option<(HeaderName, Vec<String>)> {
    let message = field.message(&schema::JWT_CLAIM_HEADER)?;
    let name = header_name(&message.require("header_name")?)?;
    let claim = message.require("claim_name")?.text()?.split('.').map(str::to_owned).collect();
    Some((name, claim))
}

fn rule(field: &Field<'_>, providers: &[&str], named: &HashMap<&str, JwtRequirement>) -> Option<JwtRule> {
    let message = field.message(&schema::JWT_RULE)?;
    let condition = message.require("match")?.message(&schema::ROUTE_MATCH)?;
    let needed = match message.one_of(&["requires", "requirement_name"]) {
        Some(("requires", field)) => Some(requirement(&field, providers)?),
        Some((_, field)) => match named.get(field.text()?) {
            Some(requirement) => Some(requirement.clone()),
            None => return field.fail("`requirement_map` does not contain this requirement"),
        },
        None => None,
    };
    Some(JwtRule {
        path: path_match(&condition)?,
        headers: header_matchers(&condition)?,
        query: query_matchers(&condition)?,
        requirement: needed,
    })
}

fn requirement(field: &Field<'_>, providers: &[&str]) -> Option<JwtRequirement> {
    const KINDS: &[&str] = &[
        "provider_name",
        "provider_and_audiences",
        "requires_any",
        "requires_all",
        "allow_missing_or_failed",
        "allow_missing",
    ];
    let message = field.message(&schema::JWT_REQUIREMENT)?;
    match message.one_of(KINDS) {
        Some(("provider_name", name)) => Some(JwtRequirement::Provider(known(&name, providers)?, Vec::new())),
        Some(("provider_and_audiences", both)) => {
            let both = both.message(&schema::JWT_AUDIENCES)?;
            let audiences = both.list("audiences").iter().map(text).collect::<Option<_>>()?;
            Some(JwtRequirement::Provider(known(&both.require("provider_name")?, providers)?, audiences))
        }
        Some(("requires_any", any)) => {
            let list = any.message(&schema::JWT_ANY)?;
            requirements(&list, providers).map(JwtRequirement::Any)
        }
        Some(("requires_all", all)) => {
            let list = all.message(&schema::JWT_ALL)?;
            requirements(&list, providers).map(JwtRequirement::All)
        }
        Some(("allow_missing_or_failed", _)) => Some(JwtRequirement::AllowMissingOrFailed),
        Some(_) => Some(JwtRequirement::AllowMissing),
        None => field.fail(Problem::new("no field is set", "write `provider_name`")),
    }
}

fn requirements(list: &Message<'_>, providers: &[&str]) -> Option<Vec<JwtRequirement>> {
    let items = list.list("requirements");
    if items.is_empty() {
        return list.field().fail("`requirements` is empty");
    }
    items.iter().map(|item| requirement(item, providers)).collect()
}

fn known(field: &Field<'_>, providers: &[&str]) -> Option<usize> {
    let name = field.text()?;
    match providers.iter().position(|known| *known == name) {
        Some(index) => Some(index),
        None => field.fail(format!("unknown provider {}", quote(name))),
    }
}
