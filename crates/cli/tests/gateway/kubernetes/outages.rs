//! An API server that restarts, forgets versions, or does not accept a token.

use super::{Cluster, ingress};
use crate::support::throughout;
use std::time::Duration;

const AGE: &str = "quadrille_kubernetes_view_age_seconds";

#[test]
fn the_api_server_dies_and_returns() {
    let cluster = Cluster::new(&[]);
    cluster.server.put(&ingress("web", "a.example", &["/"]));
    cluster.eventually_served("a.example", "/", (200, "app"));
    assert_eq!(cluster.gateway.metric(AGE, &[]), 0.0);
    cluster.server.die();
    cluster.gateway.wait_for_metric(AGE, &[], |age| age > 0.5);
    throughout(Duration::from_secs(1), "the page is lost", || cluster.get("a.example", "/").0 == 200);
    let (ready, text) = cluster.ready();
    assert!(ready, "{text}");
    // The token expires meanwhile, too.
    cluster.server.renew_token("second");
    cluster.server.put(&ingress("web", "b.example", &["/"]));
    cluster.server.return_from_death();
    cluster.eventually_served("b.example", "/", (200, "app"));
    assert_eq!(cluster.get("a.example", "/").0, 404);
    cluster.gateway.wait_for_metric(AGE, &[], |age| age == 0.0);
    cluster.server.put(&ingress("web", "c.example", &["/"]));
    cluster.eventually_served("c.example", "/", (200, "app"));
}

#[test]
fn objects_are_listed_again_if_their_version_is_gone() {
    let cluster = Cluster::new(&[]);
    cluster.server.put(&ingress("one", "a.example", &["/"]));
    cluster.server.put(&ingress("two", "b.example", &["/"]));
    cluster.server.put(&ingress("three", "c.example", &["/"]));
    cluster.eventually_served("c.example", "/", (200, "app"));
    cluster.server.delete_and_forget("ingresses", "two");
    cluster.eventually_served("b.example", "/", (404, ""));
    assert_eq!([cluster.get("a.example", "/").0, cluster.get("c.example", "/").0], [200, 200]);
    cluster.server.put(&ingress("four", "d.example", &["/"]));
    cluster.eventually_served("d.example", "/", (200, "app"));
}

/// A gateway that starts while the API server is away serves once it returns.
#[test]
fn a_start_without_an_api_server_is_not_ready() {
    let cluster = Cluster::starting(&[], |server| {
        server.put(&ingress("web", "a.example", &["/"]));
        server.die();
    });
    throughout(Duration::from_secs(1), "it is ready", || !cluster.ready().0);
    cluster.server.return_from_death();
    cluster.wait_until_ready();
    assert_eq!(cluster.get("a.example", "/").0, 200);
}
