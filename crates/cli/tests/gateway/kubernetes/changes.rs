//! Objects that change, and what is written to them.

use super::{Cluster, annotated, endpoints, ingress, service};
use crate::support::{Nginx, eventually};
use serde_json::json;

#[test]
fn a_page_is_served_after_the_first_lists() {
    let cluster = Cluster::starting(&[], |server| {
        server.put(&ingress("web", "a.example", &["/"]));
        server.hold(Some("secrets"));
    });
    eventually("the Secrets are not awaited", || cluster.ready().1.contains("the first list of Secret\n503"));
    cluster.server.hold(None);
    cluster.wait_until_ready();
    assert_eq!(cluster.get("a.example", "/x"), (200, "app".to_owned()), "{}", cluster.gateway.log());
    assert_eq!(cluster.get("b.example", "/x").0, 404);
    let status: serde_json::Value =
        serde_json::from_str(&cluster.gateway.admin_page("/status")).expect("JSON");
    let known = &status["kubernetes"];
    assert_eq!((&known["ready"], &known["ingresses_served"]), (&json!(true), &json!(1)), "{known}");
    assert_eq!(known["objects"]["Service"], 1, "{known}");
}

#[test]
fn a_changed_ingress_is_live() {
    let cluster = Cluster::new(&[]);
    assert_eq!(cluster.get("a.example", "/").0, 404);
    cluster.server.put(&ingress("web", "a.example", &["/old"]));
    cluster.eventually_served("a.example", "/old", (200, "app"));
    cluster.server.put(&ingress("web", "a.example", &["/new"]));
    cluster.eventually_served("a.example", "/new", (200, "app"));
    assert_eq!(cluster.get("a.example", "/old").0, 404);
    cluster.server.delete("ingresses", "web");
    cluster.eventually_served("a.example", "/new", (404, ""));
}

#[test]
fn objects_of_other_classes_and_without_a_class_are_not_served() {
    let mut other = ingress("other", "other.example", &["/"]);
    other["spec"]["ingressClassName"] = "traefik".into();
    let mut without = ingress("without", "without.example", &["/"]);
    without["spec"].as_object_mut().unwrap().remove("ingressClassName");
    let cluster = Cluster::starting(&[], |server| {
        server.put(&other);
        server.put(&without);
        server.put(&ingress("web", "a.example", &["/"]));
    });
    cluster.wait_until_ready();
    assert_eq!(cluster.get("a.example", "/").0, 200);
    assert_eq!([cluster.get("other.example", "/").0, cluster.get("without.example", "/").0], [404, 404]);
}

