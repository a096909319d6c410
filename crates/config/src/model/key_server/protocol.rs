/// Which mode of the protocol is spoken with a key server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Our own where the server has it, the compatible one otherwise. On Unix sockets our own.
    #[default]
    Auto,
    /// Our own over TLS 1.3, or nothing.
    Batched,
    /// The compatible mode.
    Compatible,
}
