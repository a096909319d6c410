//! Listeners that wait for resources, and cannot be made when these arrive.

use super::*;

/// Returns the listener of a snapshot with a CA certificate that cannot be read when the listener is made.
fn damaged(snapshot: &Snapshot) -> Value {
    let mut listener = snapshot.listener();
    let tls = &mut listener["filter_chains"][0]["transport_socket"]["typed_config"];
    tls["require_client_certificate"] = json!(true);
    tls["common_tls_context"]["validation_context"] = json!({ "trusted_ca": {
        "inline_string": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" } });
    listener
}

/// The previous listener serves until the next one is complete, and stays if that one fails, as in Envoy.
#[test]
fn a_listener_that_fails_after_it_waited_leaves_the_old_one_serving() {
    let Some(mut driven) = Driven::new(false) else { return };
    driven.snapshot.route_name = "later".into();
    driven.snapshot.answer = Some("new".into());
    driven.snapshot.with_routes = false;
    driven.snapshot.with_listener = false;
    driven.snapshot.more_listeners = vec![damaged(&driven.snapshot)];
    let before = driven.server.requests();
    driven.apply();
    driven.server.wait("a request for the routes", before, |request| {
        request["names"].as_array().is_some_and(|names| names.iter().any(|name| name == "later"))
    });
    assert_eq!(driven.get("/").as_deref(), Some("right"));
    driven.snapshot.with_routes = true;
    let before = driven.server.requests();
    driven.apply();
    let reason = driven.wait_for_nack(before);
    assert!(reason.contains("lds `main`") && reason.contains("trusted_ca"), "{reason}");
    throughout(Duration::from_millis(400), "the old listener does not serve", || {
        driven.get("/").as_deref() == Some("right")
    });
    driven.snapshot.with_listener = true;
    driven.snapshot.more_listeners.clear();
    driven.apply();
    eventually("the corrected listener is not open", || driven.get("/").as_deref() == Some("new"));
}