#[test]
fn a_service_that_appears_is_served() {
    let mut web = ingress("web", "a.example", &["/"]);
    web["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] = "late".into();
    let cluster = Cluster::starting(&[], |server| server.put(&web));
    cluster.wait_until_ready();
    assert_eq!(cluster.get("a.example", "/").0, 503);
    let late = Nginx::new("location / { return 200 late; }");
    cluster.server.put(&service("late"));
    cluster.server.put(&endpoints("late", &[late.address()]));
    cluster.eventually_served("a.example", "/", (200, "late"));
}

/// Roles of namespaces cannot allow to list IngressClass objects.
#[test]
fn a_role_in_one_namespace_suffices() {
    let mut elsewhere = ingress("web", "elsewhere.example", &["/"]);
    elsewhere["metadata"]["namespace"] = "other".into();
    let cluster = Cluster::starting(&["--watch-namespace", "shop"], |server| {
        server.forbid("ingressclasses");
        server.put(&elsewhere);
        server.put(&ingress("web", "a.example", &["/"]));
    });
    cluster.wait_until_ready();
    assert_eq!(cluster.get("a.example", "/"), (200, "app".to_owned()), "{}", cluster.gateway.log());
    assert_eq!(cluster.get("elsewhere.example", "/").0, 404);
}

#[test]
fn a_forbidden_resource_is_named() {
    let mut cluster = Cluster::starting(&[], |server| server.forbid("secrets"));
    cluster.gateway.wait_for_log("allow `list` and `watch` of them in a role");
    eventually("Secrets are not awaited", || cluster.ready().1.contains("the first list of Secret\n503"));
}

/// A setting that guards is closed, and the object says so.
#[test]
fn what_does_not_work_is_an_event() {
    let cluster = Cluster::new(&[]);
    let web = annotated(ingress("web", "a.example", &["/"]), "auth-type", "digest");
    cluster.server.put(&annotated(web, "proxy-body-size", "1m"));
    cluster.eventually_served("a.example", "/", (503, ""));
    eventually("no Event", || {
        !cluster.server.written("POST /apis/events.k8s.io/v1/namespaces/shop/events").is_empty()
    });
    let events = cluster.server.written("/events");
    let event = &events[0];
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(event["type"], "Warning", "{event}");
    assert_eq!(event["regarding"]["kind"], "Ingress", "{event}");
    assert_eq!(event["regarding"]["uid"], "uid-of-web", "{event}");
    assert!(event["note"].as_str().unwrap().contains("auth-type does not work"), "{event}");
    cluster.gateway.wait_for_metric("quadrille_kubernetes_settings_refused", &[], |count| count > 0.0);
    assert!(cluster.gateway.log().contains("a setting does not work"), "{}", cluster.gateway.log());
    cluster.server.put(&ingress("web", "a.example", &["/"]));
    cluster.eventually_served("a.example", "/", (200, "app"));
    cluster.gateway.wait_for_metric("quadrille_kubernetes_settings_refused", &[], |count| count == 0.0);
}

#[test]
fn the_holder_of_the_lease_writes_addresses() {
    let cluster =
        Cluster::new(&["--publish-status-address", "192.0.2.1", "--publish-status-address", "lb.example"]);
    cluster.server.put(&ingress("web", "a.example", &["/"]));
    let addresses = json!([{ "ip": "192.0.2.1" }, { "hostname": "lb.example" }]);
    eventually("no addresses", || {
        let web = cluster.server.get("ingresses", "web").expect("the Ingress");
        web["status"]["loadBalancer"]["ingress"] == addresses
    });
    let leases = cluster.server.written("POST /apis/coordination.k8s.io/v1/namespaces/edge/leases");
    assert_eq!(leases[0]["spec"]["holderIdentity"], "test", "{leases:?}");
    cluster.gateway.wait_for_metric("quadrille_kubernetes_leader", &[], |leader| leader == 1.0);
}

#[test]
fn the_addresses_of_a_service_are_published() {
    let cluster = Cluster::new(&["--publish-service", "shop/app"]);
    cluster.server.put(&ingress("web", "a.example", &["/"]));
    cluster.eventually_served("a.example", "/", (200, "app"));
    assert!(cluster.server.written("/status").is_empty());
    let mut app = service("app");
    app["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.7", "ipMode": "VIP" }] } });
    cluster.server.put(&app);
    eventually("no address", || {
        let web = cluster.server.get("ingresses", "web").expect("the Ingress");
        web["status"]["loadBalancer"]["ingress"] == json!([{ "ip": "192.0.2.7" }])
    });
}

#[test]
fn the_config_map_is_followed() {
    let map = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings", "namespace": "shop" },
            "data": { "block-cidrs": value },
        })
    };
    let cluster = Cluster::new(&["--configmap", "shop/settings"]);
    cluster.server.put(&ingress("web", "a.example", &["/"]));
    cluster.eventually_served("a.example", "/", (200, "app"));
    cluster.server.put(&map("127.0.0.0/8"));
    eventually("clients are not denied", || cluster.get("a.example", "/").0 != 200);
    cluster.server.put(&map(""));
    cluster.eventually_served("a.example", "/", (200, "app"));
}
