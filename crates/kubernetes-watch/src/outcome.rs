//! Outcome of a translation, for the objects themselves.

use crate::{kind::Kind, settings::NamespacedName};
use serde_json::Value;

/// Data that the holder of the Lease writes to the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Settings that do not work.
    pub(crate) refused: Vec<Refused>,
    /// Ingress objects that are in service.
    pub(crate) served: Vec<Served>,
    /// Addresses to write to their status; empty writes none.
    pub(crate) addresses: Vec<Value>,
}

/// A setting of an object that does not work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refused {
    pub(crate) kind: Kind,
    pub(crate) name: NamespacedName,
    pub(crate) uid: String,
    pub(crate) setting: String,
    pub(crate) remedy: String,
}

/// An Ingress that is in service.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) name: NamespacedName,
    /// Addresses in its status: `status.loadBalancer.ingress`.
    pub(crate) addresses: Vec<Value>,
}
