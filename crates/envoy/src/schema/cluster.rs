//! Clusters, their endpoints, and health checks.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

pub(crate) const CLUSTER: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster",
    fields: &[
        ("name", Read("")),
        ("alt_stat_name", Accepted("statistics are counted by name")),
        ("type", Read("`STATIC`, `STRICT_DNS`, `LOGICAL_DNS`, `EDS`, `ORIGINAL_DST`")),
        ("cluster_type", Refused("write `type`")),
        ("eds_cluster_config", Read("")),
        ("connect_timeout", Read("")),
        ("load_assignment", Read("")),
        (
            "lb_policy",
            Read(
                "`ROUND_ROBIN`; `LEAST_REQUEST`, of two choices; `RANDOM`; `RING_HASH` and `MAGLEV` by the route's `hash_policy`, both by ketama; `CLUSTER_PROVIDED` with `ORIGINAL_DST`",
            ),
        ),
        ("load_balancing_policy", Read("the first supported policy, as for `lb_policy`")),
        ("health_checks", Read("one")),
        ("transport_socket", Read("")),
        ("transport_socket_matches", Read("the first that matches an endpoint's metadata")),
        (
            "typed_extension_protocol_options",
            Read("`envoy.extensions.upstreams.http.v3.HttpProtocolOptions`"),
        ),
        ("http_protocol_options", Read("HTTP/1.1")),
        ("http2_protocol_options", Read("HTTP/2")),
        ("common_http_protocol_options", Read("")),
        ("upstream_http_protocol_options", Read("")),
        ("protocol_selection", Ignored("")),
        ("dns_lookup_family", Read("`AUTO` uses all addresses")),
        ("dns_refresh_rate", Read("at least 1 s")),
        (
            "dns_failure_refresh_rate",
            Ignored("failed lookups are retried after 1 s, with backoff up to 30 s"),
        ),
        ("dns_jitter", Ignored("")),
        ("respect_dns_ttl", Read("at least 1 s, at most 10 min")),
        ("dns_resolvers", Ignored("the servers in `/etc/resolv.conf` are queried")),
        ("use_tcp_for_dns_lookups", Ignored("the servers in `/etc/resolv.conf` are queried")),
        ("dns_resolution_config", Ignored("the servers in `/etc/resolv.conf` are queried")),
        ("typed_dns_resolver_config", Ignored("the servers in `/etc/resolv.conf` are queried")),
        ("wait_for_warm_on_init", Accepted("")),
        ("circuit_breakers", Read("")),
        ("outlier_detection", Read("")),
        ("cleanup_interval", Accepted("idle connections have a timeout")),
        ("upstream_bind_config", Read("")),
        ("lb_subset_config", Refused("subsets are not supported")),
        ("ring_hash_lb_config", Ignored("ketama with its own ring")),
        ("maglev_lb_config", Ignored("ketama with its own ring")),
        ("least_request_lb_config", Read("the one of two endpoints with fewer requests, as by default")),
        ("round_robin_lb_config", Read("")),
        ("original_dst_lb_config", Read("with `ORIGINAL_DST`")),
        ("common_lb_config", Read("")),
        ("metadata", Accepted("")),
        ("upstream_connection_options", Ignored("")),
        ("close_connections_on_host_health_failure", Ignored("connections in use are not closed")),
        ("ignore_health_on_host_removal", Accepted("")),
        ("filters", Read("filters without effect here")),
        ("track_timeout_budgets", Ignored("")),
        ("track_cluster_stats", Ignored("")),
        ("upstream_config", Ignored("")),
        ("preconnect_policy", Ignored("")),
        ("connection_pool_per_downstream_connection", Refused("connections are always shared")),
        ("max_requests_per_connection", Ignored("no limit")),
        ("per_connection_buffer_limit_bytes", Accepted("buffers are bounded")),
        ("lrs_server", Ignored("load reporting is not supported")),
    ],
    others: HARMLESS,
};

pub(crate) const ORIGINAL_DST_CONFIG: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.OriginalDstLbConfig",
    fields: &[
        ("use_http_header", Refused("clients could select any endpoint")),
        ("http_header_name", Refused("clients could select any endpoint")),
        ("upstream_port_override", Read("")),
        ("metadata_key", Refused("the connection has the original destination")),
    ],
    others: STRICT,
};

