use super::*;
use crate::{
    decode::descriptors,
    proto::{Any, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse},
};
use prost::Message;
use std::time::Duration;

fn stream(dialect: Dialect) -> Stream {
    let node = proto::Node { id: "gateway-1".into(), ..proto::Node::default() };
    let limits = Limits { resources: 4, ..Limits::default() };
    let mut stream = Stream::new(dialect, node, limits);
    stream.connected();
    stream
}

fn any(kind: ResourceType, json: serde_json::Value) -> Any {
    let descriptor = descriptors().get_message_by_name(kind.message()).unwrap();
    let message = prost_reflect::DynamicMessage::deserialize(descriptor, json).unwrap();
    Any { type_url: kind.type_url(), value: message.encode_to_vec() }
}

fn secret(name: &str) -> Any {
    any(ResourceType::Secret, serde_json::json!({ "name": name }))
}

fn listener(name: &str) -> Any {
    any(ResourceType::Listener, serde_json::json!({ "name": name }))
}

fn names(names: &[&str]) -> Interest {
    Interest::Names(names.iter().map(|&name| name.to_owned()).collect())
}

fn sotw(stream: &mut Stream) -> Option<DiscoveryRequest> {
    stream.next_request(Instant::now()).map(|request| request.try_into().unwrap())
}

fn delta(stream: &mut Stream) -> Option<proto::DeltaDiscoveryRequest> {
    stream.next_request(Instant::now()).map(|request| request.try_into().unwrap())
}

fn response(kind: ResourceType, version: &str, nonce: &str, resources: Vec<Any>) -> Response {
    let (version_info, nonce) = (version.to_owned(), nonce.to_owned());
    DiscoveryResponse { version_info, resources, type_url: kind.type_url(), nonce }.into()
}

fn delta_response(kind: ResourceType, nonce: &str, resources: &[(&str, Any)], removed: &[&str]) -> Response {
    let wrap = |(version, any): &(&str, Any)| proto::Resource {
        version: (*version).to_owned(),
        resource: Some(any.clone()),
        name: String::new(),
    };
    DeltaDiscoveryResponse {
        resources: resources.iter().map(wrap).collect(),
        type_url: kind.type_url(),
        nonce: nonce.into(),
        removed_resources: removed.iter().map(|&name| name.to_owned()).collect(),
        ..DeltaDiscoveryResponse::default()
    }
    .into()
}

fn accept(stream: &mut Stream, response: Response) -> Update {
    let update = stream.receive(response).unwrap();
    stream.answer(Instant::now(), &update, &[]);
    update
}

#[test]
fn types_are_requested_in_dependency_order_and_the_node_is_sent_once() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    for kind in ResourceType::ALL.into_iter().rev() {
        let interest = if kind.is_complete() { Interest::Wildcard } else { names(&["a"]) };
        stream.subscribe(kind, interest);
    }
    let requests: Vec<_> = std::iter::from_fn(|| sotw(&mut stream)).collect();
    let types: Vec<_> =
        requests.iter().map(|request| ResourceType::from_type_url(&request.type_url).unwrap()).collect();
    assert_eq!(types, ResourceType::ALL);
    assert_eq!(requests[0].node.as_ref().unwrap().id, "gateway-1");
    assert!(requests[1..].iter().all(|request| request.node.is_none()));
    assert!(requests[0].resource_names.is_empty());
    assert_eq!(requests[4].resource_names, ["a"]);
    assert_eq!(sotw(&mut stream), None, "nothing is sent twice");
}

#[test]
fn an_accepted_response_is_acknowledged_with_its_version_and_nonce() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Listener, Interest::Wildcard);
    sotw(&mut stream).unwrap();
    let update = accept(&mut stream, response(ResourceType::Listener, "v1", "n1", vec![listener("one")]));
    assert!(update.complete && update.resources.len() == 1 && update.resources[0].name == "one");
    let ack = sotw(&mut stream).unwrap();
    assert_eq!((ack.version_info.as_str(), ack.response_nonce.as_str()), ("v1", "n1"));
    assert_eq!(ack.error_detail, None);
    assert_eq!(sotw(&mut stream), None);
}

