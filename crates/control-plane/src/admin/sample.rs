//! A counter or gauge under Envoy's names.

/// A value of a counter or gauge with its names.
pub(super) struct Sample {
    /// `listener.127.0.0.1_8443.ssl.handshake`
    pub(super) name: String,
    /// `envoy_listener_ssl_handshake`
    pub(super) family: String,
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: u64,
    pub(super) gauge: bool,
}
