//! Listeners on UDP, over which HTTP/3 is spoken.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, STRICT, Schema,
};

const BUILT_IN: super::FieldPolicy = Ignored("limits are the built-in ones");

pub(crate) const UDP_LISTENER: Schema = Schema {
    name: "envoy.config.listener.v3.UdpListenerConfig",
    fields: &[
        ("quic_options", Read("needed: of what comes over UDP, HTTP/3 is served")),
        ("downstream_socket_config", Accepted("datagrams come together where the kernel can (GRO)")),
        ("udp_packet_packet_writer_config", Accepted("datagrams leave together where the kernel can (GSO)")),
    ],
    others: HARMLESS,
};

pub(crate) const QUIC_OPTIONS: Schema = Schema {
    name: "envoy.config.listener.v3.QuicProtocolOptions",
    fields: &[
        ("quic_protocol_options", BUILT_IN),
        (
            "idle_timeout",
            Read("without it, 5 minutes; 30 seconds at least; `common_http_protocol_options` may say less"),
        ),
        ("crypto_handshake_timeout", Read("without it, 20 seconds; 5 at least")),
        ("enabled", Refused("to serve no HTTP/3, leave the listener out")),
        ("packets_to_read_to_connection_count_ratio", Accepted("the event loop is fair by itself")),
        ("crypto_stream_config", Refused("there are no custom handshakers")),
        ("proof_source_config", Refused("certificates are chosen by SNI and key type")),
        (
            "connection_id_generator_config",
            Refused("connection ids name the event loop, and no balancer can read them"),
        ),
        ("server_preferred_address_config", Refused("clients stay with the address that they have found")),
        ("send_disable_active_migration", Ignored("clients may move")),
        ("connection_debug_visitor_config", Ignored("")),
        ("save_cmsg_config", Ignored("")),
        ("reject_new_connections", Refused("to serve no HTTP/3, leave the listener out")),
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
                "TLS 1.3; ALPN is `h3`; with a validation context, clients are asked for certificates also where none is required",
            ),
        ),
        ("enable_early_data", Accepted("early data is off: clients complete their handshake first")),
        ("enable_resumption", Read("`false` is of the process: it switches tickets off for all listeners")),
    ],
    others: STRICT,
};

pub(crate) const HTTP3_OPTIONS: Schema = Schema {
    name: "envoy.config.core.v3.Http3ProtocolOptions",
    fields: &[
        ("quic_protocol_options", BUILT_IN),
        ("override_stream_error_on_invalid_http_message", Ignored("what is no request ends its stream")),
        ("allow_extended_connect", Accepted("WebSocket works without")),
        ("allow_metadata", Ignored("frames that are not known are passed over")),
        ("disable_qpack", Accepted("the dynamic table is never used")),
        ("disable_connection_flow_control_for_streams", Ignored("flow control is QUIC's")),
    ],
    others: HARMLESS,
};
