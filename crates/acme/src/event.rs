//! What the gateway is told.

/// What the gateway should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a new certificate in its file.
    Installed,
    /// An order came to nothing.
    Failed,
    /// There is a certificate in its file that this process has not ordered just now: another gateway of the fleet has.
    Received,
    /// What became of a name that a client has asked for.
    Asked(&'static str),
    /// A record of the fleet was refused: somebody has changed it.
    RecordRefused,
    /// Whether the fleet can be asked has changed.
    Fleet {
        /// It can.
        reachable: bool,
    },
}
