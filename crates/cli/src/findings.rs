//! Findings of `quadrille check`: errors and warnings as text, as a list in JSON, and as SARIF 2.1.0.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use quadrille_config::Diagnostic;
use serde_json::{Value, json};
use std::path::Path;

/// An error or a warning.
pub(crate) enum Finding {
    Error(Diagnostic),
    Warning(Diagnostic),
    /// A warning about a part of the configuration, such as a certificate.
    OfPart(String),
}

/// A finding with its place.
pub(crate) struct Located {
    file: String,
    /// The line, counted from one.
    line: Option<u64>,
    /// The column, counted from one.
    column: Option<u16>,
    /// `error` or `warning`.
    level: &'static str,
    /// The path of the key; empty if the finding does not concern one.
    key: String,
    message: String,
}

impl Finding {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Error(diagnostic) | Self::Warning(diagnostic) => diagnostic.to_string(),
            Self::OfPart(text) => text.clone(),
        }
    }

    /// Returns the finding with its place, in this file if it names no other. `strict` makes warnings errors.
    pub(crate) fn located(&self, file: &Path, strict: bool) -> Located {
        let level = if strict || matches!(self, Self::Error(_)) { "error" } else { "warning" };
        match self {
            Self::Error(Diagnostic { place, problem, .. })
            | Self::Warning(Diagnostic { place, problem, .. }) => Located {
                file: place.origin.to_string(),
                line: place.line,
                column: (place.column > 0).then_some(place.column),
                level,
                key: place.path.to_string(),
                message: problem.to_string(),
            },
            Self::OfPart(text) => {
                let whole = file.display().to_string();
                let (file, line, key, message) = match placed(text) {
                    Some((file, line, key, message)) => (file, Some(line), key, message),
                    None => (&*whole, None, "", text.as_str()),
                };
                let (file, key, message) = (file.to_owned(), key.to_owned(), message.to_owned());
                Located { file, line, column: None, level, key, message }
            }
        }
    }
}

/// Returns a list of findings.
pub(crate) fn list(findings: &[Located]) -> Value {
    let entry = |Located { file, line, column, level, key, message }: &Located| json!({ "file": file, "line": line, "column": column, "level": level, "key": key, "message": message });
    findings.iter().map(entry).collect()
}

/// Returns a log in the Static Analysis Results Interchange Format (SARIF 2.1.0), with a rule for errors and one for warnings.
pub(crate) fn sarif(findings: &[Located]) -> Value {
    let rule = |id: &str, level: &str, text: &str| {
        json!({
            "id": id,
            "shortDescription": { "text": text },
            "defaultConfiguration": { "level": level },
        })
    };
    let results: Value = findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "quadrille",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    rule(rule_of("error"), "error", "The configuration cannot be served."),
                    rule(rule_of("warning"), "warning", "A setting has no effect, or a surprising one."),
                ],
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule_of(level: &str) -> &'static str {
    if level == "error" { "invalid-configuration" } else { "suspicious-configuration" }
}

fn result(finding: &Located) -> Value {
    let Located { file, line, column, level, key, message } = finding;
    let mut physical = json!({ "artifactLocation": { "uri": uri(file) } });
    if let Some(line) = line {
        physical["region"] = json!({ "startLine": line });
        if let Some(column) = column {
            physical["region"]["startColumn"] = json!(column);
        }
    }
    let mut location = json!({ "physicalLocation": physical });
    let mut text = message.clone();
    if !key.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": key }]);
        text = format!("{key}: {message}");
    }
    json!({ "ruleId": rule_of(level), "level": level, "message": { "text": text }, "locations": [location] })
}

/// Returns the URI of a file, relative for a relative path (RFC 3986).
fn uri(file: &str) -> String {
    /// Characters that are not in paths of URIs.
    const ESCAPED: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'%')
        .add(b'<')
        .add(b'>')
        .add(b'?')
        .add(b'[')
        .add(b'\\')
        .add(b']')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}')
        .add(b':');
    let scheme = if file.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(file, ESCAPED))
}

/// Splits a warning that begins with a place: `quadrille.yaml:3 (listeners[0].tls): message`.
fn placed(text: &str) -> Option<(&str, u64, &str, &str)> {
    let (place, message) = text.split_once("): ")?;
    let (position, key) = place.split_once(" (")?;
    let (file, line) = position.rsplit_once(':')?;
    Some((file, line.parse().ok()?, key, message))
}

#[cfg(test)]
mod tests {
    use super::{placed, uri};

    #[test]
    fn warnings_have_places() {
        assert_eq!(placed("a.yaml:3 (b[0].c): d (e): f"), Some(("a.yaml", 3, "b[0].c", "d (e): f")));
        assert_eq!(placed("the certificate `a` (b): expired"), None);
        assert_eq!(placed("a.yaml:3: b"), None);
    }

    #[test]
    fn files_have_uris() {
        assert_eq!(uri("sites/a b.yaml"), "sites/a%20b.yaml");
        assert_eq!(uri("/etc/q/100%.yaml"), "file:///etc/q/100%25.yaml");
        assert_eq!(uri("standard input"), "standard%20input");
    }
}
