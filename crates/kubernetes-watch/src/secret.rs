//! Secrets, whose values are decoded into memory that is zeroised.

use base64ct::{Base64, Encoding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, Resource};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use std::{borrow::Cow, fmt};
use zeroize::Zeroizing;

/// Values of a Secret by their keys.
pub(crate) type Values = Vec<(String, Zeroizing<Vec<u8>>)>;

/// A Secret: its name and its values. Annotations are not read, because `kubectl apply` keeps a copy of the values there.
#[derive(Clone, Deserialize)]
pub(crate) struct SecretObject {
    #[serde(deserialize_with = "name")]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "values")]
    pub(crate) data: Values,
}

impl fmt::Debug for SecretObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretObject").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

impl Resource for SecretObject {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Secret".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "secrets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Name {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
    }
    let Name { name, namespace, uid, resource_version } = Name::deserialize(deserializer)?;
    Ok(ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() })
}

fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Values;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a mapping of values in base64")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut values = Vec::new();
            while let Some(key) = map.next_key::<String>()? {
                let Decoded(value) = map.next_value()?;
                values.extend(value.map(|value| (key, value)));
            }
            Ok(values)
        }
    }

    deserializer.deserialize_any(Entries)
}

/// A value; `None` if it is not base64. An error would be logged with the whole text.
struct Decoded(Option<Zeroizing<Vec<u8>>>);

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Decoded;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Decoded, E> {
                Ok(Decoded(Base64::decode_vec(text).ok().map(Zeroizing::new)))
            }

            fn visit_unit<E>(self) -> Result<Decoded, E> {
                Ok(Decoded(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Decoded, E> {
                Ok(Decoded(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Decoded, E> {
                Ok(Decoded(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Decoded, E> {
                Ok(Decoded(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Decoded, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Decoded(None))
            }
        }

        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_annotations_dropped() {
        let text = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"tls","namespace":"shop",
            "resourceVersion":"7","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"eA=="}},
            "type":"kubernetes.io/tls","data":{"tls.key":"a2V5","bad":"***","number":1}}"#;
        let secret: SecretObject = serde_json::from_str(text).unwrap();
        assert_eq!(secret.meta().name.as_deref(), Some("tls"));
        assert_eq!(secret.meta().annotations, None);
        assert_eq!(secret.data.len(), 1);
        assert_eq!((secret.data[0].0.as_str(), secret.data[0].1.as_slice()), ("tls.key", &b"key"[..]));
        assert!(!format!("{secret:?}").contains("key\""), "{secret:?}");
    }

    #[test]
    fn secrets_without_values_are_read() {
        for data in ["", r#","data":null"#, r#","data":{}"#] {
            let text = format!(r#"{{"metadata":{{"name":"tls"}}{data}}}"#);
            let secret: SecretObject = serde_json::from_str(&text).unwrap();
            assert!(secret.data.is_empty(), "{text}");
        }
    }
}