#[test]
fn a_refused_response_is_answered_with_the_version_before_it_and_the_reason() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    sotw(&mut stream).unwrap();
    accept(&mut stream, response(ResourceType::Secret, "v1", "n1", vec![secret("a")]));
    sotw(&mut stream).unwrap();
    let update = stream.receive(response(ResourceType::Secret, "v2", "n2", vec![secret("a")])).unwrap();
    let rejection = Rejection::new("a", "tls_certificate: no key");
    stream.answer(Instant::now(), &update, &[rejection]);
    let nack = sotw(&mut stream).unwrap();
    assert_eq!((nack.version_info.as_str(), nack.response_nonce.as_str()), ("v1", "n2"));
    let detail = nack.error_detail.unwrap();
    assert_eq!((detail.code, detail.message.as_str()), (3, "secret a: tls_certificate: no key"));
    accept(&mut stream, response(ResourceType::Secret, "v3", "n3", vec![secret("a")]));
    let ack = sotw(&mut stream).unwrap();
    assert_eq!((ack.version_info.as_str(), ack.error_detail), ("v3", None));
}

#[test]
fn what_is_not_read_behind_too_many_mistakes_is_not_gone() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Listener, Interest::Wildcard);
    let mut resources = vec![listener("twice"); 11];
    resources.push(listener("served"));
    let update = accept(&mut stream, response(ResourceType::Listener, "v1", "n1", resources));
    assert_eq!((update.resources.len(), update.unreadable.len()), (1, 10));
    assert!(!update.complete, "`served` was among the resources");
}

#[test]
fn what_can_be_read_of_a_bad_response_is_offered_and_nothing_counts_as_gone() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Listener, Interest::Wildcard);
    let bad = Any { type_url: ResourceType::Listener.type_url(), value: vec![0x0a, 0xff] };
    let update =
        accept(&mut stream, response(ResourceType::Listener, "v1", "n1", vec![listener("one"), bad]));
    assert_eq!(update.resources.len(), 1);
    assert!(!update.complete, "the invalid resource may be an active one");
    let nack = sotw(&mut stream).unwrap().error_detail.unwrap().message;
    assert_eq!(nack, "listener (unnamed): not a protobuf message: it ends within a field");
}

#[test]
fn a_change_of_names_repeats_all_of_them_with_the_last_nonce() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Routes, names(&["a"]));
    sotw(&mut stream).unwrap();
    let routes = any(ResourceType::Routes, serde_json::json!({ "name": "a" }));
    accept(&mut stream, response(ResourceType::Routes, "v1", "n1", vec![routes]));
    sotw(&mut stream).unwrap();
    stream.subscribe(ResourceType::Routes, names(&["a", "b"]));
    let request = sotw(&mut stream).unwrap();
    assert_eq!(request.resource_names, ["a", "b"]);
    assert_eq!((request.version_info.as_str(), request.response_nonce.as_str()), ("v1", "n1"));
    stream.subscribe(ResourceType::Routes, Interest::Nothing);
    assert_eq!(sotw(&mut stream).unwrap().resource_names, [""; 0], "the subscription must be cleared");
    assert_eq!(sotw(&mut stream), None);
}

#[test]
fn a_new_connection_subscribes_again_and_sends_the_node() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    sotw(&mut stream).unwrap();
    accept(&mut stream, response(ResourceType::Secret, "v1", "n1", vec![secret("a")]));
    stream.connected();
    let request = sotw(&mut stream).unwrap();
    assert_eq!((request.version_info.as_str(), request.response_nonce.as_str()), ("", ""));
    assert_eq!(request.resource_names, ["a"]);
    assert!(request.node.is_some());
    assert_eq!(sotw(&mut stream), None, "the pending ACK was dropped with the connection");
}

#[test]
fn an_offer_of_a_former_connection_is_not_answered_on_the_new_one() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    sotw(&mut stream).unwrap();
    let update = stream.receive(response(ResourceType::Secret, "v1", "n1", vec![secret("a")])).unwrap();
    stream.connected();
    stream.answer(Instant::now(), &update, &[]);
    assert_eq!(sotw(&mut stream).unwrap().response_nonce, "");
}

#[test]
fn resources_without_a_subscription_are_ignored_and_duplicate_names_rejected() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    assert!(stream.receive(response(ResourceType::Routes, "v", "n", vec![])).is_none());
    let resources = vec![secret("a"), secret("other"), secret("a")];
    let update = stream.receive(response(ResourceType::Secret, "v1", "n1", resources)).unwrap();
    assert_eq!(update.resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(update.unreadable, [Rejection::new("a", "duplicate name")]);
}

