//! Agreement of schema, code, reference and examples.

use super::parsed;
use crate::{
    file::{
        key_policy_reference, parse, parse_key_policy, reference,
        schema::{Described, KeyDescription, Preset},
        sections::{POLICY_SECTIONS, SECTIONS},
        show,
    },
    yaml::{Limits, Node, Value as Yaml},
};
use serde_json::{Map, Value};

const FULL: &str = include_str!("../../../../../examples/quadrille.yaml");
const POLICY: &str = include_str!("../../../../../examples/key-policy.yaml");
const REFERENCE: &str = "../../docs/reference/configuration.md";

#[test]
fn the_reference_is_the_schema() {
    if std::env::var_os("QUADRILLE_BLESS").is_some() {
        std::fs::write(REFERENCE, reference()).unwrap();
    }
    let written = std::fs::read_to_string(REFERENCE).unwrap_or_default();
    let how = "the reference is out of date; run QUADRILLE_BLESS=1 cargo test -p quadrille-config reference";
    assert!(written == reference(), "{how}");
}

#[test]
fn the_policys_reference_and_example_are_its_schema() {
    const WRITTEN: &str = "../../docs/reference/key-policy.md";
    if std::env::var_os("QUADRILLE_BLESS").is_some() {
        std::fs::write(WRITTEN, key_policy_reference()).unwrap();
    }
    let written = std::fs::read_to_string(WRITTEN).unwrap_or_default();
    let how = "the reference is out of date; run QUADRILLE_BLESS=1 cargo test -p quadrille-config reference";
    assert!(written == key_policy_reference(), "{how}");
    let policy = parse_key_policy(POLICY, "q.yaml").unwrap();
    assert_eq!(policy.rules.unwrap().len(), 4);
    for key in POLICY_SECTIONS.iter().flat_map(|section| section.keys()) {
        assert!(POLICY.contains(&format!("{}:", key.name)), "`{}` is not in the example", key.name);
    }
}

#[test]
fn every_key_is_explained() {
    for section in SECTIONS.iter().chain(POLICY_SECTIONS) {
        for key in section.keys() {
            assert!(key.about.ends_with('.') && !key.value.is_empty(), "{}.{}", section.path(), key.name);
            let cell = [key.value, key.about].concat();
            assert!(!cell.contains(['|', '\n']), "breaks the table: {}.{}", section.path(), key.name);
        }
    }
}

#[test]
fn the_full_example_shows_every_key() {
    let shown = occurrences();
    for section in SECTIONS {
        for key in section.keys() {
            let there = |one: &Occurrence| one.section.path() == section.path() && one.key == key.name;
            assert!(shown.iter().any(there), "`{}` of `{}` is not in the example", key.name, section.path());
        }
    }
}

/// No key is accepted and then ignored: an invalid value is refused, at that key.
#[test]
fn every_key_is_read() {
    for one in occurrences() {
        let mut document = example();
        *document.pointer_mut(&one.pointer).unwrap() = serde_json::json!([[]]);
        let errors = parse(&document.to_string(), "q.yaml").expect_err(&one.pointer);
        let here = errors.iter().any(|error| error.place.path.starts_with(&one.field));
        assert!(here, "a list of lists at {} got: {errors}", one.field);
    }
}

/// No key is read and then hidden: settings of the example are on the configuration page, at the same path, unless
/// they are defaults.
#[test]
fn every_key_is_shown() {
    // Short forms, which are shown in their long form.
    const SHORT: [&str; 5] = [
        ".include",
        "listeners[].upstream",
        "listeners[].respond",
        "listeners[].request_headers",
        "listeners[].response_headers",
    ];
    let mut shown = Vec::new();
    visit(&show(&parsed(FULL)), "", "", "", &mut shown);
    for section in SECTIONS {
        for key in section.keys() {
            let path = format!("{}.{}", section.path(), key.name);
            let there = |one: &Occurrence| one.section.path() == section.path() && one.key == key.name;
            let hidden = SHORT.contains(&path.as_str()) || matches!(key.preset, Preset::Is("off"));
            assert!(hidden || shown.iter().any(there), "{path} is not shown");
        }
    }
}

/// The defaults of the reference are those of the code: writing one out changes nothing.
#[test]
fn every_default_holds() {
    let mut checked = 0;
    for one in occurrences() {
        let Preset::Is(value) = one.preset() else { continue };
        let mut document = example();
        *document.pointer_mut(&one.pointer).unwrap() = "VALUE".into();
        let written = document.to_string().replace("\"VALUE\"", value);
        remove(&mut document, &one.pointer);
        // Some keys cannot be left out in the example: without its host, a route hides another.
        let Ok(without) = parse(&document.to_string(), "etc/q.yaml") else { continue };
        assert_eq!(show(&parsed(&written)), show(&without), "{} = {value}", one.field);
        checked += 1;
    }
    assert!(checked >= 40, "only {checked} defaults");
}

#[test]
fn every_required_key_is_missed() {
    for one in occurrences() {
        let Preset::Required = one.preset() else { continue };
        let mut document = example();
        remove(&mut document, &one.pointer);
        let errors = parse(&document.to_string(), "q.yaml").expect_err(&one.field).to_string();
        assert!(errors.contains(&format!("`{}` is missing", one.key)), "without {}: {errors}", one.field);
    }
}

/// A key of the schema as it occurs in the example.
struct Occurrence {
    section: &'static dyn Described,
    key: String,
    /// The path in errors: `listeners[0].address`.
    field: String,
    /// The JSON pointer (RFC 6901): `/listeners/0/address`.
    pointer: String,
}

impl Occurrence {
    fn preset(&self) -> Preset {
        let keys = self.section.keys();
        keys.iter().find(|key: &&KeyDescription| key.name == self.key).unwrap().preset
    }
}

fn remove(document: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
}

fn example() -> Value {
    json(&crate::yaml::read(FULL, Limits::BY_HAND).unwrap().unwrap())
}

fn occurrences() -> Vec<Occurrence> {
    let mut found = Vec::new();
    visit(&example(), "", "", "", &mut found);
    found
}

/// Walks the example and the schema side by side. `path` is the section's, `field` and `pointer` are the value's.
fn visit(value: &Value, path: &str, field: &str, pointer: &str, found: &mut Vec<Occurrence>) {
    let section = SECTIONS.iter().find(|section| section.path() == path);
    let dotted =
        |path: &str, key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, value) in value.as_object().into_iter().flatten() {
        let (field, pointer) = (dotted(field, key), format!("{pointer}/{key}"));
        let below = dotted(path, if section.is_some() { key } else { "<name>" });
        visit(value, &below, &field, &pointer, found);
        found.extend(section.map(|section| Occurrence {
            section: *section,
            key: key.clone(),
            field,
            pointer,
        }));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let (field, pointer) = (format!("{field}[{index}]"), format!("{pointer}/{index}"));
        visit(item, &format!("{path}[]"), &field, &pointer, found);
    }
}

fn json(node: &Node) -> Value {
    match &node.value {
        Yaml::Null => Value::Null,
        Yaml::Scalar(text) => Value::String(text.to_string()),
        Yaml::Sequence(items) => items.iter().map(json).collect(),
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), json(&entry.value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
