//! Objects of the test's API server, with their versions.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Objects by resource, namespace and name, with the changes since some version.
#[derive(Default)]
pub(super) struct Store {
    objects: BTreeMap<(String, String, String), Value>,
    changes: Vec<Change>,
    version: u64,
    /// Versions before it are gone.
    oldest: u64,
}

/// A change of an object.
#[derive(Clone)]
pub(super) struct Change {
    version: u64,
    resource: String,
    namespace: String,
    pub(super) event: &'static str,
    pub(super) object: Value,
}

impl Store {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Creates or replaces an object; returns it with its version.
    pub(super) fn put(&mut self, mut object: Value) -> Value {
        self.version += 1;
        let resource = resource(object["kind"].as_str().unwrap_or_default()).to_owned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = text(&object["metadata"]["namespace"]);
        let key = (resource, namespace, text(&object["metadata"]["name"]));
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["uid"] = format!("uid-of-{}", key.2).into();
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let event = if self.objects.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        self.objects.insert(key.clone(), object.clone());
        self.note(&key, event, object.clone());
        object
    }

    pub(super) fn delete(&mut self, resource: &str, namespace: &str, name: &str) {
        let key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        let object = self.objects.remove(&key).expect("an object to delete");
        self.version += 1;
        self.note(&key, "DELETED", object);
    }

    fn note(
        &mut self,
        (resource, namespace, _): &(String, String, String),
        event: &'static str,
        object: Value,
    ) {
        let (resource, namespace) = (resource.clone(), namespace.clone());
        self.changes.push(Change { version: self.version, resource, namespace, event, object });
    }

    /// Forgets all changes so far.
    pub(super) fn forget(&mut self) {
        self.changes.clear();
        self.version += 1;
        self.oldest = self.version;
    }

    pub(super) fn is_gone(&self, version: u64) -> bool {
        version < self.oldest
    }

    pub(super) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.objects.get(&(resource.to_owned(), namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Merges the `status` of a patch.
    pub(super) fn merge_status(
        &mut self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Option<Value> {
        let mut object = self.get(resource, namespace, name)?;
        object["status"] = patch["status"].clone();
        Some(self.put(object))
    }

    /// Returns a page of a list, of two objects.
    pub(super) fn list(&self, resource: &str, namespace: &str, from: &str) -> Value {
        let matching = self
            .objects
            .iter()
            .filter(|((known, of, _), _)| known == resource && (namespace.is_empty() || of == namespace));
        let mut items: Vec<Value> = matching.map(|(_, object)| object.clone()).collect();
        for item in &mut items {
            // Real servers leave these out of lists, too.
            let fields = item.as_object_mut().expect("an object");
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        let from = from.parse().unwrap_or(0_usize);
        let end = (from + 2).min(items.len());
        let mut metadata = json!({ "resourceVersion": self.version.to_string() });
        if end < items.len() {
            metadata["continue"] = end.to_string().into();
        }
        json!({ "kind": format!("{}List", kind(resource)), "apiVersion": "v1", "metadata": metadata, "items": items[from..end] })
    }

    /// Returns the changes of a resource after a version.
    pub(super) fn since(&self, version: u64, resource: &str, namespace: &str) -> Vec<Change> {
        let matches = |change: &&Change| {
            change.version > version
                && change.resource == resource
                && (namespace.is_empty() || change.namespace == namespace)
        };
        self.changes.iter().filter(matches).cloned().collect()
    }
}

const KINDS: [(&str, &str); 8] = [
    ("Ingress", "ingresses"),
    ("IngressClass", "ingressclasses"),
    ("Service", "services"),
    ("EndpointSlice", "endpointslices"),
    ("ConfigMap", "configmaps"),
    ("Secret", "secrets"),
    ("Lease", "leases"),
    ("Event", "events"),
];

fn resource(kind: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).expect(kind).1
}

/// Returns the kind of a resource.
pub(super) fn kind(resource: &str) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == resource).expect(resource).0
}

/// Returns a Status of failure.
pub(super) fn status(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": reason, "reason": reason,
        "code": code,
    })
}

/// Returns the event for a version that is gone.
pub(super) fn gone() -> Value {
    json!({ "type": "ERROR", "object": status(410, "Expired") })
}
