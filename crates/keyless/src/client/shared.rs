//! What the event loops of one client share.

use super::{connect::Connector, fleet::Fleet, settings::Settings};
use std::sync::atomic::AtomicBool;

/// What all event loops share.
pub(super) struct Shared {
    pub(super) id: u64,
    pub(super) settings: Settings,
    pub(super) connector: Connector,
    pub(super) fleet: Fleet,
    pub(super) closed: AtomicBool,
    /// Some server speaks the compatible mode.
    pub(super) compatible: AtomicBool,
}
