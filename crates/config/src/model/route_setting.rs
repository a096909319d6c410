//! Settings of routes that their chains have, too.

use std::sync::Arc;

/// A setting of a route that its chain has, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum RouteSetting<T> {
    /// The setting of its chain.
    #[default]
    OfChain,
    /// None, also where the chain has one.
    Off,
    /// This one, in place of the chain's.
    InPlace(Arc<T>),
}
