/// The mode of the protocol used with a key server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The batched mode if the server supports it, the compatible one otherwise. On Unix sockets the batched mode.
    #[default]
    Auto,
    /// Only the batched mode, over TLS 1.3.
    Batched,
    /// Only the compatible mode.
    Compatible,
}
