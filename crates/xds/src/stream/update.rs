//! Updates parsed from responses, and rejections of parts of them.

use super::interest::Interest;
use crate::{
    Limits, ResourceType,
    decode::{self, Budget, shortened},
    proto::{self, Any},
};
use quadrille_config::yaml::Node;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// A response with all its valid resources decoded.
#[derive(Debug)]
pub struct Update {
    /// Type of the resources.
    pub kind: ResourceType,
    /// Version assigned by the control plane; for display.
    pub version: String,
    /// New or changed resources. In a [complete](Self::complete) update, all that exist.
    pub resources: Vec<Resource>,
    /// Names of removed resources.
    pub removed: Vec<String>,
    /// Whether a resource that is neither in `resources` nor in `unreadable` was removed.
    pub complete: bool,
    /// Invalid resources, for which the control plane receives a NACK.
    pub unreadable: Vec<Rejection>,
    pub(super) nonce: String,
}

/// A resource.
#[derive(Debug)]
pub struct Resource {
    /// Name of the resource.
    pub name: String,
    /// Version of the resource in the delta variant, else empty.
    pub version: String,
    /// SHA-256 of its bytes: an unchanged resource need not be read again.
    pub digest: [u8; 32],
    /// Content of the resource.
    pub tree: Node,
    /// Paths of fields that this gateway's descriptors do not contain.
    pub unknown: Vec<String>,
}

/// Rejection of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Name of the resource; empty if it cannot be decoded.
    pub name: String,
    /// Reason, with the path of the field. Must not contain a secret.
    pub reason: String,
    /// State of the resource of this name.
    pub outcome: Outcome,
}

/// State of a resource after a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The last valid version stays in service.
    Kept,
    /// The last valid version was taken out of service, too.
    Closed,
    /// The new version is in service, except for the parts that the reason names.
    Partial,
}

impl Rejection {
    /// Creates the rejection of a resource whose last valid version stays in service.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into(), outcome: Outcome::Kept }
    }

    /// Creates the rejection of parts of a resource, the rest of which is in service.
    pub fn partial(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { outcome: Outcome::Partial, ..Self::new(name, reason) }
    }
}

/// Collects the resources of one response.
pub(super) struct UpdateBuilder<'l> {
    kind: ResourceType,
    limits: &'l Limits,
    budget: Budget,
    names: BTreeSet<String>,
    resources: Vec<Resource>,
    unreadable: Vec<Rejection>,
    /// Whether resources were skipped after too many invalid ones.
    stopped: bool,
}

impl<'l> UpdateBuilder<'l> {
    pub(super) fn new(kind: ResourceType, limits: &'l Limits) -> Self {
        let budget = Budget::new(limits);
        Self {
            kind,
            limits,
            budget,
            names: BTreeSet::new(),
            resources: Vec::new(),
            unreadable: Vec::new(),
            stopped: false,
        }
    }

    /// Reads one resource; `outside` is its name and version, if a wrapper contains them.
    pub(super) fn add(&mut self, any: &Any, outside: Option<(&str, &str)>, wanted: &Interest) {
        if self.unreadable.len() >= MAX_NAMED {
            self.stopped = true;
            return;
        }
        if any.type_url == proto::WRAPPED {
            // A wrapper inside a wrapper has no meaning, so this recurses only once.
            return match <proto::Resource as prost::Message>::decode(any.value.as_slice()) {
                Ok(proto::Resource { resource: Some(inner), .. }) if inner.type_url == proto::WRAPPED => {
                    self.refuse("", "a wrapped resource within another".to_owned());
                }
                Ok(proto::Resource { name, version, resource: Some(inner) }) => {
                    self.add(&inner, Some((&name, &version)), wanted);
                }
                Ok(_) => (),
                Err(error) => self.refuse("", format!("cannot decode a wrapped resource: {error}")),
            };
        }
        let name = outside.map_or("", |(name, _)| name);
        if any.type_url != self.kind.type_url() {
            let reason = format!("a {} cannot have type {}", self.kind, shortened(&any.type_url));
            return self.refuse(name, reason);
        }
        match decode::decode(any, &mut self.budget) {
            Ok(decoded) => {
                let own = decoded.tree.get(self.kind.name_field()).and_then(Node::text).unwrap_or_default();
                let own = own.to_owned();
                let digest = Sha256::digest(&any.value).into();
                self.keep(own, outside, digest, decoded, wanted);
            }
            Err(error) => self.refuse(name, error.to_string()),
        }
    }

    fn keep(
        &mut self,
        name: String,
        outside: Option<(&str, &str)>,
        digest: [u8; 32],
        decoded: decode::Decoded,
        wanted: &Interest,
    ) {
        let (outer, version) = outside.unwrap_or_default();
        if name.is_empty() || name.len() > self.limits.name {
            return self.refuse(&name, format!("the name of a {} is empty or too long", self.kind));
        }
        // Control planes may wrap a resource without repeating its name.
        if !outer.is_empty() && outer != name {
            return self.refuse(&name, format!("its wrapper names it {}", shortened(outer)));
        }
        // There is no subscription for it; some control planes send all resources they have.
        if !wanted.includes(&name) {
            return;
        }
        if !self.names.insert(name.clone()) {
            return self.refuse(&name, "duplicate name".to_owned());
        }
        let version = version.to_owned();
        self.resources.push(Resource { name, version, digest, tree: decoded.tree, unknown: decoded.unknown });
    }

    fn refuse(&mut self, name: &str, reason: String) {
        self.unreadable.push(Rejection::new(name, reason));
    }

    /// Rejects all resources if there are too many together with the `others`.
    pub(super) fn limit(&mut self, others: usize) {
        let most = self.limits.resources;
        let all = self.resources.len() + others;
        if self.resources.len() > most || all > most.saturating_mul(2) {
            self.resources.clear();
            self.refuse("", format!("{all} resources exceed the limit of {most}"));
        }
    }

    pub(super) fn finish(
        mut self,
        nonce: String,
        version: String,
        removed: Vec<String>,
        complete: bool,
    ) -> Update {
        self.limit(0);
        // An invalid resource may be an accepted one: then no removal is certain.
        let complete =
            complete && !self.stopped && self.unreadable.iter().all(|rejection| !rejection.name.is_empty());
        let Self { kind, resources, unreadable, .. } = self;
        Update { kind, version, resources, removed, complete, unreadable, nonce }
    }
}

/// Formats the message of a NACK; `None` if there are no rejections.
pub(super) fn nack_detail<'r>(
    kind: ResourceType,
    faults: impl Iterator<Item = &'r Rejection>,
) -> Option<String> {
    let mut detail = String::new();
    let mut left = 0;
    for (count, Rejection { name, reason, .. }) in faults.enumerate() {
        if count >= MAX_NAMED || detail.len() > MAX_DETAIL {
            left += 1;
            continue;
        }
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        let reason: String = reason.chars().take(MAX_DETAIL).collect();
        let name = if name.is_empty() { "(unnamed)".to_owned() } else { shortened(name) };
        detail.push_str(&format!("{kind} {name}: {reason}"));
    }
    if left > 0 {
        detail.push_str(&format!("; and {left} more"));
    }
    (!detail.is_empty()).then_some(detail)
}

/// Maximum number of errors in one NACK, and its approximate maximum length: control planes log it.
const MAX_NAMED: usize = 10;
const MAX_DETAIL: usize = 4096;