pub(crate) const BIND_CONFIG: Schema = Schema {
    name: "envoy.config.core.v3.BindConfig",
    fields: &[
        ("source_address", Read("an IP address; of several, the first of the endpoint's family")),
        ("extra_source_addresses", Read("")),
        ("additional_source_addresses", Refused("write `extra_source_addresses`")),
        ("freebind", Refused("the address must exist")),
        ("socket_options", Ignored("socket options are fixed")),
        ("local_address_selector", Refused("the first address of the endpoint's family is used")),
    ],
    others: STRICT,
};

pub(crate) const EXTRA_SOURCE_ADDRESS: Schema = Schema {
    name: "envoy.config.core.v3.ExtraSourceAddress",
    fields: &[("address", Read("")), ("socket_options", Ignored("socket options are fixed"))],
    others: STRICT,
};

pub(crate) const PERCENT: Schema = Schema {
    name: "envoy.type.v3.Percent",
    fields: &[("value", Read("rounded to a whole number"))],
    others: HARMLESS,
};

pub(crate) const COMMON_LB: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.CommonLbConfig",
    fields: &[
        ("locality_weighted_lb_config", Read("")),
        ("healthy_panic_threshold", Read("50 % if omitted")),
        ("zone_aware_lb_config", Ignored("zones are not preferred")),
        ("update_merge_window", Ignored("changes take effect at once")),
        ("ignore_new_hosts_until_first_hc", Ignored("an endpoint that was not checked is healthy")),
        ("close_connections_on_host_set_change", Ignored("connections in use are not closed")),
        ("consistent_hashing_lb_config", Ignored("ketama with its own ring")),
        ("override_host_status", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const ROUND_ROBIN: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.RoundRobinLbConfig",
    fields: &[("slow_start_config", Read(""))],
    others: HARMLESS,
};

pub(crate) const LEAST_REQUEST: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.LeastRequestLbConfig",
    fields: &[
        ("choice_count", Ignored("2")),
        ("active_request_bias", Ignored("loads are compared by weight")),
        ("slow_start_config", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const SLOW_START: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.SlowStartConfig",
    fields: &[
        ("slow_start_window", Read("the share of a new or recovered endpoint grows linearly")),
        ("aggression", Ignored("1.0")),
        ("min_weight_percent", Ignored("10 %")),
    ],
    others: HARMLESS,
};

pub(crate) const SOCKET_MATCH: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.TransportSocketMatch",
    fields: &[
        ("name", Accepted("")),
        (
            "match",
            Read("scalars of `filter_metadata` under `envoy.transport_socket_match`; empty matches all"),
        ),
        ("transport_socket", Read("")),
    ],
    others: STRICT,
};

pub(crate) const PROXY_PROTOCOL_UPSTREAM: Schema = Schema {
    name: "envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport",
    fields: &[
        ("config", Read("")),
        ("transport_socket", Read("")),
        ("allow_unspecified_address", Accepted("addresses are always known")),
        ("tlv_as_pool_key", Ignored("connections are shared by the requests of one client only")),
    ],
    others: STRICT,
};

pub(crate) const PROXY_PROTOCOL_CONFIG: Schema = Schema {
    name: "envoy.config.core.v3.ProxyProtocolConfig",
    fields: &[
        ("version", Read("`V1`, `V2`")),
        ("pass_through_tlvs", Refused("headers contain only addresses")),
        ("added_tlvs", Refused("headers contain only addresses")),
    ],
    others: STRICT,
};

pub(crate) const EDS_CONFIG: Schema = Schema {
    name: "envoy.config.cluster.v3.Cluster.EdsClusterConfig",
    fields: &[("eds_config", Read("")), ("service_name", Read(""))],
    others: HARMLESS,
};

pub(crate) const LOAD_ASSIGNMENT: Schema = Schema {
    name: "envoy.config.endpoint.v3.ClusterLoadAssignment",
    fields: &[
        ("cluster_name", Read("")),
        ("endpoints", Read("")),
        ("named_endpoints", Ignored("")),
        ("policy", Ignored("requests are not dropped, and endpoints do not expire")),
    ],
    others: HARMLESS,
};

pub(crate) const LOCALITY_ENDPOINTS: Schema = Schema {
    name: "envoy.config.endpoint.v3.LocalityLbEndpoints",
    fields: &[
        ("locality", Accepted("zones are not preferred")),
        ("lb_endpoints", Read("")),
        ("load_balancer_endpoints", Refused("write `lb_endpoints`")),
        ("leds_cluster_locality_config", Refused("LEDS is not supported")),
        (
            "load_balancing_weight",
            Read(
                "with `locality_weighted_lb_config`: a locality without one gets no load if others have one",
            ),
        ),
        ("priority", Read("the first with a healthy endpoint gets all requests")),
        ("proximity", Ignored("")),
        ("metadata", Read("used by `transport_socket_matches`")),
    ],
    others: HARMLESS,
};

pub(crate) const LB_ENDPOINT: Schema = Schema {
    name: "envoy.config.endpoint.v3.LbEndpoint",
    fields: &[
        ("endpoint", Read("")),
        ("endpoint_name", Refused("write `endpoint`")),
        ("health_status", Read("`UNHEALTHY`, `DRAINING` and `TIMEOUT` remove an endpoint")),
        ("load_balancing_weight", Read("")),
        ("metadata", Read("used by `transport_socket_matches`")),
    ],
    others: HARMLESS,
};

pub(crate) const ENDPOINT: Schema = Schema {
    name: "envoy.config.endpoint.v3.Endpoint",
    fields: &[
        ("address", Read("")),
        ("health_check_config", Ignored("health checks use the endpoint's own port")),
        ("hostname", Ignored("the address is used as the host")),
        ("additional_addresses", Ignored("the first address is used")),
    ],
    others: HARMLESS,
};

pub(crate) const HEALTH_CHECK: Schema = Schema {
    name: "envoy.config.core.v3.HealthCheck",
    fields: &[
        ("timeout", Read("")),
        ("interval", Read("")),
        ("unhealthy_threshold", Read("")),
        ("healthy_threshold", Read("")),
        ("http_health_check", Read("")),
        ("tcp_health_check", Read("connects; no data is sent")),
        ("grpc_health_check", Read("over HTTP/2, which the cluster must use")),
        (
            "custom_health_check",
            Refused("use `http_health_check`, `tcp_health_check` or `grpc_health_check`"),
        ),
        ("initial_jitter", Ignored("")),
        ("interval_jitter", Ignored("")),
        ("interval_jitter_percent", Ignored("")),
        ("alt_port", Refused("health checks use the endpoint's own port")),
        ("reuse_connection", Ignored("")),
        ("no_traffic_interval", Ignored("`interval` applies")),
        ("no_traffic_healthy_interval", Ignored("`interval` applies")),
        ("unhealthy_interval", Ignored("`interval` applies")),
        ("unhealthy_edge_interval", Ignored("`interval` applies")),
        ("healthy_edge_interval", Ignored("`interval` applies")),
        ("event_log_path", Ignored("")),
        ("event_logger", Ignored("")),
        ("always_log_health_check_failures", Ignored("")),
        ("always_log_health_check_success", Ignored("")),
        ("tls_options", Ignored("")),
        ("transport_socket_match_criteria", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const GRPC_HEALTH_CHECK: Schema = Schema {
    name: "envoy.config.core.v3.HealthCheck.GrpcHealthCheck",
    fields: &[
        ("service_name", Read("the server as a whole if omitted")),
        ("authority", Read("the endpoint's host if omitted")),
        ("initial_metadata", Ignored("checks carry no metadata")),
    ],
    others: HARMLESS,
};

pub(crate) const HTTP_HEALTH_CHECK: Schema = Schema {
    name: "envoy.config.core.v3.HealthCheck.HttpHealthCheck",
    fields: &[
        ("path", Read("")),
        ("host", Read("the endpoint's host if omitted")),
        ("send", Ignored("")),
        ("receive", Ignored("the body is not checked")),
        ("request_headers_to_add", Ignored("")),
        ("request_headers_to_remove", Ignored("")),
        ("expected_statuses", Read("200 if omitted")),
        ("retriable_statuses", Ignored("")),
        ("codec_client_type", Ignored("HTTP/1.1 is used")),
        ("service_name_matcher", Ignored("")),
        ("method", Read("GET if omitted")),
        ("response_buffer_size", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const LB_POLICY: Schema = Schema {
    name: "envoy.config.cluster.v3.LoadBalancingPolicy",
    fields: &[("policies", Read(""))],
    others: HARMLESS,
};

pub(crate) const LB_POLICY_ITEM: Schema = Schema {
    name: "envoy.config.cluster.v3.LoadBalancingPolicy.Policy",
    fields: &[("typed_extension_config", Read(""))],
    others: HARMLESS,
};

pub(crate) const TYPED_EXTENSION: Schema = Schema {
    name: "envoy.config.core.v3.TypedExtensionConfig",
    fields: &[("name", Accepted("the type of `typed_config` is used")), ("typed_config", Read(""))],
    others: HARMLESS,
};
