//! Notifications to the gateway.

/// A notification to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A new certificate has been written to its file.
    Installed,
    /// An order failed.
    Failed,
    /// A certificate file has changed that this process did not order: another gateway of the fleet did.
    Received,
    /// Decision about a name that a client requested.
    Asked(&'static str),
    /// A record of the fleet was rejected because it was modified.
    RecordRefused,
    /// The fleet's Redis has become reachable or unreachable.
    Fleet {
        /// Whether it is reachable now.
        reachable: bool,
    },
}
