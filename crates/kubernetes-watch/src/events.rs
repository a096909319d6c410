//! Events on objects whose settings do not work.

use crate::outcome::Refused;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Writes Events.
pub(crate) struct Events(Recorder);

impl Events {
    pub(crate) fn new(client: Client, identity: &str) -> Self {
        let reporter =
            Reporter { controller: "quadrille.dev/ingress".to_owned(), instance: Some(identity.to_owned()) };
        Self(Recorder::new(client, reporter))
    }

    /// Writes an Event of type Warning on the object of a setting.
    ///
    /// # Errors
    /// If the API server does not accept it.
    pub(crate) async fn refused(&self, refused: &Refused) -> Result<(), kube::Error> {
        let Refused { kind, name, uid, setting, remedy } = refused;
        let resource = kind.resource();
        let regarding = ObjectReference {
            api_version: Some(resource.api_version),
            kind: Some(resource.kind),
            namespace: Some(name.namespace.clone()),
            name: Some(name.name.clone()),
            uid: Some(uid.clone()),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: EventType::Warning,
            reason: "SettingRefused".to_owned(),
            note: Some(cut(&format!("{setting} does not work: {remedy}"), LONGEST_NOTE)),
            // Events with the same action would be counted as one.
            action: cut(setting, LONGEST_ACTION),
            secondary: None,
        };
        self.0.publish(&event, &regarding).await
    }
}

/// Returns the beginning of a text, of at most this many bytes.
fn cut(text: &str, longest: usize) -> String {
    let end = (0..=longest.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text[..end].to_owned()
}

/// Limits of the API.
const LONGEST_NOTE: usize = 1024;
const LONGEST_ACTION: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("short", 128), "short");
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }
}
