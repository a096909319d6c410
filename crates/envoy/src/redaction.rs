//! Configuration as written, with secrets redacted, for `/config_dump`.

use crate::reader::snake_case;
use quadrille_config::yaml::{Node, Value as Yaml};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Replacement for a secret, as in Envoy.
const REDACTED: &str = "[redacted]";
const REDACTED_BYTES: &str = "W3JlZGFjdGVkXQ==";

/// Fields whose texts are secret, wherever they occur.
const SECRET: [&str; 7] = [
    "private_key",
    "password",
    "session_ticket_keys",
    "generic_secret",
    "pkcs12",
    "initial_metadata",
    "users",
];

/// Converts a tree to JSON with secrets redacted. The location of a secret (a file name) is not secret.
pub(crate) fn redacted(node: &Node) -> Value {
    convert(node, false)
}

fn convert(node: &Node, secret: bool) -> Value {
    match &node.value {
        Yaml::Null => Value::Null,
        Yaml::Scalar(text) if secret || text.contains("PRIVATE KEY") => REDACTED.into(),
        Yaml::Scalar(text) if node.plain || !node.position.is_of_text() => scalar(text),
        Yaml::Scalar(text) => text.as_str().into(),
        Yaml::Sequence(items) => items.iter().map(|item| convert(item, secret)).collect(),
        Yaml::Mapping(entries) => {
            // The service that receives spans, as opposed to headers that routes add.
            let is_collector = entries.iter().any(|entry| shown(&entry.key) == "http_uri");
            let mut object = Map::new();
            for entry in entries {
                let name = shown(&entry.key);
                let value = match &*name {
                    "filename"
                    | "environment_variable"
                    | "watched_directory"
                    | "name"
                    | "sds_config"
                    | "key" => convert(&entry.value, false),
                    "inline_bytes" if secret => REDACTED_BYTES.into(),
                    "request_headers_to_add" if is_collector => convert(&entry.value, true),
                    name => convert(&entry.value, secret || SECRET.contains(&name)),
                };
                object.insert(name.into_owned(), value);
            }
            Value::Object(object)
        }
    }
}

/// Returns the name of a field as in the protocol. A name that starts with a capital letter is a map key, such as in
/// the node's metadata, and is not converted.
fn shown(key: &str) -> Cow<'_, str> {
    if key.starts_with(|first: char| first.is_ascii_lowercase()) { snake_case(key) } else { key.into() }
}

fn scalar(text: &str) -> Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => number.into(),
            _ => text.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::yaml::{Limits, read};

    #[test]
    fn nothing_secret_is_shown() {
        let text = "
tls_certificates:
- privateKey: { inline_string: TOP }
  certificate_chain: { inline_string: public }
- private_key: { filename: /k.pem }
- private_key: { inline_bytes: U0VDUkVU }
- private_key_provider: { provider_name: p, typed_config: { private_key: { inlineString: TOP }, poll_delay: 1s } }
- password: { inline_string: TOP }
- users: { inline_string: TOP }
http_service: { http_uri: { uri: public }, request_headers_to_add: [ { header: { key: public, value: TOP } } ] }
session_ticket_keys: { keys: [ { inline_bytes: U0VDUkVU }, { filename: /t } ] }
elsewhere: { inline_string: \"-----BEGIN PRIVATE KEY-----\" }
number: 5
metadata: { CLUSTER_ID: Kubernetes, PORT: 15090, TEXT: \"15090\" }
";
        let shown = redacted(&read(text, Limits::BY_HAND).unwrap().unwrap());
        let all = shown.to_string();
        assert!(!all.contains("TOP") && !all.contains("U0VDUkVU") && !all.contains("BEGIN"), "{all}");
        assert!(all.contains("/k.pem") && all.contains("/t") && all.contains("public"), "{all}");
        assert_eq!(shown["tls_certificates"][0]["private_key"]["inline_string"], REDACTED);
        assert_eq!(shown["tls_certificates"][2]["private_key"]["inline_bytes"], REDACTED_BYTES);
        assert_eq!(shown["tls_certificates"][3]["private_key_provider"]["typed_config"]["poll_delay"], "1s");
        assert_eq!(shown["number"], 5);
        assert_eq!(
            shown["metadata"],
            serde_json::json!({ "CLUSTER_ID": "Kubernetes", "PORT": 15090, "TEXT": "15090" })
        );
    }
}
