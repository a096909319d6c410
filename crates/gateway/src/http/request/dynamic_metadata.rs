//! Dynamic metadata: values that access steps store for later steps.

use quadrille_config::model::{MetadataMatch, ValueMatch};
use serde_json::{Map, Value};

/// Values by the name of the step that stored them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata(Option<Box<Map<String, Value>>>);

impl Metadata {
    /// Stores a value, in place of the step's previous value under this key.
    pub(crate) fn set(&mut self, step: &str, key: &str, value: Value) {
        let steps = self.0.get_or_insert_default();
        let values = steps.entry(step).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(values) = values {
            values.insert(key.to_owned(), value);
        }
    }

    /// Returns whether a condition holds.
    pub(crate) fn matches(&self, condition: &MetadataMatch) -> bool {
        let value = self.value(&condition.filter, &condition.path);
        value.is_some_and(|value| is_like(value, &condition.value)) != condition.invert
    }

    /// Returns the string that a step stored under this path.
    pub(crate) fn text(&self, step: &str, path: &[String]) -> Option<&str> {
        self.value(step, path)?.as_str()
    }

    fn value(&self, step: &str, path: &[String]) -> Option<&Value> {
        let step = self.0.as_ref()?.get(step)?;
        path.iter().try_fold(step, |value, key| value.as_object()?.get(key))
    }
}

fn is_like(value: &Value, wanted: &ValueMatch) -> bool {
    match (wanted, value) {
        (ValueMatch::Null, value) => value.is_null(),
        (ValueMatch::Present, _) => true,
        (ValueMatch::Bool(wanted), Value::Bool(value)) => wanted == value,
        (ValueMatch::Text(wanted), Value::String(text)) => wanted.matches(text),
        (ValueMatch::OneOf(wanted), Value::Array(items)) => items.iter().any(|item| is_like(item, wanted)),
        (ValueMatch::Any(wanted), value) => wanted.iter().any(|wanted| is_like(value, wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::TextMatch;
    use serde_json::json;

    fn condition(path: &[&str], value: ValueMatch) -> MetadataMatch {
        let path = path.iter().map(|&key| key.to_owned()).collect();
        MetadataMatch { filter: "f".into(), path, value, invert: false }
    }

    #[test]
    fn conditions_are_on_what_was_left() {
        let mut metadata = Metadata::default();
        let claims =
            json!({"iss": "i", "aud": ["a", "b"], "admin": true, "none": null, "realm": {"roles": ["x"]}});
        metadata.set("f", "payload", claims);
        let text = |text: &str| ValueMatch::Text(TextMatch::exact(text));
        let one_of = |one: &str| ValueMatch::OneOf(Box::new(text(one)));
        let holds = |path: &[&str], value: ValueMatch| metadata.matches(&condition(path, value));
        assert!(holds(&["payload", "iss"], text("i")) && !holds(&["payload", "iss"], text("j")));
        assert!(holds(&["payload", "aud"], one_of("b")) && !holds(&["payload", "aud"], one_of("c")));
        assert!(!holds(&["payload", "aud"], text("a")) && !holds(&["payload", "iss"], one_of("i")));
        assert!(holds(&["payload", "iss"], ValueMatch::Any(vec![one_of("i"), text("i")])));
        assert!(holds(&["payload", "realm", "roles"], one_of("x")));
        assert!(holds(&["payload", "admin"], ValueMatch::Bool(true)));
        assert!(
            holds(&["payload", "none"], ValueMatch::Null) && holds(&["payload", "none"], ValueMatch::Present)
        );
        for path in [&["payload", "sub"][..], &["payload", "iss", "x"], &["other"], &["payload", "aud", "a"]]
        {
            assert!(!holds(path, ValueMatch::Present), "{path:?}");
            let inverted = MetadataMatch { invert: true, ..condition(path, ValueMatch::Present) };
            assert!(metadata.matches(&inverted), "{path:?}");
        }
        assert!(!Metadata::default().matches(&condition(&["payload"], ValueMatch::Present)));
    }
}
