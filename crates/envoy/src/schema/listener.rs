//! Listeners and filter chain matching.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

pub(crate) const LISTENER: Schema = Schema {
    name: "envoy.config.listener.v3.Listener",
    fields: &[
        ("name", Read("for logs and statistics; the address if omitted")),
        ("address", Read("an IP address; UDP is for HTTP/3")),
        ("stat_prefix", Accepted("statistics are counted by address")),
        ("filter_chains", Read("")),
        ("default_filter_chain", Read("")),
        ("listener_filters", Read("TLS inspector, HTTP inspector, PROXY protocol, original destination")),
        ("listener_filters_timeout", Read("")),
        (
            "continue_on_listener_filters_timeout",
            Read("without it, a client that has not sent enough data in time is disconnected"),
        ),
        (
            "use_original_dst",
            Read(
                "redirected connections go to the listener with `bind_to_port: false` for their destination",
            ),
        ),
        ("bind_to_port", Read("if false, the listener accepts connections from one with `use_original_dst`")),
        ("udp_listener_config", Read("for UDP addresses")),
        ("api_listener", Refused("library mode is not supported")),
        ("internal_listener", Refused("internal listeners are not supported")),
        ("additional_addresses", Read("for TCP")),
        ("filter_chain_matcher", Refused("write `filter_chain_match`")),
        ("transparent", Refused("connections are redirected by `REDIRECT`, not by `TPROXY`")),
        ("per_connection_buffer_limit_bytes", Accepted("buffers are bounded")),
        ("traffic_direction", Read("for span names")),
        ("metadata", Accepted("")),
        ("access_log", Ignored("use the access log of the terminal filter")),
        ("enable_reuse_port", Accepted("every event loop has its own socket")),
        ("reuse_port", Accepted("every event loop has its own socket")),
        ("drain_type", Accepted("")),
        ("freebind", Refused("the address must exist")),
        ("socket_options", Ignored("socket options are fixed")),
        ("tcp_fast_open_queue_length", Ignored("")),
        ("tcp_backlog_size", Ignored("")),
        ("max_connections_to_accept_per_socket_event", Ignored("")),
        ("connection_balance_config", Ignored("the kernel balances connections")),
        ("enable_mptcp", Ignored("")),
        ("ignore_global_conn_limit", Ignored("")),
        ("bypass_overload_manager", Ignored("")),
    ],
    others: HARMLESS,
};

pub(crate) const ADDITIONAL_ADDRESS: Schema = Schema {
    name: "envoy.config.listener.v3.AdditionalAddress",
    fields: &[
        ("address", Read("")),
        ("socket_options", Ignored("socket options are fixed")),
        ("tcp_keepalive_override", Ignored("socket options are fixed")),
    ],
    others: HARMLESS,
};

pub(crate) const FILTER_CHAIN: Schema = Schema {
    name: "envoy.config.listener.v3.FilterChain",
    fields: &[
        ("name", Read("")),
        ("filter_chain_match", Read("")),
        ("filters", Read("")),
        ("transport_socket", Read("")),
        ("transport_socket_connect_timeout", Read("")),
        ("use_proxy_proto", Refused("write the listener filter `envoy.filters.listener.proxy_protocol`")),
        ("metadata", Accepted("")),
        ("on_demand_configuration", Ignored("")),
    ],
    others: STRICT,
};

pub(crate) const FILTER_CHAIN_MATCH: Schema = Schema {
    name: "envoy.config.listener.v3.FilterChainMatch",
    fields: &[
        ("server_names", Read("")),
        ("transport_protocol", Read("`tls` and `raw_buffer`; on UDP, `quic`")),
        ("application_protocols", Read("")),
        ("destination_port", Read("other ports than the listener's only for redirected connections")),
        ("prefix_ranges", Read("")),
        ("address_suffix", Refused("")),
        ("suffix_len", Refused("")),
        ("direct_source_prefix_ranges", Read("the direct peer, regardless of the PROXY protocol")),
        ("source_prefix_ranges", Read("")),
        ("source_type", Read("")),
        ("source_ports", Read("")),
    ],
    others: STRICT,
};

pub(crate) const FILTER: Schema = Schema {
    name: "envoy.config.listener.v3.Filter",
    fields: &[
        ("name", Read("the type of `typed_config` is used if set")),
        ("typed_config", Read("")),
        ("config_discovery", Refused("ECDS is not supported")),
        ("is_optional", Read("")),
        ("disabled", Read("")),
    ],
    others: STRICT,
};

pub(crate) const LISTENER_FILTER: Schema = Schema {
    name: "envoy.config.listener.v3.ListenerFilter",
    fields: &[
        ("name", Read("the type of `typed_config` is used if set")),
        ("typed_config", Read("")),
        ("config_discovery", Refused("ECDS is not supported")),
        ("filter_disabled", Read("for inspectors, by the destination port")),
    ],
    others: STRICT,
};

pub(crate) const LISTENER_PREDICATE: Schema = Schema {
    name: "envoy.config.listener.v3.ListenerFilterChainMatchPredicate",
    fields: &[
        ("or_match", Read("")),
        ("and_match", Read("")),
        ("not_match", Read("")),
        ("any_match", Read("")),
        ("destination_port_range", Read("")),
    ],
    others: STRICT,
};

pub(crate) const LISTENER_PREDICATE_SET: Schema = Schema {
    name: "envoy.config.listener.v3.ListenerFilterChainMatchPredicate.MatchSet",
    fields: &[("rules", Read(""))],
    others: STRICT,
};

pub(crate) const PROXY_PROTOCOL: Schema = Schema {
    name: "envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol",
    fields: &[
        ("rules", Ignored("only the header's addresses are used")),
        ("allow_requests_without_proxy_protocol", Refused("a header is required")),
        ("disallowed_versions", Ignored("both versions are supported")),
        ("pass_through_tlvs", Ignored("only the header's addresses are used")),
        ("stat_prefix", Accepted("")),
    ],
    others: STRICT,
};

pub(crate) const TCP_PROXY: Schema = Schema {
    name: "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
    fields: &[
        ("stat_prefix", Accepted("")),
        ("cluster", Read("")),
        ("weighted_clusters", Read("")),
        ("idle_timeout", Read("one hour if omitted")),
        ("access_log", Read("in Quadrille's own format; process-wide: the first one applies")),
        ("access_log_options", Ignored("records have Quadrille's own format")),
        ("access_log_flush_interval", Ignored("records have Quadrille's own format")),
        ("max_connect_attempts", Ignored("the cluster's other endpoints are tried once")),
        ("metadata_match", Refused("subsets are not supported")),
        ("hash_policy", Ignored("`RING_HASH` uses the client's address")),
        ("tunneling_config", Refused("tunnels are not supported")),
        ("max_downstream_connection_duration", Ignored("no limit")),
        ("on_demand", Refused("on-demand clusters are not supported")),
    ],
    others: HARMLESS,
};

pub(crate) const TCP_WEIGHTED: Schema = Schema {
    name: "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster",
    fields: &[("clusters", Read(""))],
    others: HARMLESS,
};

pub(crate) const TCP_CLUSTER_WEIGHT: Schema = Schema {
    name: "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight",
    fields: &[
        ("name", Read("")),
        ("weight", Read("")),
        ("metadata_match", Refused("subsets are not supported")),
    ],
    others: HARMLESS,
};
