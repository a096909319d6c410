//! State shared by the event loops of a client.

use super::{connect::Connector, fleet::Fleet, settings::Settings};
use std::sync::atomic::AtomicBool;

/// State shared by all event loops.
pub(super) struct Shared {
    pub(super) id: u64,
    pub(super) settings: Settings,
    pub(super) connector: Connector,
    pub(super) fleet: Fleet,
    pub(super) closed: AtomicBool,
    /// Whether any server uses the compatible mode.
    pub(super) compatible: AtomicBool,
}
