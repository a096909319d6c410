//! Listeners and how their connections are told apart.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

pub(crate) const LISTENER: Schema = Schema {
    name: "envoy.config.listener.v3.Listener",
    fields: &[
        ("name", Read("for logs and statistics; without it, the address")),
        ("address", Read("an IP address; UDP is for HTTP/3")),
        ("stat_prefix", Accepted("statistics are counted by address")),
        ("filter_chains", Read("")),
        ("default_filter_chain", Read("")),
        ("listener_filters", Read("TLS inspector, HTTP inspector, PROXY protocol, original destination")),
        ("listener_filters_timeout", Read("")),
        (
            "continue_on_listener_filters_timeout",
            Read("without it, a client that has not said enough in time is closed"),
        ),
        (
            "use_original_dst",
            Read(
                "a redirected connection goes to the listener with `bind_to_port: false` for its destination",
            ),
        ),
        ("bind_to_port", Read("without, the listener takes what `use_original_dst` of another hands over")),
        ("udp_listener_config", Read("with an address of UDP")),
        ("api_listener", Refused("there is no library mode")),
        ("internal_listener", Refused("there are no internal listeners")),
        ("additional_addresses", Read("of TCP")),
        ("filter_chain_matcher", Refused("write `filter_chain_match`")),
        ("transparent", Refused("connections are redirected by `REDIRECT`, not by `TPROXY`")),
        ("per_connection_buffer_limit_bytes", Accepted("buffers are bounded")),
        ("traffic_direction", Read("for the names of spans")),
        ("metadata", Accepted("")),
        ("access_log", Ignored("requests and connections are recorded, by the filter that serves them")),
        ("enable_reuse_port", Accepted("every event loop has its socket")),
        ("reuse_port", Accepted("every event loop has its socket")),
        ("drain_type", Accepted("")),
        ("freebind", Refused("the address must be there")),
        ("socket_options", Ignored("the sockets have the options that a gateway needs")),
        ("tcp_fast_open_queue_length", Ignored("")),
        ("tcp_backlog_size", Ignored("")),
        ("max_connections_to_accept_per_socket_event", Ignored("")),
        ("connection_balance_config", Ignored("the kernel balances")),
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
        ("socket_options", Ignored("the sockets have the options that a gateway needs")),
        ("tcp_keepalive_override", Ignored("the sockets have the options that a gateway needs")),
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
        ("destination_port", Read("another than the listener's own only where connections are redirected")),
        ("prefix_ranges", Read("")),
        ("address_suffix", Refused("")),
        ("suffix_len", Refused("")),
        ("direct_source_prefix_ranges", Read("the peer, whatever the PROXY protocol announces")),
        ("source_prefix_ranges", Read("")),
        ("source_type", Read("")),
        ("source_ports", Read("")),
    ],
    others: STRICT,
};

pub(crate) const FILTER: Schema = Schema {
    name: "envoy.config.listener.v3.Filter",
    fields: &[
        ("name", Read("the type of `typed_config` decides, where there is one")),
        ("typed_config", Read("")),
        ("config_discovery", Refused("filters are not fetched")),
        ("is_optional", Read("")),
        ("disabled", Read("")),
    ],
    others: STRICT,
};

pub(crate) const LISTENER_FILTER: Schema = Schema {
    name: "envoy.config.listener.v3.ListenerFilter",
    fields: &[
        ("name", Read("the type of `typed_config` decides, where there is one")),
        ("typed_config", Read("")),
        ("config_discovery", Refused("filters are not fetched")),
        ("filter_disabled", Read("of inspectors, by the destination port")),
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
        ("rules", Ignored("what the header says besides addresses is dropped")),
        ("allow_requests_without_proxy_protocol", Refused("a header is required")),
        ("disallowed_versions", Ignored("both versions are understood")),
        ("pass_through_tlvs", Ignored("what the header says besides addresses is dropped")),
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
        ("idle_timeout", Read("without it, an hour")),
        ("access_log", Read("in Quadrille's own form; of the process: the first that is given holds")),
        ("access_log_options", Ignored("records have Quadrille's own form")),
        ("access_log_flush_interval", Ignored("records have Quadrille's own form")),
        ("max_connect_attempts", Ignored("the cluster's other servers are tried once")),
        ("metadata_match", Refused("servers have no subsets")),
        ("hash_policy", Ignored("`RING_HASH` goes by the client's address")),
        ("tunneling_config", Refused("there is no tunnel")),
        ("max_downstream_connection_duration", Ignored("connections may last")),
        ("on_demand", Refused("clusters are not fetched for a connection")),
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
        ("metadata_match", Refused("servers have no subsets")),
    ],
    others: HARMLESS,
};
