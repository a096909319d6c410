//! A YAML document as a tree of nodes with line numbers. JSON is a subset of YAML, so it is read too.
//!
//! Scalars keep the text that was written (`1.2` stays `1.2`, `off` stays `off`): the reader of a value interprets
//! it, not YAML's type inference.
//!
//! The tree is independent of files and of the meaning of values. It is made from text here, and can be made from
//! other sources: a node that does not come from text has no position.

mod format;

pub use crate::model::Position;
pub use format::format;

use crate::model::Problem;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use std::collections::HashMap;
use zeroize::Zeroizing;

/// Limits on the size of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nesting levels of lists and mappings, which functions that walk the tree hold on the stack.
    pub depth: usize,
    /// Number of nodes, including copies made by aliases, so that nested aliases cannot exhaust memory.
    pub nodes: usize,
}

impl Limits {
    /// Limits for configurations in the gateway's own language: more than any that is written by hand needs, and than the
    /// routes of some ten thousand Ingress objects.
    pub const BY_HAND: Self = Self { depth: 32, nodes: 1_000_000 };

    /// Limits for documents written by programs: tens of thousands of routes, deeply nested.
    pub const BY_PROGRAM: Self = Self { depth: 64, nodes: 4_000_000 };
}

/// A node: a value with the position at which it begins.
#[derive(Clone, Debug)]
pub struct Node {
    /// The position.
    pub position: Position,
    /// The value.
    pub value: Value,
    /// Whether this is a single value without quotes, which YAML's core schema may take for a number or a boolean.
    pub plain: bool,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value, `~` or `null`.
    Null,
    /// The text as written, without quotes. It may be a private key.
    Scalar(Zeroizing<String>),
    /// Items in order.
    Sequence(Vec<Node>),
    /// Entries in order, duplicates included.
    Mapping(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// The key's position.
    pub position: Position,
    /// The value.
    pub value: Node,
}

/// The reason why a text cannot be parsed.
#[derive(Debug)]
pub struct SyntaxError {
    /// The position.
    pub position: Position,
    /// The problem and its remedy.
    pub problem: Problem,
}

/// Reads the one document of `text`; `None` if the text is empty.
///
/// # Errors
/// If it is not YAML, too large, or more than one document.
pub fn read(text: &str, limits: Limits) -> Result<Option<Node>, SyntaxError> {
    let mut documents = parse(text, limits)?.into_iter();
    let first = documents.next();
    match documents.next() {
        Some(Document { begun, .. }) => fail(
            begun,
            Problem::new(
                "a second document begins here",
                "a configuration is one document, remove the `---`",
            ),
        ),
        None => Ok(first.map(|document| document.root)),
    }
}

/// Reads every document of `text`, with `---` between them; empty ones are left out.
///
/// # Errors
/// If it is not YAML, or too large.
pub fn documents(text: &str, limits: Limits) -> Result<Vec<Node>, SyntaxError> {
    let documents = parse(text, limits)?.into_iter().map(|document| document.root);
    Ok(documents.filter(|root| !matches!(root.value, Value::Null)).collect())
}

fn parse(text: &str, limits: Limits) -> Result<Vec<Document>, SyntaxError> {
    let mut builder = Builder::new(limits);
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = next(&mut parser, text)? {
        builder.event(event.0, position_of(event.1.start))?;
    }
    Ok(builder.documents)
}

/// A document with the position at which it begins, which may be that of its `---`.
struct Document {
    begun: Position,
    root: Node,
}

impl Node {
    /// Returns the value of this key, if this is a mapping that has it. If the key is duplicated, the first one
    /// counts.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Value::Mapping(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns the text of a single value.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text),
            _ => None,
        }
    }

    fn size(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Scalar(_) => 0,
            Value::Sequence(items) => items.iter().map(Self::size).sum(),
            Value::Mapping(entries) => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }

    fn depth(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Scalar(_) => 0,
            Value::Sequence(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Mapping(entries) => entries.iter().map(|entry| entry.value.depth()).max().unwrap_or(0),
        }
    }
}

fn next<'a>(
    parser: &mut Parser<'a, StrInput<'a>>,
    text: &str,
) -> Result<Option<(Event<'a>, Span)>, SyntaxError> {
    parser.next_event().transpose().map_err(|error| explain(&error, text))
}

