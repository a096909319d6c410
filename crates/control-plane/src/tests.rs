//! Tests of the resource store without a control plane: updates are built as the stream builds them.

use crate::{
    OnRefusedPolicy, Trust, XdsManager,
    control_planes::ControlPlanes,
    resource_store::{ResourceDiff, ResourceStore},
};
use prost_reflect::{DynamicMessage, prost::Message};
use quadrille_envoy::{Bootstrap, bootstrap};
use quadrille_xds::{
    Dialect, Interest, Limits, ResourceType, Update, decode, proto,
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

pub(crate) fn bootstrap_with_ads() -> Bootstrap {
    bootstrap(ADS, "bootstrap.yaml").unwrap()
}

pub(crate) fn update(kind: ResourceType, resources: &[Value]) -> Update {
    let mut stream = Stream::new(Dialect::StateOfTheWorld, proto::Node::default(), Limits::default());
    stream.subscribe(kind, Interest::Wildcard);
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

/// A plain listener that references these routes.
pub(crate) fn listener(name: &str, routes: &str) -> Value {
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

pub(crate) fn routes(name: &str) -> Value {
    json!({ "name": name, "virtual_hosts": [{ "name": "v", "domains": ["*"], "routes": [
        { "match": { "prefix": "/" }, "direct_response": { "status": 200 } } ] }] })
}

/// Applies an update completely, and returns its diff.
pub(crate) fn commit(store: &mut ResourceStore, update: &Update) -> ResourceDiff {
    let diff = store.diff(update);
    assert_eq!(diff.rejections, []);
    let transition = store.transition(&diff, &BTreeMap::new(), update.kind);
    store.model(&transition).unwrap();
    store.commit(transition);
    diff
}

fn serving(store: &ResourceStore) -> Vec<String> {
    let active = store.active();
    let complete = active.listeners.values().filter(|listener| active.missing(listener).is_empty());
    complete.flat_map(|_| active.routes.keys().cloned()).collect()
}

#[test]
fn a_listener_waits_for_its_routes_and_the_one_before_serves_until_they_come() {
    let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")]));
    assert_eq!(store.references().routes.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(store.warming_listeners().len(), 1);
    assert_eq!(serving(&store), [""; 0]);
    commit(&mut store, &update(ResourceType::Routes, &[routes("a")]));
    assert_eq!((serving(&store), store.warming_listeners().len()), (vec!["a".to_owned()], 0));
    // An update of the listener references other routes.
    commit(&mut store, &update(ResourceType::Listener, &[listener("l", "b")]));
    assert_eq!(serving(&store), ["a"]);
    assert_eq!(
        store.references().routes.keys().collect::<Vec<_>>(),
        ["a", "b"],
        "both are subscribed to until then"
    );
    commit(&mut store, &update(ResourceType::Routes, &[routes("a"), routes("b")]));
    assert_eq!(serving(&store), ["b"], "unreferenced routes are dropped");
    assert_eq!(store.references().routes.keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    let both = update(ResourceType::Listener, &[listener("l", "a")]);
    assert!(!commit(&mut store, &both).is_empty());
    assert!(commit(&mut store, &both).is_empty());
    assert!(!commit(&mut store, &update(ResourceType::Listener, &[])).is_empty(), "a removal is a change");
    assert!(store.references().routes.is_empty());
}

#[test]
fn what_the_bootstrap_says_is_not_replaced() {
    let store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    let plane = json!({ "name": "plane", "type": "STATIC" });
    let diff = store.diff(&update(ResourceType::Cluster, &[plane]));
    assert!(diff.is_empty());
    assert_eq!(diff.rejections[0].name, "plane");
    let gone = store.diff(&update(ResourceType::Cluster, &[]));
    assert!(gone.is_empty(), "it is not removed because a control plane does not name it");
}

#[test]
fn a_resource_that_says_nonsense_is_refused_with_its_path() {
    let store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    let mut bad = listener("bad", "a");
    bad["address"]["socket_address"]["address"] = json!("nowhere");
    let diff = store.diff(&update(ResourceType::Listener, &[bad, listener("good", "a")]));
    assert_eq!(diff.changed_names().collect::<Vec<_>>(), ["good"]);
    assert!(diff.rejections[0].reason.contains("address"), "{}", diff.rejections[0].reason);
}

/// Adds rules to a listener that allow this principal.
fn guarded(name: &str, routes: &str, principal: &Value) -> Value {
    let mut guarded = listener(name, routes);
    let filters = &mut guarded["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"];
    let policy = json!({ "permissions": [{ "any": true }], "principals": [principal] });
    let rbac = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
        "rules": { "policies": { "p": policy } },
    });
    filters.as_array_mut().unwrap().insert(0, json!({ "name": "rbac", "typed_config": rbac }));
    guarded
}

#[test]
fn rules_about_access_come_from_control_planes() {
    let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    let near = json!({ "source_ip": { "address_prefix": "10.0.0.0", "prefix_len": 8 } });
    commit(&mut store, &update(ResourceType::Listener, &[guarded("l", "a", &near)]));
    let diff = commit(&mut store, &update(ResourceType::Routes, &[routes("a")]));
    let transition = store.transition(&diff, &BTreeMap::new(), ResourceType::Routes);
    let gateway = store.model(&transition).unwrap();
    let quadrille_config::model::Serve::Http(http) = &gateway.listeners[0].chains[0].serve else {
        panic!("no HTTP")
    };
    assert_eq!(http.access[0].rules().expect("rules").policies[0].name, "p");
}

#[test]
fn a_listener_whose_access_rules_are_rejected_is_closed() {
    for policy in [OnRefusedPolicy::Close, OnRefusedPolicy::Keep] {
        let trust = Trust { on_refused_policy: policy, ..Trust::default() };
        let mut store = ResourceStore::new(bootstrap_with_ads(), trust);
        let mut other = listener("other", "a");
        other["address"]["socket_address"]["port_value"] = json!(8444);
        let open = update(ResourceType::Listener, &[listener("l", "a"), other]);
        commit(&mut store, &open);
        commit(&mut store, &update(ResourceType::Routes, &[routes("a")]));
        let mut bad = listener("other", "a");
        bad["address"]["socket_address"]["address"] = json!("nowhere");
        let by_metadata = json!({ "metadata": { "filter": "f", "path": [{ "key": "k" }], "value": { "present_match": true } } });
        let refused = update(ResourceType::Listener, &[guarded("l", "a", &by_metadata), bad]);
        let diff = store.diff(&refused);
        assert_eq!(diff.rejections.len(), 2, "{:?}", diff.rejections);
        assert_eq!(diff.closes("l"), policy == OnRefusedPolicy::Close);
        assert!(!diff.closes("other"), "an address is not an access rule");
        let transition = store.transition(&diff, &BTreeMap::new(), ResourceType::Listener);
        store.commit(transition);
        let active: Vec<_> = store.active().listeners.keys().map(String::as_str).collect();
        let expected: &[&str] = if policy == OnRefusedPolicy::Close { &["other"] } else { &["l", "other"] };
        assert_eq!(active, expected);
        assert!(!store.diff(&refused).closes("l") || policy == OnRefusedPolicy::Keep, "it is closed once");
        commit(&mut store, &open);
        assert_eq!(store.active().listeners.len(), 2, "it opens when its rules are supported");
    }
}

/// Some of a rule's problems are detected only when its listener is read as a whole.
#[test]
fn rules_that_the_whole_listener_makes_unenforceable_close_it() {
    let range = |kind: &str| json!({ kind: { "address_prefix": "10.0.0.0", "prefix_len": 8 } });
    let behind_proxies = guarded("l", "a", &range("remote_ip"));
    let mut announced = guarded("l", "a", &range("direct_remote_ip"));
    announced["listener_filters"] = json!([{ "name": "proxy", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol" } }]);
    let mut matcher = listener("l", "a");
    let rbac = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC",
        "stat_prefix": "x",
        "matcher": { "on_no_match": { "action": { "name": "deny", "typed_config": {
            "@type": "type.googleapis.com/envoy.config.rbac.v3.Action", "name": "deny", "action": "DENY" } } } },
    });
    let filters = matcher["filter_chains"][0]["filters"].as_array_mut().unwrap();
    filters.insert(0, json!({ "name": "rbac", "typed_config": rbac }));
    let certificates = |validation: Value, required: bool| {
        let mut asked = listener("l", "a");
        let pem = json!({ "inline_string": "x" });
        asked["filter_chains"][0]["transport_socket"] = json!({ "name": "tls", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "require_client_certificate": required,
            "common_tls_context": {
                "tls_certificates": [{ "certificate_chain": pem, "private_key": pem }],
                "validation_context": validation,
            },
        } });
        asked
    };
    let unverified = certificates(json!({}), true);
    let by_the_system = certificates(json!({ "system_root_certs": {} }), false);
    for (what, guard) in [
        ("`remote_ip`", behind_proxies),
        ("`direct_remote_ip`", announced),
        ("matcher", matcher),
        ("without a `trusted_ca`", unverified),
        ("the system's CAs", by_the_system),
    ] {
        let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
        commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")]));
        let diff = store.diff(&update(ResourceType::Listener, &[guard]));
        assert!(diff.rejections[0].reason.contains(what), "{what}: {:?}", diff.rejections);
        assert!(diff.closes("l"), "{what}: {:?}", diff.rejections);
    }
}

/// Rules for all routes of a configuration are sent with the routes.
#[test]
fn routes_whose_access_rules_are_rejected_close_their_listeners() {
    let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")]));
    commit(&mut store, &update(ResourceType::Routes, &[routes("a")]));
    assert_eq!(serving(&store), ["a"]);
    let mut guarded = routes("a");
    let rbac = json!({ "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute" });
    guarded["typed_per_filter_config"] = json!({ "envoy.filters.http.rbac": rbac });
    let diff = store.diff(&update(ResourceType::Routes, &[guarded]));
    assert!(diff.closes("a"), "{:?}", diff.rejections);
    let transition = store.transition(&diff, &BTreeMap::new(), ResourceType::Routes);
    store.commit(transition);
    assert_eq!((serving(&store).len(), store.warming_listeners().len()), (0, 1));
}

/// A route or a virtual host with rules is closed by itself, unless the operator prefers the previous version.
#[test]
fn a_route_whose_access_rules_are_rejected_is_closed() {
    for policy in [OnRefusedPolicy::Close, OnRefusedPolicy::Keep] {
        closed_alone(policy, "/virtual_hosts/0/routes/0", "routes[0].typed_per_filter_config");
        closed_alone(policy, "/virtual_hosts/0", "virtual_hosts[0].typed_per_filter_config");
    }
}

/// Adds rules that are rejected to the part of a route configuration at this JSON pointer.
fn closed_alone(policy: OnRefusedPolicy, part: &str, told: &str) {
    {
        let trust = Trust { on_refused_policy: policy, ..Trust::default() };
        let mut store = ResourceStore::new(bootstrap_with_ads(), trust);
        commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")]));
        commit(&mut store, &update(ResourceType::Routes, &[routes("a")]));
        let mut guarded = routes("a");
        let rbac =
            json!({ "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute" });
        let rules = json!({ "envoy.filters.http.rbac": rbac });
        guarded.pointer_mut(part).unwrap()["typed_per_filter_config"] = rules;
        let refused = update(ResourceType::Routes, &[guarded]);
        let diff = store.diff(&refused);
        assert!(!diff.closes("a"));
        let is_kept = policy == OnRefusedPolicy::Keep;
        assert_eq!((diff.rejections.len(), diff.partial().count()), if is_kept { (1, 0) } else { (0, 1) });
        if is_kept {
            return;
        }
        commit(&mut store, &refused);
        assert_eq!(serving(&store), ["a"]);
        let again = store.diff(&refused);
        assert!(again.is_empty() && again.still_partial[0].reason.contains(told));
        assert_eq!(store.diff(&update(ResourceType::Routes, &[routes("a")])).still_partial, []);
    }
}

#[test]
fn a_bootstrap_that_is_read_again_keeps_what_has_come() {
    let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")]));
    commit(&mut store, &update(ResourceType::Routes, &[routes("a")]));
    let gateway = store.prepare_bootstrap(bootstrap_with_ads()).unwrap();
    store.commit_bootstrap();
    assert_eq!(gateway.listeners.len(), 1);
    assert!(commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")])).is_empty());
}

#[test]
fn a_bootstrap_that_is_rejected_changes_nothing() {
    let mut store = ResourceStore::new(bootstrap_with_ads(), Trust::default());
    let cluster = json!({ "name": "c", "type": "STATIC" });
    commit(&mut store, &update(ResourceType::Cluster, std::slice::from_ref(&cluster)));
    // It takes the cluster's name, and has two listeners with the same address.
    let bad = ADS.replace("  clusters:\n", "  clusters:\n  - {name: c, type: STATIC}\n");
    let static_listener = |name| {
        format!(
            "  - {{name: {name}, address: {{socket_address: {{address: 127.0.0.1, port_value: 8443}}}}, filter_chains: [{{filters: \
             [{{name: tcp, typed_config: {{'@type': type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, \
             stat_prefix: x, cluster: c}}}}]}}]}}\n"
        )
    };
    let bad = format!("{bad}  listeners:\n{}{}", static_listener("one"), static_listener("two"));
    let problems = store.prepare_bootstrap(bootstrap(&bad, "bootstrap.yaml").unwrap()).unwrap_err();
    assert!(problems.lines()[0].contains("already has this address"), "{problems:?}");
    assert!(
        commit(&mut store, &update(ResourceType::Cluster, &[cluster])).is_empty(),
        "it is not read again"
    );
    commit(&mut store, &update(ResourceType::Cluster, &[]));
    assert!(!store.active().clusters.contains_key("c"), "and it goes when the control plane drops it");
}

/// The gateway may still reject it: a certificate may be missing, or an address in use.
#[test]
fn a_bootstrap_is_active_once_the_gateway_serves_it() {
    let xds = XdsManager::new(bootstrap_with_ads(), Trust::default());
    let more = ADS.replace("  clusters:\n", "  clusters:\n  - {name: c, type: STATIC}\n");
    let prepare = || xds.prepare_bootstrap(bootstrap(&more, "bootstrap.yaml").unwrap()).unwrap();
    let is_active = || xds.active().resources.contains(ResourceType::Cluster, "c");
    assert!(prepare().upstreams.contains_key("c"));
    assert!(!is_active() && !xds.bootstrap().resources.contains(ResourceType::Cluster, "c"));
    xds.commit_bootstrap();
    assert!(is_active());
    xds.commit_bootstrap();
    assert!(is_active(), "nothing new was prepared");
}

#[test]
fn each_control_plane_is_sent_the_subscriptions_for_its_resources() {
    let bootstrap = bootstrap_with_ads();
    let control_planes = ControlPlanes::new(&bootstrap).unwrap();
    let mut store = ResourceStore::new(bootstrap, Trust::default());
    commit(&mut store, &update(ResourceType::Listener, &[listener("l", "a")]));
    let required = control_planes.required_streams(store.dynamic(), &store.references());
    assert_eq!(required.len(), 1);
    let (stream, interests) = &required[0];
    assert_eq!(interests[&ResourceType::Listener], Interest::Wildcard);
    assert_eq!(interests[&ResourceType::Routes], Interest::Names(["a".to_owned()].into()));
    let client = control_planes.client(stream).unwrap();
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
fn a_control_plane_that_is_not_a_cluster_is_named() {
    let text = ADS.replace("cluster_name: plane}}]", "cluster_name: elsewhere}}]").replace("{id: g, ", "{");
    let bootstrap = bootstrap(&text, "bootstrap.yaml").unwrap();
    let Err(problems) = ControlPlanes::new(&bootstrap) else { panic!("the cluster does not exist") };
    assert!(problems.lines()[0].contains("`elsewhere` is not a cluster of the bootstrap"), "{problems:?}");
    assert!(problems.lines()[1].contains("node.id is missing"), "{problems:?}");
}
