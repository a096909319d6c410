//! The two modes of a connection.

use super::{batched, compatible};

/// How messages are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One operation a packet, padded to 1 KiB; what keyless clients and servers in use speak.
    Compatible,
    /// Many operations a frame; between ends of ours.
    Batched,
}

impl Mode {
    /// The mode of a connection without ALPN, by the first byte that the client sends: both modes begin with their
    /// version.
    pub fn from_first_byte(byte: u8) -> Option<Self> {
        match byte {
            compatible::MAJOR => Some(Self::Compatible),
            batched::VERSION => Some(Self::Batched),
            _ => None,
        }
    }
}

/// As logs and metrics name it.
impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compatible => "compatible",
            Self::Batched => "batched",
        })
    }
}
