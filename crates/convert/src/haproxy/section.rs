//! Sections and lines of `haproxy.cfg`.

use crate::{
    ledger::{Ledger, Place, StatementId},
    source::Source,
};
use std::sync::Arc;

/// A line, as words.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) id: StatementId,
    pub(super) words: Vec<String>,
}

/// A section with its lines.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) line: Line,
    pub(super) lines: Vec<Line>,
}

impl Line {
    /// Returns a word, or an empty text.
    pub(super) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// Returns the word after this one.
    pub(super) fn after(&self, word: &str) -> Option<&str> {
        let at = self.words.iter().position(|found| found == word)?;
        self.words.get(at + 1).map(String::as_str)
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|found| found == word)
    }

    /// Returns whether the line begins with these words.
    pub(super) fn begins(&self, words: &[&str]) -> bool {
        words.len() <= self.words.len()
            && words.iter().zip(&self.words).all(|(wanted, found)| wanted == found)
    }

    /// Returns the words of the condition after `if` or `unless`, and whether it is negated.
    pub(super) fn condition(&self) -> Option<(bool, &[String])> {
        let at = self.words.iter().position(|word| word == "if" || word == "unless")?;
        Some((self.words[at] == "unless", &self.words[at + 1..]))
    }

    /// Returns the words before the condition.
    pub(super) fn action(&self) -> &[String] {
        let end = self.words.iter().position(|word| word == "if" || word == "unless");
        &self.words[..end.unwrap_or(self.words.len())]
    }
}

impl Section {
    pub(super) fn kind(&self) -> &str {
        self.line.word(0)
    }

    pub(super) fn name(&self) -> &str {
        self.line.word(1)
    }

    /// Returns the last line that begins with these words.
    pub(super) fn last(&self, words: &[&str]) -> Option<&Line> {
        self.lines.iter().rev().find(|line| line.begins(words))
    }
}

const KINDS: &[&str] = &[
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "userlist",
    "resolvers",
    "peers",
    "cache",
    "program",
    "mailers",
    "ring",
    "http-errors",
    "fcgi-app",
    "log-forward",
];

/// Reads the sections. The lines of the section `defaults` that applies to a section stand before its own.
///
/// # Errors
/// If a line stands before the first section, or a quoted text does not end.
pub(super) fn read(source: &Source, ledger: &Ledger) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, text) in source.text.lines().enumerate() {
        let place = Place { file: Arc::clone(&source.name), line: index + 1 };
        let words = words(text).ok_or_else(|| format!("{place}: a quoted text does not end"))?;
        let Some(first) = words.first() else { continue };
        let line = Line { id: ledger.add(place.clone(), &shown(&words)), words: words.clone() };
        if KINDS.contains(&first.as_str()) {
            sections.push(Section { line, lines: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        } else {
            return Err(format!("{place}: `{first}` is not the name of a section, such as `frontend`"));
        }
    }
    Ok(with_defaults(sections))
}

/// Returns the text of a line for remarks, without passwords and values of headers, which may be secrets.
fn shown(words: &[String]) -> String {
    let is = |index: usize, word: &str| words.get(index).is_some_and(|found| found == word);
    let is_header = words.get(1).is_some_and(|action| action.ends_with("-header"));
    let count = match () {
        () if is(0, "user") || is(0, "stats") => 2,
        () if is_header => 3,
        () => words.len(),
    };
    words[..count.min(words.len())].join(" ")
}

/// Puts the lines of `defaults` before those of the sections that they apply to.
fn with_defaults(sections: Vec<Section>) -> Vec<Section> {
    let mut defaults: Vec<Section> = Vec::new();
    let mut all = Vec::new();
    for mut section in sections {
        let from = section.line.after("from");
        let chosen = match from {
            Some(name) => defaults.iter().rev().find(|one| one.name() == name),
            None => defaults.last(),
        };
        let inherits = ["frontend", "backend", "listen"].contains(&section.kind())
            || (section.kind() == "defaults" && from.is_some());
        if let Some(chosen) = chosen.filter(|_| inherits) {
            section.lines.splice(..0, chosen.lines.iter().cloned());
        }
        if section.kind() == "defaults" {
            defaults.push(section.clone());
        }
        all.push(section);
    }
    all
}

/// Splits a line into words: quotes, backslashes and comments as in HAProxy's manual, section 2.2.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut begun) = (Vec::new(), String::new(), false);
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (None | Some('"'), '\\') => {
                begun = true;
                match chars.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some(c @ (' ' | '#' | '\\' | '\'' | '"' | '$')) => word.push(c),
                    Some(c) => word.extend(['\\', c]),
                    None => word.push('\\'),
                }
            }
            (None, '#') => break,
            (None, c) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if quote.is_some() {
        return None;
    }
    if begun {
        words.push(word);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_haproxy_does() {
        let split = |text| words(text).unwrap_or_default();
        assert_eq!(split("  bind :80 # x"), ["bind", ":80"]);
        assert_eq!(split(r#"a "b c" 'd "e' f\ g"#), ["a", "b c", "d \"e", "f g"]);
        assert_eq!(split(r"path_reg ^/a\.b$"), ["path_reg", r"^/a\.b$"]);
        assert_eq!(words("a \"b"), None);
    }
}
