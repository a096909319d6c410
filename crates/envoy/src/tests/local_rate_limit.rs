//! Local rate limits: translation of the filter and of per-route settings, and refused settings.

use super::{gateway, only_chain, problems, warnings, with_route_config};
use quadrille_config::{
    fraction,
    model::{
        AccessStep, HeaderChange, HostDescriptors, Http, Rate, RateLimit, RateLimitAnswer, RateLimitBy,
        RateLimitReply, RateLimited, RouteRateLimits, Serve,
    },
};
use std::{num::NonZeroU32, time::Duration};

const KIND: &str = "\"@type\": a/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
const ALWAYS: &str = "filter_enabled: { default_value: { numerator: 100 } }, filter_enforced: { default_value: { numerator: 100 } }";
const BUCKET: &str = "token_bucket: { max_tokens: 10, tokens_per_fill: 5, fill_interval: 60s }";

/// Returns a listener with this filter, whose virtual host and only route have these settings.
fn text(filter: &str, host: &str, route: &str) -> String {
    let routes = format!(
        "virtual_hosts: [ {{ name: h, domains: [ \"*\" ], typed_per_filter_config: {{ {host} }}, routes: [ {{ match: {{ \
         prefix: /a }}, typed_per_filter_config: {{ {route} }}, direct_response: {{ status: 200 }} }}, {{ match: {{ prefix: / \
         }}, direct_response: {{ status: 200 }} }} ] }} ]"
    );
    with_route_config(&routes)
        + &format!(
            "          http_filters:
          - {{ name: envoy.filters.http.local_ratelimit, {filter} }}
          - name: envoy.filters.http.router
            typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
"
        )
}

fn with_filter(settings: &str) -> String {
    text(&format!("typed_config: {{ {KIND}, stat_prefix: s, {settings} }}"), "", "")
}

fn http(text: &str) -> Http {
    let gateway = gateway(text);
    let Serve::Http(http) = &only_chain(&gateway).serve else { panic!("no HTTP") };
    http.clone()
}

/// Returns the limits of the filter, and of both routes.
fn limits(text: &str) -> (Vec<RateLimit>, [RouteRateLimits; 2]) {
    let http = http(text);
    let [AccessStep::RateLimits(limits)] = &http.access[..] else { panic!("{:?}", http.access) };
    let [one, other] = &http.routes.hosts[0].routes[..] else { panic!("not two routes") };
    (limits.clone(), [one.rate_limits.clone(), other.rate_limits.clone()])
}

#[test]
fn a_bucket_becomes_a_limit() {
    let settings = format!(
        "{BUCKET}, {ALWAYS}, status: {{ code: 503 }}, response_headers_to_add: [ {{ header: {{ key: x-a, value: b }} }} ]"
    );
    let (found, routes) = limits(&with_filter(&settings));
    let [limit] = &found[..] else { panic!("{found:?}") };
    let number = |number| NonZeroU32::new(number).expect("a number");
    assert_eq!(limit.rate, Rate { requests: number(5), per: Duration::from_secs(60) });
    assert_eq!((limit.burst, &limit.by, &*limit.name), (number(10), &RateLimitBy::All, "s"));
    assert_eq!((limit.counted, limit.enforced), (fraction::ALL, fraction::ALL));
    assert!(
        matches!(&limit.answer, RateLimitAnswer::Envoy(RateLimitReply { status: 503, headers, .. }) if matches!(&headers[..], [HeaderChange::Append(name, _)] if name == "x-a"))
    );
    assert_eq!(routes, [RouteRateLimits::default(), RouteRateLimits::default()]);
    let found =
        limits(&with_filter(&format!("token_bucket: {{ max_tokens: 1, fill_interval: 1s }}, {ALWAYS}"))).0;
    assert_eq!(
        (found[0].rate.requests, found[0].answer.clone()),
        (
            NonZeroU32::MIN,
            RateLimitAnswer::Envoy(RateLimitReply {
                status: 429,
                headers: vec![],
                resource_exhausted: false
            })
        )
    );
}

