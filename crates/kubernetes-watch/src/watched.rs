//! The watch of each kind in each namespace.

use crate::{
    backoff::Pauses,
    kind::Kind,
    secret::{SecretObject, Values},
    settings::{NamespacedName, Settings},
};
use futures_util::StreamExt;
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{ApiResource, DynamicObject, Status},
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{fmt, pin::pin};
use tokio::sync::mpsc::Sender;

/// Objects that one watch follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) kind: Kind,
    /// The namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    fields: Option<String>,
    /// Whether it may be forbidden.
    pub(crate) is_optional: bool,
}

/// A change of a scope, by its number.
pub(crate) type Change = (usize, Event);

/// A change of a scope.
#[derive(Debug)]
pub(crate) enum Event {
    /// A list of all objects begins.
    ListBegins,
    /// An object of the list.
    Listed(Object),
    /// The list is complete.
    ListEnds,
    /// An object is new or has changed.
    Put(Object),
    /// An object was deleted.
    Removed(NamespacedName),
    /// The watch was interrupted; it is opened again.
    Failed { problem: String, is_forbidden: bool },
}

/// An object.
pub(crate) struct Object {
    /// The name; the namespace is empty for objects without one.
    pub(crate) name: NamespacedName,
    pub(crate) uid: String,
    pub(crate) content: Content,
}

/// Content of an object.
pub(crate) enum Content {
    Json(Value),
    Secret(Values),
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Scope {
    /// Returns all scopes of a watch.
    pub(crate) fn all(settings: &Settings) -> Vec<Self> {
        let mut scopes = Vec::new();
        let watched: Vec<Option<&String>> = match settings.namespaces.as_slice() {
            [] => vec![None],
            namespaces => namespaces.iter().map(Some).collect(),
        };
        for kind in Kind::ALL {
            let fields = kind.fields().map(str::to_owned);
            if !kind.is_namespaced() {
                // A Role of namespaces cannot allow it.
                let is_optional = !settings.namespaces.is_empty();
                scopes.push(Self { kind, namespace: None, fields, is_optional });
                continue;
            }
            scopes.extend(watched.iter().map(|namespace| Self {
                kind,
                namespace: namespace.cloned(),
                fields: fields.clone(),
                is_optional: false,
            }));
        }
        let named =
            |name: &Option<String>| name.as_ref().and_then(|name| name.parse::<NamespacedName>().ok());
        for (kind, name) in [
            (Kind::ConfigMap, named(&settings.translation.config_map)),
            (Kind::Secret, named(&settings.translation.default_certificate)),
            (Kind::Service, settings.publish_service.clone()),
        ] {
            let Some(NamespacedName { namespace, name }) = name else { continue };
            if !settings.namespaces.is_empty() && !settings.namespaces.contains(&namespace) {
                let fields = Some(format!("metadata.name={name}"));
                scopes.push(Self { kind, namespace: Some(namespace), fields, is_optional: false });
            }
        }
        scopes
    }

    /// Follows the scope, and sends its changes with this number until nothing receives them.
    pub(crate) async fn follow(self, client: Client, number: usize, changes: Sender<Change>) {
        let config = watcher::Config::default();
        let config = match &self.fields {
            Some(fields) => config.fields(fields),
            None => config,
        };
        if self.kind == Kind::Secret {
            let api = match &self.namespace {
                Some(namespace) => Api::namespaced(client, namespace),
                None => Api::all(client),
            };
            return follow(api, config, of_secret, number, changes).await;
        }
        let resource = self.kind.resource();
        let api = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        follow(api, config, |object| of_json(object, &resource), number, changes).await;
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} in {namespace}", self.kind.name()),
            None => f.write_str(self.kind.name()),
        }
    }
}

async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    object: impl Fn(K) -> Object,
    number: usize,
    changes: Sender<Change>,
) where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    let mut events = pin!(watcher(api, config).backoff(Pauses::default()));
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(watcher::Event::Init) => Event::ListBegins,
            Ok(watcher::Event::InitApply(listed)) => Event::Listed(object(listed)),
            Ok(watcher::Event::InitDone) => Event::ListEnds,
            Ok(watcher::Event::Apply(changed)) => Event::Put(object(changed)),
            Ok(watcher::Event::Delete(deleted)) => Event::Removed(name(&deleted)),
            Err(error) => Event::Failed { problem: problem(&error), is_forbidden: is_forbidden(&error) },
        };
        if changes.send((number, event)).await.is_err() {
            return;
        }
    }
}

/// Returns the text of an error with its causes; kube's own text leaves some out.
fn problem(error: &watcher::Error) -> String {
    if let Some(status) = status(error) {
        return format!("{} ({})", status.message, status.code);
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn is_forbidden(error: &watcher::Error) -> bool {
    status(error).is_some_and(Status::is_forbidden)
}

/// Returns the response of the API server, if that is the error.
fn status(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

fn name(object: &impl ResourceExt) -> NamespacedName {
    NamespacedName { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

fn of_secret(secret: SecretObject) -> Object {
    Object {
        name: name(&secret),
        uid: secret.uid().unwrap_or_default(),
        content: Content::Secret(secret.data),
    }
}

fn of_json(object: DynamicObject, resource: &ApiResource) -> Object {
    let name = name(&object);
    let DynamicObject { mut metadata, data, .. } = object;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    let mut json = if data.is_object() { data } else { json!({}) };
    // The items of lists have neither kind nor version.
    json["apiVersion"] = resource.api_version.as_str().into();
    json["kind"] = resource.kind.as_str().into();
    json["metadata"] = json!({
        "namespace": metadata.namespace,
        "name": metadata.name,
        "creationTimestamp": metadata.creation_timestamp,
        "annotations": metadata.annotations,
        "labels": metadata.labels,
    });
    Object { name, uid: metadata.uid.unwrap_or_default(), content: Content::Json(json) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_kubernetes::Options;

    fn settings(namespaces: &[&str]) -> Settings {
        Settings {
            translation: Options { config_map: Some("system/nginx".to_owned()), ..Options::default() },
            kubeconfig: None,
            namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
            addresses: Vec::new(),
            publish_service: None,
            lease: None,
            identity: "test".to_owned(),
        }
    }

    #[test]
    fn scopes_of_namespaces() {
        let shown = |settings: &Settings| {
            Scope::all(settings).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(&settings(&[])), "IngressClass, Ingress, Service, EndpointSlice, ConfigMap, Secret");
        assert_eq!(
            shown(&settings(&["shop"])),
            "IngressClass, Ingress in shop, Service in shop, EndpointSlice in shop, ConfigMap in shop, Secret in shop, \
             ConfigMap in system"
        );
        assert!(Scope::all(&settings(&["shop"]))[0].is_optional);
        assert!(!Scope::all(&settings(&[]))[0].is_optional);
    }
}
