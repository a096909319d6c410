//! Envoy's configuration file, which this project's gateway reads as well.

use super::setup::{Filters, Protocol, Setup};
use crate::scenario::Resumption;

/// Filters before the router: external authorization, and compression with each one's defaults.
const FILTERS: &str = include_str!("../../rivals/envoy-filters.yaml");
const HTTP3: &str = include_str!("../../rivals/envoy-http3.yaml");

/// Returns the placeholders and their values. Values may have further placeholders.
pub(super) fn placeholders(setup: &Setup<'_>) -> Vec<(&'static str, String)> {
    let has_filters = setup.behind.filters.is_some();
    vec![
        ("@http3@", if setup.http3 { HTTP3 } else { "" }.to_owned()),
        ("@filters@", if has_filters { FILTERS } else { "" }.to_owned()),
        ("@sessions@", (setup.resumption == Resumption::Off).to_string()),
        ("@answer@", action(setup)),
        ("@upstreams@", clusters(setup)),
    ]
}

fn action(setup: &Setup<'_>) -> String {
    if setup.upstream.is_none() {
        return "direct_response: { status: 200, body: { inline_string: ok } }".into();
    }
    let filters = match setup.behind.filters {
        None => "",
        Some(_) => {
            ", retry_policy: { retry_on: \"connect-failure,refused-stream,reset,gateway-error\", num_retries: 2 }, \
             request_mirror_policies: [{ cluster: mirror }]"
        }
    };
    // By default, a response is cut off after 15 seconds.
    format!(
        "route: {{ cluster: upstream, timeout: 0s, upgrade_configs: [{{ upgrade_type: websocket }}]{filters} }}"
    )
}

fn clusters(setup: &Setup<'_>) -> String {
    let mut all = Vec::new();
    if let Some(upstream) = setup.upstream {
        all.push(cluster("upstream", upstream.port(), setup.behind.origin));
    }
    if let Some(Filters { authorization, mirror }) = setup.behind.filters {
        all.push(cluster("authorization", authorization.port(), Protocol::Http1));
        all.push(cluster("mirror", mirror.port(), Protocol::Http1));
    }
    format!("[{}]", all.join(", "))
}

fn cluster(name: &str, port: u16, protocol: Protocol) -> String {
    const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let http2 = match protocol {
        Protocol::Http1 => String::new(),
        Protocol::Http2 => format!(
            "typed_extension_protocol_options: {{ {OPTIONS}: {{ \"@type\": type.googleapis.com/{OPTIONS}, \
             explicit_http_config: {{ http2_protocol_options: {{}} }} }} }}, "
        ),
    };
    format!(
        "{{ name: {name}, connect_timeout: 5s, {http2}load_assignment: {{ cluster_name: {name}, endpoints: [{{ \
         lb_endpoints: [{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} \
         }} }} }} }}] }}] }} }}"
    )
}
