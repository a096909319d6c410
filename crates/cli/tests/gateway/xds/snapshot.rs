//! Snapshots of the control plane, in protobuf's JSON.

use crate::support::Pair;
use serde_json::{Value, json};
use std::path::Path;

/// A site: one listener with its routes, cluster and secrets.
pub struct Snapshot {
    pub version: u64,
    /// Name of the listener.
    pub port: u16,
    upstream: u16,
    pub route_name: String,
    pub chain_name: String,
    pub secrets: Vec<Value>,
    /// Direct response instead of the upstream.
    pub answer: Option<String>,
    pub with_routes: bool,
    pub with_listener: bool,
    pub more_listeners: Vec<Value>,
    more_chains: Vec<Value>,
    pub more_routes: Vec<Value>,
}

impl Snapshot {
    pub fn new(port: u16, upstream: u16) -> Self {
        Self {
            version: 1,
            port,
            upstream,
            route_name: "routes".into(),
            chain_name: "chain".into(),
            secrets: Vec::new(),
            answer: None,
            with_routes: true,
            with_listener: true,
            more_listeners: Vec::new(),
            more_chains: Vec::new(),
            more_routes: Vec::new(),
        }
    }

    pub fn json(&self) -> Value {
        let mut listeners = self.more_listeners.clone();
        if self.with_listener {
            listeners.push(self.listener());
        }
        let routes = if self.with_routes { vec![self.routes()] } else { vec![] };
        json!({
            "version": self.version.to_string(),
            "clusters": [{
                "name": "web", "type": "EDS", "connect_timeout": "1s",
                "eds_cluster_config": { "eds_config": { "ads": {}, "resource_api_version": "V3" } },
            }],
            "endpoints": [{ "cluster_name": "web", "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": {
                "socket_address": { "address": "127.0.0.1", "port_value": self.upstream } } } }] }] }],
            "listeners": listeners,
            "routes": routes,
            "secrets": self.secrets,
        })
    }

    pub fn listener(&self) -> Value {
        let mut chains = self.more_chains.clone();
        chains.push(self.chain(&self.chain_name, "site", None));
        json!({
            "name": "main",
            "address": { "socket_address": { "address": "127.0.0.1", "port_value": self.port } },
            "listener_filters": [{ "name": "tls_inspector", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector" } }],
            "filter_chains": chains,
        })
    }

    fn chain(&self, name: &str, secret: &str, server_name: Option<&str>) -> Value {
        let accepts = server_name.map_or(json!({}), |name| json!({ "server_names": [name] }));
        json!({
            "name": name,
            "filter_chain_match": accepts,
            "transport_socket": { "name": "tls", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
                "common_tls_context": { "tls_certificate_sds_secret_configs": [
                    { "name": secret, "sds_config": { "ads": {}, "resource_api_version": "V3" } },
                ] },
            } },
            "filters": [{ "name": "http", "typed_config": {
                "@type": HCM,
                "stat_prefix": "main",
                "rds": { "route_config_name": self.route_name, "config_source": { "ads": {}, "resource_api_version": "V3" } },
                "http_filters": [router()],
            } }],
        })
    }

    fn routes(&self) -> Value {
        let mut routes = self.more_routes.clone();
        routes.push(match &self.answer {
            Some(answer) => respond("/", answer),
            None => json!({ "match": { "prefix": "/" }, "route": { "cluster": "web" } }),
        });
        json!({ "name": self.route_name, "virtual_hosts": [{ "name": "all", "domains": ["*"], "routes": routes }] })
    }

    /// Adds this many secrets, each for its own name, and this many routes.
    pub fn many(&mut self, secrets: usize, routes: usize, pair: &Pair) {
        for n in 0..secrets {
            let name = format!("secret-{n}");
            self.secrets.push(secret(&name, pair));
            let chain = self.chain(&name, &name, Some(&format!("site-{n}.example.com")));
            self.more_chains.push(chain);
        }
        self.more_routes =
            (0..routes).map(|n| respond(&format!("/api/{n}/"), &format!("route {n}"))).collect();
    }

    /// Replaces the last secret with one of the same content but different text; returns its name.
    pub fn rename_last_secret(&mut self, pair: &Pair) -> String {
        let last = self.secrets.pop().expect("secrets");
        let name = last["name"].as_str().expect("a name").to_owned();
        let mut changed = secret(&name, pair);
        let chain = changed["tls_certificate"]["certificate_chain"]["inline_string"].take();
        let chain = format!("# renewed\n{}", chain.as_str().expect("PEM"));
        changed["tls_certificate"]["certificate_chain"]["inline_string"] = json!(chain);
        self.secrets.push(changed);
        name
    }
}

/// A certificate with its key.
pub fn secret(name: &str, pair: &Pair) -> Value {
    let read = |path: &Path| std::fs::read_to_string(path).expect("PEM");
    json!({ "name": name, "tls_certificate": {
        "certificate_chain": { "inline_string": read(&pair.chain) },
        "private_key": { "inline_string": read(&pair.key) },
    } })
}

fn respond(prefix: &str, answer: &str) -> Value {
    json!({ "match": { "prefix": prefix }, "direct_response": { "status": 200, "body": { "inline_string": answer } } })
}

fn router() -> Value {
    json!({ "name": "envoy.filters.http.router", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" } })
}

const HCM: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Returns a bootstrap with its own listener, whose secret is served by an agent on a Unix socket.
pub fn with_agent(socket: &Path, port: u16) -> String {
    format!(
        "
node: {{ id: sidecar~10.0.0.1~pod.namespace~namespace.svc.cluster.local, cluster: pod }}
static_resources:
  clusters:
  - name: sds-grpc
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        '@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{ http2_protocol_options: {{}} }}
    connect_timeout: 1s
    load_assignment:
      cluster_name: sds-grpc
      endpoints: [ {{ lb_endpoints: [ {{ endpoint: {{ address: {{ pipe: {{ path: {socket} }} }} }} }} ] }} ]
  listeners:
  - name: main
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificate_sds_secret_configs:
            - name: default
              sds_config:
                initial_fetch_timeout: 0s
                resource_api_version: V3
                api_config_source:
                  api_type: GRPC
                  transport_api_version: V3
                  set_node_on_first_message_only: true
                  grpc_services: [ {{ envoy_grpc: {{ cluster_name: sds-grpc }} }} ]
      filters:
      - name: http
        typed_config:
          '@type': {HCM}
          stat_prefix: main
          route_config:
            virtual_hosts:
            - name: all
              domains: [ '*' ]
              routes:
              - match: {{ prefix: / }}
                direct_response: {{ status: 200, body: {{ inline_string: from the mesh }} }}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
",
        socket = socket.display()
    )
}
