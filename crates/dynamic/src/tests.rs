//! Worlds without a control plane: offers are made as the stream makes them.

use crate::{
    plane::Planes,
    world::{Proposal, World},
};
use prost_reflect::{DynamicMessage, prost::Message};
use quadrille_envoy::{Bootstrap, bootstrap};
use quadrille_xds::{
    Dialect, Interest, Kind, Limits, Offer, decode, proto,
    stream::{Response, Stream},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ADS: &str = "
node: {id: g, cluster: c, metadata: {A: '1', B: [x, {C: y}]}, locality: {region: r, sub_zone: s}}
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: plane}}]}
  lds_config: {ads: {}, resource_api_version: V3}
  cds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - {name: plane, type: STATIC, load_assignment: {cluster_name: plane, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}
";

fn ads() -> Bootstrap {
    bootstrap(ADS, "bootstrap.yaml").unwrap()
}

fn offer(kind: Kind, resources: &[Value]) -> Offer {
    let mut stream = Stream::new(Dialect::StateOfTheWorld, proto::Node::default(), Limits::default());
    stream.want(kind, Interest::Everything);
    let any = |json: &Value| {
        let descriptor = decode::descriptors().get_message_by_name(kind.message()).unwrap();
        let message = DynamicMessage::deserialize(descriptor, json.clone()).unwrap();
        proto::Any { type_url: kind.type_url(), value: message.encode_to_vec() }
    };
    let response = proto::DiscoveryResponse {
        version_info: "1".into(),
        resources: resources.iter().map(any).collect(),
        type_url: kind.type_url(),
        nonce: "n".into(),
    };
    stream.receive(Response::StateOfTheWorld(response)).unwrap()
}

/// A plain listener that asks for these routes.
fn listener(name: &str, routes: &str) -> Value {
    let hcm = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    json!({
        "name": name,
        "address": { "socket_address": { "address": "127.0.0.1", "port_value": 8443 } },
        "filter_chains": [{ "filters": [{ "name": "http", "typed_config": {
            "@type": hcm, "stat_prefix": "x",
            "rds": { "route_config_name": routes, "config_source": { "ads": {}, "resource_api_version": "V3" } },
            "http_filters": [{ "name": "envoy.filters.http.router", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" } }],
        } }] }],
    })
}

fn routes(name: &str) -> Value {
    json!({ "name": name, "virtual_hosts": [{ "name": "v", "domains": ["*"], "routes": [
        { "match": { "prefix": "/" }, "direct_response": { "status": 200 } } ] }] })
}

/// Takes an offer whole; what it would have changed.
fn take(world: &mut World, offer: &Offer) -> Proposal {
    let proposal = world.read(offer);
    assert_eq!(proposal.rejections, []);
    let step = world.next(&proposal, &BTreeMap::new(), offer.kind);
    world.model(&step).unwrap();
    world.take(step);
    proposal
}

fn serving(world: &World) -> Vec<String> {
    let in_force = world.in_force();
    let complete = in_force.listeners.values().filter(|listener| in_force.missing(listener).is_empty());
    complete.flat_map(|_| in_force.routes.keys().cloned()).collect()
}

#[test]
fn a_listener_waits_for_its_routes_and_the_one_before_serves_until_they_come() {
    let mut world = World::new(&ads());
    take(&mut world, &offer(Kind::Listener, &[listener("l", "a")]));
    assert_eq!(world.wanted().routes.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(world.waiting().len(), 1);
    assert_eq!(serving(&world), [""; 0]);
    take(&mut world, &offer(Kind::Routes, &[routes("a")]));
    assert_eq!((serving(&world), world.waiting().len()), (vec!["a".to_owned()], 0));
    // Another listener of the same name wants other routes.
    take(&mut world, &offer(Kind::Listener, &[listener("l", "b")]));
    assert_eq!(serving(&world), ["a"]);
    assert_eq!(world.wanted().routes.keys().collect::<Vec<_>>(), ["a", "b"], "both are asked for until then");
    take(&mut world, &offer(Kind::Routes, &[routes("a"), routes("b")]));
    assert_eq!(serving(&world), ["b"], "and what nobody names any more is forgotten");
    assert_eq!(world.wanted().routes.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let mut world = World::new(&ads());
    let both = offer(Kind::Listener, &[listener("l", "a")]);
    assert!(!take(&mut world, &both).is_empty());
    assert!(take(&mut world, &both).is_empty());
    assert!(!take(&mut world, &offer(Kind::Listener, &[])).is_empty(), "that it is gone is a change");
    assert!(world.wanted().routes.is_empty());
}

#[test]
fn what_the_bootstrap_says_is_not_replaced() {
    let world = World::new(&ads());
    let plane = json!({ "name": "plane", "type": "STATIC" });
    let proposal = world.read(&offer(Kind::Cluster, &[plane]));
    assert!(proposal.is_empty());
    assert_eq!(proposal.rejections[0].name, "plane");
    let gone = world.read(&offer(Kind::Cluster, &[]));
    assert!(gone.is_empty(), "nor does it go because a control plane does not name it");
}

#[test]
fn a_resource_that_says_nonsense_is_refused_with_its_path() {
    let world = World::new(&ads());
    let mut bad = listener("bad", "a");
    bad["address"]["socket_address"]["address"] = json!("nowhere");
    let proposal = world.read(&offer(Kind::Listener, &[bad, listener("good", "a")]));
    assert_eq!(proposal.names().collect::<Vec<_>>(), ["good"]);
    assert!(proposal.rejections[0].reason.contains("address"), "{}", proposal.rejections[0].reason);
}

#[test]
fn a_bootstrap_that_is_read_again_keeps_what_has_come() {
    let mut world = World::new(&ads());
    take(&mut world, &offer(Kind::Listener, &[listener("l", "a")]));
    take(&mut world, &offer(Kind::Routes, &[routes("a")]));
    let gateway = world.renew(&ads()).unwrap();
    assert_eq!(gateway.listeners.len(), 1);
    assert!(take(&mut world, &offer(Kind::Listener, &[listener("l", "a")])).is_empty());
}

#[test]
fn each_control_plane_is_asked_for_what_it_has() {
    let bootstrap = ads();
    let planes = Planes::new(&bootstrap).unwrap();
    let mut world = World::new(&bootstrap);
    take(&mut world, &offer(Kind::Listener, &[listener("l", "a")]));
    let needed = planes.needed(world.dynamic(), &world.wanted());
    assert_eq!(needed.len(), 1);
    let (stream, interests) = &needed[0];
    assert_eq!(interests[&Kind::Listener], Interest::Everything);
    assert_eq!(interests[&Kind::Routes], Interest::Names(["a".to_owned()].into()));
    let client = planes.client(stream).unwrap();
    assert_eq!((client.dialect, client.only), (Dialect::Delta, None));
    let metadata = client.node.metadata.unwrap();
    assert_eq!(metadata.fields.len(), 2);
    let locality = client.node.locality.unwrap();
    assert_eq!(
        (client.node.id.as_str(), locality.region.as_str(), locality.sub_zone.as_str()),
        ("g", "r", "s")
    );
}

#[test]
fn a_control_plane_that_is_no_cluster_is_named() {
    let text = ADS.replace("cluster_name: plane}}]", "cluster_name: elsewhere}}]").replace("{id: g, ", "{");
    let bootstrap = bootstrap(&text, "bootstrap.yaml").unwrap();
    let Err(problems) = Planes::new(&bootstrap) else { panic!("it is not there") };
    assert!(problems[0].contains("`elsewhere` is no cluster of the bootstrap"), "{problems:?}");
    assert!(problems[1].contains("node.id is missing"), "{problems:?}");
}