#[test]
fn a_resource_of_another_type_is_refused() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    let update = stream.receive(response(ResourceType::Secret, "v1", "n1", vec![listener("a")])).unwrap();
    assert!(
        update.unreadable[0].reason.contains("envoy.config.listener.v3.Listener"),
        "{:?}",
        update.unreadable
    );
}

#[test]
fn resources_may_be_wrapped_but_not_twice() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    let wrap = |any: Any| {
        let inner = proto::Resource { name: "a".into(), version: "7".into(), resource: Some(any) };
        Any { type_url: proto::WRAPPED.into(), value: inner.encode_to_vec() }
    };
    let update = stream.receive(response(ResourceType::Secret, "v1", "n1", vec![wrap(secret("a"))])).unwrap();
    assert_eq!((update.resources[0].name.as_str(), update.resources[0].version.as_str()), ("a", "7"));
    let update =
        stream.receive(response(ResourceType::Secret, "v1", "n1", vec![wrap(wrap(secret("a")))])).unwrap();
    assert!(update.resources.is_empty() && update.unreadable.len() == 1);
}

#[test]
fn too_many_resources_are_refused_together() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Listener, Interest::Wildcard);
    let many = (0..5).map(|number| listener(&number.to_string())).collect();
    let update = stream.receive(response(ResourceType::Listener, "v1", "n1", many)).unwrap();
    assert!(update.resources.is_empty() && !update.complete);
    assert_eq!(update.unreadable[0].reason, "5 resources exceed the limit of 4");
    assert_eq!(
        stream.subscribe(ResourceType::Secret, names(&["a", "b", "c", "d", "e", ""])),
        2,
        "nor are they subscribed to"
    );
}

#[test]
fn delta_subscribes_to_new_names_and_unsubscribes_from_others() {
    let mut stream = stream(Dialect::Delta);
    stream.subscribe(ResourceType::Cluster, Interest::Wildcard);
    stream.subscribe(ResourceType::Secret, names(&["a", "b"]));
    let clusters = delta(&mut stream).unwrap();
    assert!(clusters.resource_names_subscribe.is_empty() && clusters.node.is_some());
    assert_eq!(delta(&mut stream).unwrap().resource_names_subscribe, ["a", "b"]);
    stream.subscribe(ResourceType::Secret, names(&["b", "c"]));
    let change = delta(&mut stream).unwrap();
    assert_eq!(change.resource_names_subscribe, ["c"]);
    assert_eq!(change.resource_names_unsubscribe, ["a"]);
    assert_eq!(change.response_nonce, "", "it is not an ACK");
    assert_eq!(delta(&mut stream), None);
}

#[test]
fn delta_says_on_a_new_connection_what_it_keeps() {
    let mut stream = stream(Dialect::Delta);
    stream.subscribe(ResourceType::Secret, names(&["a", "b", "c"]));
    delta(&mut stream).unwrap();
    let three = [("1", secret("a")), ("1", secret("b")), ("1", secret("c"))];
    accept(&mut stream, delta_response(ResourceType::Secret, "n1", &three, &[]));
    assert_eq!(delta(&mut stream).unwrap().response_nonce, "n1");
    let update =
        stream.receive(delta_response(ResourceType::Secret, "n2", &[("2", secret("a"))], &["c"])).unwrap();
    assert_eq!(update.removed, ["c"]);
    stream.answer(Instant::now(), &update, &[Rejection::new("a", "bad")]);
    let nack = delta(&mut stream).unwrap();
    assert_eq!(
        (nack.response_nonce.as_str(), nack.error_detail.unwrap().message.as_str()),
        ("n2", "secret a: bad")
    );
    stream.connected();
    let mut known: Vec<_> = delta(&mut stream).unwrap().initial_resource_versions.into_iter().collect();
    known.sort();
    let versions = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "1".to_owned())];
    assert_eq!(known, versions, "a's second version was rejected, c was removed");
}

