//! Errors before a load starts.

/// Reason that a load cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// BoringSSL rejects a name in the offer.
    #[error("{what} `{value}`: unknown to BoringSSL")]
    Offer {
        /// Name of the setting.
        what: &'static str,
        /// Value of the setting.
        value: String,
    },
    /// The system denies a resource that the load needs.
    #[error("the system denies a resource: {0}")]
    System(#[from] std::io::Error),
    /// BoringSSL is out of memory.
    #[error("BoringSSL: {0}")]
    BoringSsl(#[from] boring::error::ErrorStack),
}
