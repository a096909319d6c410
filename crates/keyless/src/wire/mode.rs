//! Modes of a connection.

use super::{batched, compatible};

/// Framing of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One operation per packet, padded to 1 KiB; used by existing keyless clients and servers.
    Compatible,
    /// Many operations per frame; between our own ends.
    Batched,
}

impl Mode {
    /// Returns the mode of a connection without ALPN from the first byte sent by the client: both modes begin with
    /// their version.
    pub fn from_first_byte(byte: u8) -> Option<Self> {
        match byte {
            compatible::MAJOR => Some(Self::Compatible),
            batched::VERSION => Some(Self::Batched),
            _ => None,
        }
    }
}

/// Name in logs and metrics.
impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compatible => "compatible",
            Self::Batched => "batched",
        })
    }
}
