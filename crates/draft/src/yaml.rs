//! YAML text of a converted configuration, with comments.

/// Widest line of a mapping or list that is written in flow style.
const WIDTH: usize = 100;

/// A value of the converted configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A scalar.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A mapping.
    Map(Map),
}

/// A mapping, in the order of insertion, with comments before its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    entries: Vec<(String, Value)>,
    /// Lines written before the first entry.
    comments: Vec<String>,
}

impl Map {
    /// Returns an empty mapping.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a mapping with one entry.
    pub fn of(key: &str, value: impl Into<Value>) -> Self {
        Self::new().with(key, value)
    }

    /// Adds an entry, or replaces its value.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key.to_owned(), value)),
        }
    }

    /// Adds an entry, and returns the mapping.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.set(key, value);
        self
    }

    /// Appends an item to the list under this key.
    pub fn push(&mut self, key: &str, item: impl Into<Value>) {
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, Value::List(items))) => items.push(item.into()),
            _ => self.set(key, Value::List(vec![item.into()])),
        }
    }

    /// Returns the mapping under this key, which is created if it is missing.
    pub fn inner(&mut self, key: &str) -> &mut Map {
        let at = match self.entries.iter().position(|(known, value)| known == key && value.is_map()) {
            Some(at) => at,
            None => {
                self.remove(key);
                self.entries.push((key.to_owned(), Value::Map(Map::new())));
                self.entries.len() - 1
            }
        };
        match &mut self.entries[at].1 {
            Value::Map(map) => map,
            Value::Text(_) | Value::List(_) => unreachable!("the entry is a mapping"),
        }
    }

    /// Returns the value under this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Removes the entry with this key.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|(known, _)| known != key);
    }

    /// Returns whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds all entries of another mapping.
    pub fn extend(&mut self, other: Map) {
        self.comments.extend(other.comments);
        for (key, value) in other.entries {
            self.set(&key, value);
        }
    }

    /// Adds a comment before the first entry.
    pub fn comment(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.comments.contains(&text) {
            self.comments.push(text);
        }
    }
}

impl Value {
    fn is_map(&self) -> bool {
        matches!(self, Self::Map(_))
    }

    fn has_comments(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::List(items) => items.iter().any(Self::has_comments),
            Self::Map(map) => {
                !map.comments.is_empty() || map.entries.iter().any(|(_, value)| value.has_comments())
            }
        }
    }

    /// Returns the value on one line.
    pub fn flow(&self) -> String {
        match self {
            Self::Text(text) => scalar(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::flow).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(map) if map.entries.is_empty() => "{}".to_owned(),
            Self::Map(map) => {
                let entry = |(key, value): &(String, Value)| format!("{}: {}", scalar(key), value.flow());
                format!("{{ {} }}", map.entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Text(number.to_string())
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// Writes a document: a mapping in block style, in which short mappings and lists below the second level are on one
/// line.
pub fn document(map: &Map) -> String {
    let mut text = String::new();
    write_map(&mut text, map, 0, true);
    text
}

fn write_map(text: &mut String, map: &Map, indent: usize, mut at_line_start: bool) {
    let pad = " ".repeat(indent);
    for comment in &map.comments {
        for line in wrapped(comment, WIDTH.saturating_sub(indent)) {
            if at_line_start {
                text.push_str(&pad);
            }
            at_line_start = true;
            text.push_str(&format!("# {line}\n"));
        }
    }
    for (key, value) in &map.entries {
        if at_line_start {
            text.push_str(&pad);
        }
        at_line_start = true;
        text.push_str(&scalar(key));
        text.push(':');
        write_value(text, value, indent);
    }
}

/// Writes a value after its key.
fn write_value(text: &mut String, value: &Value, indent: usize) {
    let flow = value.flow();
    let is_short = indent > 0 && flow.len() + indent <= WIDTH && !value.has_comments();
    match value {
        Value::Text(_) => text.push_str(&format!(" {flow}\n")),
        Value::List(items) if items.is_empty() => text.push_str(" []\n"),
        Value::Map(map) if map.is_empty() => text.push_str(" {}\n"),
        // A list of mappings is easier to edit with a line for each.
        Value::List(items) if !is_short || items.len() > 1 && items.iter().any(Value::is_map) => {
            text.push('\n');
            items.iter().for_each(|item| write_item(text, item, indent + 2));
        }
        Value::Map(map) if !is_short => {
            text.push('\n');
            write_map(text, map, indent + 2, true);
        }
        Value::List(_) | Value::Map(_) => text.push_str(&format!(" {flow}\n")),
    }
}

/// Writes an item of a list.
fn write_item(text: &mut String, item: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    let flow = item.flow();
    match item {
        Value::Map(map) if item.has_comments() || flow.len() + indent + 2 > WIDTH || indent <= 2 => {
            // Comments stand before the item, so that its first key is on the line of the dash.
            for line in map.comments.iter().flat_map(|comment| wrapped(comment, WIDTH.saturating_sub(indent)))
            {
                text.push_str(&format!("{pad}# {line}\n"));
            }
            let bare = Map { comments: Vec::new(), ..map.clone() };
            text.push_str(&format!("{pad}- "));
            write_map(text, &bare, indent + 2, false);
        }
        _ => text.push_str(&format!("{pad}- {flow}\n")),
    }
}

/// Splits a comment into lines of at most this width, at spaces.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(['\n', '\r', ' ']).filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Writes a scalar, quoted unless it is a plain word in every context. Texts that would be variables are escaped.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+".contains(c);
    let first = |c: char| c.is_ascii_alphanumeric() || "/._".contains(c);
    let is_word = text.starts_with(first) && text.chars().all(plain);
    if is_word && !text.eq_ignore_ascii_case("null") && !["y", "n", "."].contains(&text) {
        return text.to_owned();
    }
    let text = text.replace("${", "$${").replace("$file{", "$$file{");
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c) & 0xff)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_quoted_where_needed() {
        for (text, expected) in [
            ("/api", "/api"),
            ("10/s", "10/s"),
            ("0.0.0.0:80", "\"0.0.0.0:80\""),
            ("a: b", "\"a: b\""),
            ("null", "\"null\""),
            ("", "\"\""),
            ("{host}", "\"{host}\""),
            ("${x}", "\"$${x}\""),
            ("a\"\\b", "\"a\\\"\\\\b\""),
            ("-", "\"-\""),
        ] {
            assert_eq!(scalar(text), expected);
        }
    }

    #[test]
    fn comments_stand_before_their_item() {
        let mut route = Map::of("path", "/a").with("respond", Map::of("status", "503"));
        route.comment("line 3: closed");
        let document = document(&Map::of("routes", vec![route, Map::of("path", "/b")]));
        assert_eq!(
            document,
            "routes:\n  # line 3: closed\n  - path: /a\n    respond: { status: 503 }\n  - path: /b\n"
        );
    }
}