/// Converts a scanner error, and adds a remedy for common mistakes.
fn explain(error: &ScanError, text: &str) -> SyntaxError {
    let position = position_of(*error.marker());
    let written = text.lines().nth(error.marker().line().saturating_sub(1)).unwrap_or_default();
    let remedy = if error.info().contains("unknown anchor") {
        Some("a value that begins with `*` needs quotes: \"*.example.com\"")
    } else if written.contains("${") && written.contains(['{', '[']) {
        Some("inside `{...}` and `[...]`, a value with `${...}` needs quotes: \"${NAME}\"")
    } else if written.contains("[::") || written.contains("]:") {
        Some("an IPv6 address needs quotes: \"[::]:8443\"")
    } else if written.trim_start_matches(' ').starts_with('\t') {
        Some("indent with spaces, not tabs")
    } else if error.info().contains("mapping values are not allowed") {
        Some("check the indentation, and quote values that contain `: `")
    } else if error.info().contains("unexpected character") {
        Some("quote values that begin with a special character")
    } else {
        None
    };
    let message = format!("not valid YAML: {}", error.info());
    SyntaxError { position, problem: Problem { message, remedy: remedy.map(str::to_owned) } }
}

fn position_of(marker: Marker) -> Position {
    Position::new(marker.line(), marker.col() + 1)
}

/// Builds nodes from events with an explicit stack, so that input cannot control the depth of the call stack.
struct Builder {
    limits: Limits,
    documents: Vec<Document>,
    /// The position at which the current document begins.
    begun: Position,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

/// A list or mapping whose end has not been read.
struct Open {
    node: Node,
    anchor: usize,
    /// The key of a mapping whose value has not been read.
    key: Option<(String, Position)>,
}

impl Builder {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            documents: Vec::new(),
            begun: Position::NONE,
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
        }
    }

    fn event(&mut self, event: Event<'_>, position: Position) -> Result<(), SyntaxError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), position)?;
                let null =
                    style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let text = Zeroizing::new(text.into_owned());
                let value = if null { Value::Null } else { Value::Scalar(text) };
                self.complete(Node { position, value, plain: style == ScalarStyle::Plain }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(Value::Sequence(Vec::new()), anchor, tag.as_deref(), position)
            }
            Event::MappingStart(anchor, tag) => {
                self.begin(Value::Mapping(Vec::new()), anchor, tag.as_deref(), position)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { node, anchor, .. }) => self.complete(node, anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let node = node.clone();
                    self.nodes += node.size();
                    self.check_depth(node.depth(), position)?;
                    self.complete(Node { position, ..node }, 0)
                }
                None => fail(
                    position,
                    Problem::new("this alias is inside the value that it refers to", "write the value out"),
                ),
            },
            Event::DocumentStart(_) => {
                self.begun = position;
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(
        &mut self,
        value: Value,
        anchor: usize,
        tag: Option<&Tag>,
        position: Position,
    ) -> Result<(), SyntaxError> {
        refuse_tag(tag, position)?;
        if matches!(
            self.open.last(),
            Some(Open { node: Node { value: Value::Mapping(_), .. }, key: None, .. })
        ) {
            return fail(position, Problem::new("a key is a list or a mapping", "keys are plain words"));
        }
        self.open.push(Open { node: Node { position, value, plain: false }, anchor, key: None });
        self.check_depth(0, position)
    }

    /// Adds a finished node to its parent.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), SyntaxError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return fail(
                node.position,
                "the document is too large: aliases multiply it, or it is not a configuration".into(),
            );
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(Open { node: Node { value, .. }, key, .. }) = self.open.last_mut() else {
            self.documents.push(Document { begun: self.begun, root: node });
            return Ok(());
        };
        match (value, key.take()) {
            (Value::Sequence(items), _) => items.push(node),
            (Value::Mapping(entries), Some((key, position))) => {
                entries.push(Entry { key, position, value: node });
            }
            (_, _) => *key = Some(as_key(node)?),
        }
        Ok(())
    }

    fn check_depth(&self, below: usize, position: Position) -> Result<(), SyntaxError> {
        if self.open.len() + below > self.limits.depth {
            return fail(
                position,
                Problem::new(
                    "nested too deeply for a configuration",
                    "check the indentation and the brackets",
                ),
            );
        }
        Ok(())
    }
}

fn as_key(node: Node) -> Result<(String, Position), SyntaxError> {
    match node.value {
        Value::Scalar(text) => Ok((text.to_string(), node.position)),
        _ => fail(node.position, Problem::new("a key is empty, a list or a mapping", "keys are plain words")),
    }
}

/// Refuses tags, except those of the core schema (`!!str`), which change nothing here; others would be silently
/// ignored.
fn refuse_tag(tag: Option<&Tag>, position: Position) -> Result<(), SyntaxError> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema() => {
            fail(position, Problem::new(format!("the tag `{tag}` is not supported"), "remove it"))
        }
        _ => Ok(()),
    }
}

fn fail<T>(position: Position, problem: Problem) -> Result<T, SyntaxError> {
    Err(SyntaxError { position, problem })
}
