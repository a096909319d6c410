//! UDP listeners for HTTP/3.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

const BUILT_IN: super::FieldPolicy = Ignored("limits are the built-in ones");

pub(crate) const UDP_LISTENER: Schema = Schema {
    name: "envoy.config.listener.v3.UdpListenerConfig",
    fields: &[
        ("quic_options", Read("required: HTTP/3 is the only protocol served over UDP")),
        ("downstream_socket_config", Accepted("GRO is used where the kernel supports it")),
        ("udp_packet_packet_writer_config", Accepted("GSO is used where the kernel supports it")),
    ],
    others: HARMLESS,
};

pub(crate) const QUIC_OPTIONS: Schema = Schema {
    name: "envoy.config.listener.v3.QuicProtocolOptions",
    fields: &[
        ("quic_protocol_options", BUILT_IN),
        (
            "idle_timeout",
            Read("5 minutes if omitted; at least 30 seconds; `common_http_protocol_options` may set less"),
        ),
        ("crypto_handshake_timeout", Read("20 seconds if omitted; at least 5")),
        ("enabled", Refused("to disable HTTP/3, remove the listener")),
        ("packets_to_read_to_connection_count_ratio", Accepted("the event loop is fair")),
        ("crypto_stream_config", Refused("custom handshakers are not supported")),
        ("proof_source_config", Refused("certificates are chosen by SNI and key type")),
        (
            "connection_id_generator_config",
            Refused("connection IDs contain the event loop, and load balancers cannot read them"),
        ),
        ("server_preferred_address_config", Refused("clients keep the address they connected to")),
        ("send_disable_active_migration", Ignored("clients may migrate")),
        ("connection_debug_visitor_config", Ignored("")),
        ("save_cmsg_config", Ignored("")),
        ("reject_new_connections", Refused("to disable HTTP/3, remove the listener")),
        ("max_sessions_per_event_loop", BUILT_IN),
    ],
    others: HARMLESS,
};

pub(crate) const QUIC_TRANSPORT: Schema = Schema {
    name: "envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
    fields: &[
        (
            "downstream_tls_context",
            Read(
                "TLS 1.3; ALPN is `h3`; with a validation context, certificates are requested from clients even if not required",
            ),
        ),
        ("enable_early_data", Accepted("early data is disabled: clients complete the handshake first")),
        ("enable_resumption", Read("`false` is process-wide: it disables tickets for all listeners")),
    ],
    others: STRICT,
};

pub(crate) const HTTP3_OPTIONS: Schema = Schema {
    name: "envoy.config.core.v3.Http3ProtocolOptions",
    fields: &[
        ("quic_protocol_options", BUILT_IN),
        ("override_stream_error_on_invalid_http_message", Ignored("an invalid request closes its stream")),
        ("allow_extended_connect", Accepted("WebSocket is enabled by default")),
        ("allow_metadata", Ignored("unknown frames are ignored")),
        ("disable_qpack", Accepted("the dynamic table is never used")),
        ("disable_connection_flow_control_for_streams", Ignored("QUIC's flow control is used")),
    ],
    others: HARMLESS,
};
