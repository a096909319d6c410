//! What can go wrong before a load begins.

/// Why a load cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// BoringSSL refuses a name in the offer.
    #[error("{what} `{value}`: BoringSSL knows no such thing")]
    Offer {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// The system refuses what the load needs.
    #[error("the system refuses: {0}")]
    System(#[from] std::io::Error),
    /// BoringSSL has no memory.
    #[error("BoringSSL: {0}")]
    BoringSsl(#[from] boring::error::ErrorStack),
}