#[test]
fn shares_say_what_counts_and_what_is_refused() {
    let shares = |enabled: &str, enforced: &str| {
        let share = |text: &str| format!("{{ default_value: {{ {text} }}, runtime_key: k }}");
        with_filter(&format!(
            "{BUCKET}, filter_enabled: {}, filter_enforced: {}",
            share(enabled),
            share(enforced)
        ))
    };
    let found = limits(&shares("numerator: 50", "numerator: 1, denominator: TEN_THOUSAND")).0;
    assert_eq!((found[0].counted, found[0].enforced), (500_000, 100));
    let only_counted = shares("numerator: 100", "numerator: 0");
    assert_eq!(limits(&only_counted).0[0].enforced, 0);
    assert!(warnings(&only_counted)[0].contains("only counts"));
    for off in [shares("numerator: 0", "numerator: 100"), with_filter(BUCKET)] {
        assert_eq!(limits(&off).0, []);
        assert!(warnings(&off)[0].contains("no effect: `filter_enabled`"));
    }
    assert_eq!(limits(&with_filter(ALWAYS)).0, [], "there is no bucket");
}

#[test]
fn what_a_route_says_takes_the_place_of_the_filters() {
    let filter = format!("typed_config: {{ {KIND}, stat_prefix: s, {BUCKET}, {ALWAYS} }}");
    let own = |name: &str| format!("{KIND}, stat_prefix: {name}, {BUCKET}, {ALWAYS}");
    let of = |limits: &RouteRateLimits| match limits {
        RouteRateLimits::InPlace(limits) => limits.iter().map(|limit| limit.name.clone()).collect::<Vec<_>>(),
        RouteRateLimits::Besides(_) => panic!("no limits are set"),
    };
    let wrapper = "\"@type\": a/envoy.config.route.v3.FilterConfig";
    for (route, expected) in [
        (own("route"), vec!["route".to_owned()]),
        (format!("{wrapper}, config: {{ {} }}", own("wrapped")), vec!["wrapped".to_owned()]),
        (format!("{wrapper}, disabled: true, config: {{ {} }}", own("wrapped")), vec![]),
        (format!("{wrapper}, disabled: true"), vec![]),
    ] {
        let name = "envoy.filters.http.local_ratelimit";
        let text = text(&filter, &format!("l: {{ {} }}", own("host")), &format!("{name}: {{ {route} }}"));
        let (filters, [one, other]) = limits(&text);
        assert_eq!((of(&one), of(&other), filters.len()), (expected, vec!["host".to_owned()], 1), "{route}");
    }
    // A virtual host's bucket is shared by its routes; each route has its own.
    let (_, [one, other]) = limits(&text(&filter, &format!("l: {{ {} }}", own("host")), ""));
    assert_eq!(one, other);
    let off = format!("disabled: true, typed_config: {{ {KIND}, stat_prefix: s, {BUCKET}, {ALWAYS} }}");
    let (filters, [one, _]) = limits(&text(&off, "", &format!("l: {{ {} }}", own("route"))));
    assert_eq!((filters.len(), of(&one).len()), (0, 1), "a route enables a disabled filter");
}

/// Returns every field of descriptors.
pub(super) fn all() -> String {
    with_filter(&format!(
        "{BUCKET}, {ALWAYS}, stage: 1, vh_rate_limits: INCLUDE, always_consume_default_token_bucket: false, \
         max_dynamic_descriptors: 7, rate_limited_as_resource_exhausted: true, rate_limits: [ {{ actions: [ {{ remote_address: \
         {{}} }} ] }} ], descriptors: [ {{ entries: [ {{ key: a, value: b }} ], token_bucket: {{ max_tokens: 1, fill_interval: \
         1s }}, shadow_mode: true }}, {{ entries: [ {{ key: a }} ], token_bucket: {{ max_tokens: 1, fill_interval: 9s }} }} ]"
    ))
}