#[test]
fn delta_does_not_claim_to_have_what_was_closed() {
    let mut stream = stream(Dialect::Delta);
    stream.subscribe(ResourceType::Secret, names(&["a", "b"]));
    delta(&mut stream).unwrap();
    let both = [("1", secret("a")), ("1", secret("b"))];
    accept(&mut stream, delta_response(ResourceType::Secret, "n1", &both, &[]));
    delta(&mut stream).unwrap();
    let update =
        stream.receive(delta_response(ResourceType::Secret, "n2", &[("2", secret("a"))], &[])).unwrap();
    stream.answer(
        Instant::now(),
        &update,
        &[Rejection { outcome: Outcome::Closed, ..Rejection::new("a", "bad") }],
    );
    stream.connected();
    let known = delta(&mut stream).unwrap().initial_resource_versions;
    assert_eq!(known.keys().collect::<Vec<_>>(), ["b"], "the server would not resend a's first version");
}

#[test]
fn delta_answers_and_changes_what_it_wants_in_two_requests() {
    let mut stream = stream(Dialect::Delta);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    delta(&mut stream).unwrap();
    accept(&mut stream, delta_response(ResourceType::Secret, "n1", &[("1", secret("a"))], &[]));
    stream.subscribe(ResourceType::Secret, names(&["b"]));
    let answer = delta(&mut stream).unwrap();
    assert_eq!(answer.response_nonce, "n1");
    assert!(answer.resource_names_subscribe.is_empty() && answer.resource_names_unsubscribe.is_empty());
    let change = delta(&mut stream).unwrap();
    assert_eq!((change.response_nonce.as_str(), change.error_detail), ("", None));
    assert_eq!(change.resource_names_subscribe, ["b"]);
    assert_eq!(change.resource_names_unsubscribe, ["a"]);
    assert_eq!(delta(&mut stream), None);
}

#[test]
fn a_heartbeat_changes_nothing() {
    let mut stream = stream(Dialect::Delta);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    let heartbeat = proto::Resource { name: "a".into(), version: "1".into(), resource: None };
    let response = DeltaDiscoveryResponse {
        resources: vec![heartbeat],
        type_url: ResourceType::Secret.type_url(),
        ..Default::default()
    };
    let update = stream.receive(response.into()).unwrap();
    assert!(update.resources.is_empty() && update.unreadable.is_empty() && update.removed.is_empty());
}

#[test]
fn a_nack_is_bounded_and_says_how_much_it_leaves_out() {
    let many: Vec<_> = (0..1000).map(|n| Rejection::new(n.to_string(), "x".repeat(10_000))).collect();
    let detail = update::nack_detail(ResourceType::Secret, many.iter()).unwrap();
    assert!(detail.len() < 10_000, "{}", detail.len());
    assert!(detail.ends_with("and 999 more"), "{}", &detail[detail.len() - 30..]);
}

#[test]
fn a_server_that_repeats_what_was_refused_waits_longer_and_longer_for_its_nack() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    let mut now = Instant::now();
    stream.next_request(now).unwrap();
    let mut waits = Vec::new();
    for round in 0..8 {
        let update = stream
            .receive(response(ResourceType::Secret, "2", &round.to_string(), vec![secret("a")]))
            .unwrap();
        stream.answer(now, &update, &[Rejection::new("a", "bad")]);
        let wait = stream.next_deadline().map_or(Duration::ZERO, |time| time - now);
        assert_eq!(stream.next_request(now).is_some(), wait.is_zero());
        now += wait;
        waits.push(wait.as_millis());
        if !wait.is_zero() {
            stream.next_request(now).unwrap();
        }
    }
    assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3000, 3000]);
    accept(&mut stream, response(ResourceType::Secret, "3", "good", vec![secret("a")]));
    assert!(stream.next_deadline().is_none() && stream.next_request(now).is_some());
}

#[test]
fn a_delayed_nack_is_sent_with_any_other_request() {
    let mut stream = stream(Dialect::StateOfTheWorld);
    stream.subscribe(ResourceType::Secret, names(&["a"]));
    let now = Instant::now();
    stream.next_request(now).unwrap();
    for nonce in ["1", "2"] {
        let update = stream.receive(response(ResourceType::Secret, "2", nonce, vec![secret("a")])).unwrap();
        stream.answer(now, &update, &[Rejection::new("a", "bad")]);
        if nonce == "1" {
            sotw(&mut stream).unwrap();
        }
    }
    assert_eq!(stream.next_request(now), None);
    stream.subscribe(ResourceType::Secret, names(&["a", "b"]));
    let request: DiscoveryRequest = stream.next_request(now).unwrap().try_into().unwrap();
    assert_eq!(request.resource_names, ["a", "b"]);
    assert!(request.error_detail.is_some());
    assert_eq!(stream.next_deadline(), None);
}
