//! Routes that cannot be served are closed, and do not keep others from being served.

use super::*;

fn status(driven: &Driven, path: &str) -> Option<u16> {
    let mut client = Connector::new(&driven.certificates).http(driven.address()).ok()?;
    Some(client.get(path).ok()?.status)
}

fn open(condition: Value) -> Value {
    json!({ "match": condition, "direct_response": { "status": 200, "body": { "inline_string": "open" } } })
}

/// Returns the routes of several teams, of which only the first and the last can be served.
fn routes() -> Vec<Value> {
    let rbac =
        json!({ "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "is_optional": true });
    let mut guarded = open(json!({ "prefix": "/guarded" }));
    guarded["typed_per_filter_config"] = json!({ "envoy.filters.http.rbac": rbac });
    let half = json!({ "default_value": { "numerator": 50 } });
    vec![
        json!({
            "match": { "safe_regex": { "regex": "/whole[0-9]+/.*" } },
            "route": { "cluster": "web", "prefix_rewrite": "/whole" },
        }),
        json!({ "match": { "prefix": "/action" }, "route": { "cluster_header": "x-cluster" } }),
        open(json!({ "prefix": "/sometimes", "runtime_fraction": half })),
        open(json!({ "prefix": "/sometimes" })),
        guarded,
        open(json!({ "prefix": "/guarded" })),
        open(json!({ "connect_matcher": {} })),
        open(json!({ "prefix": "/open" })),
    ]
}

fn closed_alone(delta: bool) {
    let Some(mut driven) = Driven::new(delta) else { return };
    driven.snapshot.more_routes = routes();
    driven.snapshot.answer = Some("new".into());
    let before = driven.server.requests();
    driven.apply();
    let reason = driven.wait_for_nack(before);
    for part in [
        "routes[1].route.cluster_header",
        "routes[2].match.runtime_fraction",
        "routes[4].typed_per",
        "routes[6]",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert!(!reason.contains("routes[0]") && !reason.contains("routes[3]"), "{reason}");
    eventually("the other routes are not served", || driven.get("/").as_deref() == Some("new"));
    assert_eq!(driven.get("/whole1/a").as_deref(), Some("whole"));
    assert_eq!(driven.get("/open").as_deref(), Some("open"));
    for path in ["/action", "/sometimes", "/guarded"] {
        assert_eq!(status(&driven, path), Some(503), "{path}");
    }
    let is_shown = || {
        let (_, text) = ready(&driven.gateway);
        text.contains("refused: route configuration routes (in service, with closed routes): ")
            && text.contains("cluster_header")
    };
    eventually("the closed routes are not shown", is_shown);
    assert_eq!(driven.gateway.metric("quadrille_xds_closed_total", &["rds"]), 0.0);
    // They are still shown after another resource has changed.
    let serial = driven.serial();
    driven.snapshot.secrets = vec![secret("site", &driven.pairs[1])];
    driven.apply();
    eventually("the certificate is not replaced", || driven.serial() != serial);
    assert!(ready(&driven.gateway).1.contains("with closed routes"));
    driven.snapshot.more_routes.clear();
    driven.apply();
    eventually("they are still shown", || ready(&driven.gateway) == ("200".into(), "LIVE\n".into()));
    assert_eq!(driven.get("/guarded").as_deref(), Some("new"));
    let log = driven.gateway.log();
    assert_eq!(log.matches("in service, except for routes").count(), 1, "{log}");
}

#[test]
fn routes_that_cannot_be_served_are_closed_alone_state_of_the_world() {
    closed_alone(false);
}

#[test]
fn routes_that_cannot_be_served_are_closed_alone_delta() {
    closed_alone(true);
}
