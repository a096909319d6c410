//! A JSON Schema of the configuration file (draft 2020-12), for editors and for checks without this program.
//!
//! It is made from the same tables as the reference. It accepts every valid file, and refuses unknown and missing
//! keys, values of the wrong kind, and values outside of enumerations. What concerns several keys, only the program
//! checks.

use super::{
    reference::described_at,
    schema::{Described, KeyDescription, Preset},
    sections::SECTIONS,
};
use serde_json::{Map, Value, json};

/// Returns the schema of the configuration file.
pub fn json_schema() -> Value {
    let mut definitions: Map<String, Value> =
        SECTIONS.iter().map(|section| (name_of(section.path()), object(*section))).collect();
    definitions.insert("variable".to_owned(), json!({ "type": "string", "pattern": r"\$(file)?\{" }));
    let mut schema = object(SECTIONS[0]);
    if let Some(root) = schema.as_object_mut() {
        root.remove("required");
        root.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        root.insert("title".to_owned(), "Configuration of Quadrille".into());
        let any = ["listeners", "include", "upstreams"].map(|key| json!({ "required": [key] }));
        root.insert("anyOf".to_owned(), any.to_vec().into());
        root.insert("patternProperties".to_owned(), json!({ "^x-": true }));
        definitions.remove(&name_of(""));
        root.insert("$defs".to_owned(), definitions.into());
    }
    schema
}

fn object(section: &dyn Described) -> Value {
    let keys = section.keys();
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), property(section, key))).collect();
    let required = keys.iter().filter(|key| matches!(key.preset, Preset::Required));
    let required: Vec<_> = required.map(|key| key.name).collect();
    json!({
        "type": "object",
        "description": section.about(),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(section: &dyn Described, key: &KeyDescription) -> Value {
    let mut forms = Vec::new();
    let described = described_at(section, key, SECTIONS).or_else(|| described_elsewhere(key));
    let reference = described.map(|path| json!({ "$ref": format!("#/$defs/{}", name_of(path)) }));
    let (text, any_object) = (key.value, json!({ "type": "object" }));
    let is_list = text.starts_with("list of") || text.contains("list of ");
    if text.starts_with("mapping of") {
        forms.push(json!({
            "type": "object",
            "additionalProperties": reference.unwrap_or_else(|| scalar("text")),
        }));
    } else if text.contains("mapping") && !is_list {
        forms.push(reference.unwrap_or(any_object));
    } else if is_list {
        let mut items = Vec::new();
        let (before, inside) = text.split_once("list of ").unwrap_or(("", text));
        if described.is_some() || inside.contains("mappings") {
            items.push(reference.unwrap_or(any_object));
        }
        if described.is_none() || inside.starts_with('`') || inside.contains(" or ") || !before.is_empty() {
            items.push(scalar("text"));
        }
        forms.push(json!({ "type": "array", "minItems": 1, "items": { "anyOf": items } }));
    }
    forms.extend(alone(text, is_list).map(scalar));
    let mut schema = json!({ "description": key.about });
    if let Some(schema) = schema.as_object_mut() {
        forms.push(json!({ "$ref": "#/$defs/variable" }));
        schema.insert("anyOf".to_owned(), forms.into());
        if let Preset::Is(value) = key.preset {
            schema.insert("default".to_owned(), value.into());
        }
    }
    schema
}

/// Returns the section of a key that is described at another place: `error_pages` of routes at those of listeners.
fn described_elsewhere(key: &KeyDescription) -> Option<&'static str> {
    let name = if key.name == "request_headers" { "response_headers" } else { key.name };
    SECTIONS.iter().find_map(|section| {
        let keys = section.keys();
        let mut same = keys.iter().filter(|known| known.name == name && known.value == key.value);
        same.find_map(|known| described_at(*section, known, SECTIONS))
    })
}

/// Returns the part of the value's description that concerns single values; `None` without one.
fn alone(text: &'static str, is_list: bool) -> Option<&'static str> {
    if is_list {
        return match text.split_once("list of ") {
            // A single item may stand for a list of words or names.
            Some(("", inside)) if inside.starts_with('`') || inside.starts_with("names") => Some("text"),
            Some(("", inside)) => inside.contains(", or `").then_some("text"),
            _ => Some("text"),
        };
    }
    match text {
        "mapping" => None,
        _ if text.starts_with("mapping of") || text.starts_with("mapping with") => None,
        _ => Some(text.strip_prefix("mapping, ").unwrap_or(text)),
    }
}

/// Returns the schema of a single value, by its description: "`on`, `off` or a duration". If a part of it is not known
/// here, every single value is valid.
fn scalar(text: &str) -> Value {
    let open = json!({ "type": ["string", "number", "boolean"] });
    if let Some((least, most)) = range(text) {
        return json!({ "anyOf": [{ "type": "integer", "minimum": least, "maximum": most }, digits()] });
    }
    let parts = text.replace(" or ", ",");
    let parts = parts.split(',').map(str::trim).filter(|part| !part.is_empty());
    let schemas: Option<Vec<_>> = parts.map(|part| known(part.trim_start_matches("or "))).collect();
    schemas.map_or(open, |schemas| json!({ "anyOf": schemas }))
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (least, most) = text.split_once(" to ")?;
    Some((least.parse().ok()?, most.parse().ok()?))
}

/// Returns the schema of a kind of values, or of a word.
fn known(part: &str) -> Option<Value> {
    let quoted = part.strip_prefix('`').and_then(|part| part.strip_suffix('`'));
    let is_word = |word: &&str| !word.contains([':', '*', '/', ' ', '`']);
    let number = || (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).then_some(part);
    if let Some(word) = quoted.filter(is_word).or_else(number) {
        return Some(json!({ "enum": spellings(word) }));
    }
    Some(match part.trim_start_matches("a ") {
        "count" => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, digits()] }),
        "port" => json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 65535 }, digits()] }),
        "duration" => json!({ "anyOf": [{ "const": 0 }, { "type": "string", "pattern": DURATION }] }),
        "size" => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": SIZE }] })
        }
        _ => return None,
    })
}

const DURATION: &str = r"^(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h|d))+)$";
const SIZE: &str = "^[0-9]+(KiB|MiB|GiB)?$";

fn digits() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]+$" })
}

/// Returns the spellings of a word in YAML, which may be a boolean or a number.
fn spellings(word: &str) -> Vec<Value> {
    let mut all = vec![json!(word)];
    match word {
        "on" => all.extend([json!("true"), json!("yes"), json!(true)]),
        "off" => all.extend([json!("false"), json!("no"), json!(false)]),
        _ => all.extend(word.parse::<f64>().ok().map(|_| word.parse::<Value>().unwrap_or_default())),
    }
    all
}

fn name_of(path: &str) -> String {
    match path {
        "" => "file".to_owned(),
        path => path.replace("[]", "").replace(".<name>", ""),
    }
}