#[test]
fn descriptors_have_buckets_of_their_own() {
    let (found, _) = limits(&all());
    let [slow, fast, default] = &found[..] else { panic!("{found:?}") };
    let of = |limit: &RateLimit| match &limit.of {
        RateLimited::Described(requests) => requests.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(slow).entries, [("a".to_owned(), None)], "the slowest is checked first");
    assert_eq!((&slow.by, slow.keys.get(), slow.enforced), (&RateLimitBy::Values, 7, fraction::ALL));
    assert_eq!(of(fast).entries, [("a".to_owned(), Some("b".to_owned()))]);
    assert_eq!((&fast.by, fast.enforced), (&RateLimitBy::All, 0), "in shadow mode it only counts");
    let made = &of(fast).made;
    assert_eq!((made.own.len(), made.stage, made.host), (1, 1, HostDescriptors::Always));
    assert_eq!(default.of, RateLimited::Others);
    let always = with_filter(&format!("{BUCKET}, {ALWAYS}"));
    assert_eq!(limits(&always).0[0].of, RateLimited::All);
}

#[test]
fn what_cannot_be_served_is_refused() {
    for (settings, said) in [
        ("local_rate_limit_per_downstream_connection: true".to_owned(), "buckets apply to all connections"),
        ("rate_limits: [ {} ]".to_owned(), "`actions` is missing"),
        (
            "rate_limits: [ { actions: [ { remote_address: {} } ], hits_addend: { number: 2 } } ]".to_owned(),
            "each request uses one token here",
        ),
        ("descriptors: [ { entries: [ { key: a, value: b } ] } ]".to_owned(), "`token_bucket` is missing"),
        (format!("descriptors: [ {{ {BUCKET} }} ]"), "`entries` is missing"),
        (format!("descriptors: [ {{ entries: [ {{ value: b }} ], {BUCKET} }} ]"), "`key` is missing"),
        ("stage: 11".to_owned(), "write 0 to 10"),
        ("moon: full".to_owned(), "Quadrille does not know this field"),
        (format!("{ALWAYS}, token_bucket: {{ fill_interval: 1s }}"), "`max_tokens` is missing"),
        (format!("{ALWAYS}, token_bucket: {{ max_tokens: 1 }}"), "`fill_interval` is missing"),
        (format!("{ALWAYS}, token_bucket: {{ max_tokens: 0, fill_interval: 1s }}"), "bucket requires tokens"),
        (format!("{ALWAYS}, token_bucket: {{ max_tokens: 1, fill_interval: 0.01s }}"), "interval is 50 ms"),
        (
            format!("{ALWAYS}, token_bucket: {{ max_tokens: 4294967295, fill_interval: 60s }}"),
            "more than a year for all",
        ),
        ("status: { code: Continue }".to_owned(), "is not supported here"),
        ("response_headers_to_add: [ { header: { key: a, value: '%MOON%' } } ]".to_owned(), "not supported"),
    ] {
        let found = problems(&with_filter(&settings));
        assert!(found.contains(said), "{settings}: {found}");
    }
    let filter = format!("typed_config: {{ {KIND}, stat_prefix: s }}");
    let twice = text(&format!("{filter} }}\n          - {{ name: b, {filter}"), "", "");
    assert!(problems(&twice).contains("there is another filter of this type"));
    let cluster = with_route_config(&format!(
        "virtual_hosts: [ {{ name: h, domains: [ \"*\" ], routes: [ {{ match: {{ prefix: / }}, route: {{ weighted_clusters: {{ \
         clusters: [ {{ name: a, weight: 1, typed_per_filter_config: {{ l: {{ {KIND}, stat_prefix: s, {BUCKET}, {ALWAYS} }} }} }} \
         ] }} }} }} ] }} ]"
    ));
    assert!(problems(&cluster).contains("a limit applies to all clusters of a route"));
}
