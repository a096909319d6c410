//! What a response brings, and why parts of it are refused.

use super::interest::Interest;
use crate::{
    Limits, ResourceType,
    decode::{self, Budget, shortened},
    proto::{self, Any},
};
use quadrille_config::yaml::Node;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// A response of which everything that can be read has been read.
#[derive(Debug)]
pub struct Update {
    /// Of what.
    pub kind: ResourceType,
    /// As the server calls it; for people.
    pub version: String,
    /// New or changed. In a [complete](Self::complete) update, all that there are.
    pub resources: Vec<Resource>,
    /// Names that there are no longer.
    pub removed: Vec<String>,
    /// What is neither in `resources` nor in `unreadable` is gone.
    pub complete: bool,
    /// Why others are not among the resources. The server gets a NACK.
    pub unreadable: Vec<Rejection>,
    pub(super) nonce: String,
}

/// A resource.
#[derive(Debug)]
pub struct Resource {
    /// What it is called.
    pub name: String,
    /// Its own in the delta dialect, else empty.
    pub version: String,
    /// SHA-256 of its bytes: one that is the same as before need not be read again.
    pub digest: [u8; 32],
    /// What it says.
    pub tree: Node,
    /// Paths of fields that this gateway's descriptors do not know.
    pub unknown: Vec<String>,
}

/// Why a resource is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The resource's name; empty if not even that can be read.
    pub name: String,
    /// With the path of the field. No secret must be in it.
    pub reason: String,
    /// What was accepted under this name before is out of service too.
    pub closed: bool,
}

impl Rejection {
    /// Of a resource whose last good version stays in service.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into(), closed: false }
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
    /// Resources were left unread behind too many that cannot be read.
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

    /// Reads one resource; `outside` is its name and version, if they stand outside of it.
    pub(super) fn add(&mut self, any: &Any, outside: Option<(&str, &str)>, wanted: &Interest) {
        if self.unreadable.len() >= MAX_NAMED {
            self.stopped = true;
            return;
        }
        if any.type_url == proto::WRAPPED {
            // A wrapper inside a wrapper has no meaning, so this goes one level deep.
            return match <proto::Resource as prost::Message>::decode(any.value.as_slice()) {
                Ok(proto::Resource { resource: Some(inner), .. }) if inner.type_url == proto::WRAPPED => {
                    self.refuse("", "a wrapped resource inside another".to_owned());
                }
                Ok(proto::Resource { name, version, resource: Some(inner) }) => {
                    self.add(&inner, Some((&name, &version)), wanted);
                }
                Ok(_) => (),
                Err(error) => self.refuse("", format!("a wrapped resource cannot be read: {error}")),
            };
        }
        let name = outside.map_or("", |(name, _)| name);
        if any.type_url != self.kind.type_url() {
            let reason = format!("a {} of type {}", self.kind, shortened(&any.type_url));
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
            return self.refuse(&name, format!("a {} needs a name of sensible length", self.kind));
        }
        // Control planes may wrap a resource without naming it again.
        if !outer.is_empty() && outer != name {
            return self.refuse(&name, format!("it is called {} outside", shortened(outer)));
        }
        // Nobody has asked for it; servers that send all they have do that.
        if !wanted.includes(&name) {
            return;
        }
        if !self.names.insert(name.clone()) {
            return self.refuse(&name, "there are two of this name".to_owned());
        }
        let version = version.to_owned();
        self.resources.push(Resource { name, version, digest, tree: decoded.tree, unknown: decoded.unknown });
    }

    fn refuse(&mut self, name: &str, reason: String) {
        self.unreadable.push(Rejection::new(name, reason));
    }

    /// Refuses everything if with these others there are too many.
    pub(super) fn limit(&mut self, others: usize) {
        let most = self.limits.resources;
        let all = self.resources.len() + others;
        if self.resources.len() > most || all > most.saturating_mul(2) {
            self.resources.clear();
            self.refuse("", format!("{all} resources are more than the {most} that are kept"));
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
        // What cannot be read may be one that is kept: then nothing is known to be gone.
        let complete =
            complete && !self.stopped && self.unreadable.iter().all(|rejection| !rejection.name.is_empty());
        let Self { kind, resources, unreadable, .. } = self;
        Update { kind, version, resources, removed, complete, unreadable, nonce }
    }
}

/// The message of a NACK; `None` if nothing is wrong.
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

/// Mistakes that are named in one NACK, and about how long it becomes: control planes log it.
const MAX_NAMED: usize = 10;
const MAX_DETAIL: usize = 4096;
