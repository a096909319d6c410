//! Composition of a document: included files, merge keys, `x-` blocks, and variables.
//!
//! All of them concern the tree; sections read the result like a single file. Positions keep the number of the file,
//! so that messages name the included file and its line.

use super::{
    text::read_text,
    variables::{self, Surroundings},
};
use crate::{
    Diagnostic, Problem,
    model::{Origin, Place},
    suggest::quote,
    yaml::{self, Entry, Limits, Node, Position, Value},
};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Composer of a document from its files.
pub(super) struct Composer {
    /// The document's file, and then those that it includes.
    pub(super) origins: Vec<Origin>,
    /// The files and directories that were read, besides the document's own.
    pub(super) files: Vec<PathBuf>,
    pub(super) mistakes: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    /// Whether a file could not be read, so that its settings are missing.
    pub(super) is_incomplete: bool,
    /// The files that are being read, of which each includes the next.
    open: Vec<PathBuf>,
}

/// Maximum number of files that include each other in turn.
const DEEPEST: usize = 8;
/// Maximum number of files of a document.
const MOST_FILES: usize = 10_000;
/// Maximum size of a file that `$file{...}` names.
const LARGEST_VALUE: u64 = 1 << 20;

impl Composer {
    pub(super) fn new(origin: Origin) -> Self {
        let open = match &origin {
            Origin::File(name) => std::fs::canonicalize(&**name).into_iter().collect(),
            _ => Vec::new(),
        };
        Self {
            origins: vec![origin],
            files: Vec::new(),
            mistakes: Vec::new(),
            warnings: Vec::new(),
            is_incomplete: false,
            open,
        }
    }

    /// Reads the document; `None` if it is empty, or is not YAML.
    pub(super) fn compose(&mut self, text: &str) -> Option<Node> {
        let mut root = self.read(text, 0)?;
        self.include(&mut root, 0);
        Some(root)
    }

    /// Reads one file.
    fn read(&mut self, text: &str, number: u16) -> Option<Node> {
        let mut root = match yaml::read(text, Limits::BY_HAND) {
            Ok(root) => root?,
            Err(error) => {
                self.is_incomplete = true;
                self.mistakes.push(Diagnostic::syntax(&self.origins[usize::from(number)], error));
                return None;
            }
        };
        set_file(&mut root, number);
        if let Value::Mapping(entries) = &mut root.value {
            entries.retain(|entry| !entry.key.starts_with("x-"));
        }
        self.merge(&mut root, "");
        self.expand(&mut root, "");
        Some(root)
    }

    fn fail(&mut self, position: Position, path: &str, problem: impl Into<Problem>) {
        let place = self.place(position, path);
        self.mistakes.push(Diagnostic::new(&place, problem));
    }

    fn place(&self, position: Position, path: &str) -> Place {
        Place::at(&self.origins[usize::from(position.file)], position, path)
    }

    /// Replaces the merge keys of a mapping (`<<`) by the entries of the mappings that they name. An entry that is
    /// written out takes precedence, then the first mapping.
    fn merge(&mut self, node: &mut Node, path: &str) {
        self.below(node, path, Self::merge);
        let Value::Mapping(entries) = &mut node.value else { return };
        let mut merged = Vec::new();
        entries.retain_mut(|entry| {
            let is_merge = entry.key == "<<";
            if is_merge {
                merged.push((entry.position, std::mem::replace(&mut entry.value.value, Value::Null)));
            }
            !is_merge
        });
        for (position, value) in merged {
            let given = match value {
                Value::Sequence(items) => items.into_iter().map(|item| item.value).collect(),
                one => vec![one],
            };
            for value in given {
                let Value::Mapping(more) = value else {
                    self.fail(
                        position,
                        &joined(path, "<<"),
                        ["not a mapping", "name mappings only: `<<: *name`"],
                    );
                    continue;
                };
                let known = |key: &str, entries: &[Entry]| entries.iter().any(|entry| entry.key == key);
                let more: Vec<_> = more.into_iter().filter(|entry| !known(&entry.key, entries)).collect();
                entries.extend(more);
            }
        }
    }

    /// Replaces variables in single values.
    fn expand(&mut self, node: &mut Node, path: &str) {
        self.below(node, path, Self::expand);
        let Value::Scalar(text) = &mut node.value else { return };
        let origin = self.origins[usize::from(node.position.file)].clone();
        let mut from = Machine { directory: origin.directory(), files: &mut self.files };
        match variables::expanded(text, &mut from) {
            Ok(None) => {}
            Ok(Some(made)) => *text = made,
            Err(problem) => self.fail(node.position, path, problem),
        }
    }

    /// Applies a change to everything directly below a node.
    fn below(&mut self, node: &mut Node, path: &str, change: fn(&mut Self, &mut Node, &str)) {
        match &mut node.value {
            Value::Null | Value::Scalar(_) => {}
            Value::Sequence(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    change(self, item, &format!("{path}[{index}]"));
                }
            }
            Value::Mapping(entries) => {
                for entry in entries {
                    change(self, &mut entry.value, &joined(path, &entry.key));
                }
            }
        }
    }

    /// Adds the files that `include` of this file names.
    fn include(&mut self, root: &mut Node, depth: usize) {
        let Value::Mapping(entries) = &mut root.value else { return };
        let Some(at) = entries.iter().position(|entry| entry.key == INCLUDE) else { return };
        let Entry { value, position, .. } = entries.remove(at);
        let patterns = match value.value {
            Value::Sequence(items) if !items.is_empty() => items,
            Value::Scalar(_) => vec![value],
            _ => {
                let message = ["not a list of files", "write a list, such as `[sites/*.yaml]`"];
                return self.fail(position, INCLUDE, message);
            }
        };
        for (index, pattern) in patterns.into_iter().enumerate() {
            let path = format!("{INCLUDE}[{index}]");
            let Value::Scalar(text) = &pattern.value else {
                self.fail(pattern.position, &path, ["not a file", "write a path, such as `sites/*.yaml`"]);
                continue;
            };
            for file in self.matching(text, pattern.position, &path) {
                if let Some(included) = self.included(&file, pattern.position, &path, depth) {
                    self.add(root, included);
                }
            }
        }
    }

    /// Returns the files of a pattern in alphabetical order.
    fn matching(&mut self, pattern: &str, position: Position, path: &str) -> Vec<PathBuf> {
        let directory = self.origins[usize::from(position.file)].directory();
        let whole = directory.join(pattern);
        if !pattern.contains(['*', '?', '[']) {
            return vec![whole];
        }
        let (folder, name) = match (whole.parent(), Path::new(pattern).file_name()) {
            (Some(folder), Some(name)) => (folder, name.to_string_lossy()),
            _ => (Path::new(""), pattern.into()),
        };
        let above = pattern.strip_suffix(&*name).unwrap_or_default();
        if above.contains(['*', '?', '[']) || name.contains("**") {
            let message =
                ["a pattern of directories", "use `*`, `?` and `[...]` in the name of the file alone"];
            self.fail(position, path, message);
            return Vec::new();
        }
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.files.push(here.to_owned());
        let escaped = folder.join("").display().to_string();
        let found = match glob::glob(&format!("{}{name}", glob::Pattern::escape(&escaped))) {
            Ok(found) => found.filter_map(Result::ok).filter(|file| file.is_file()).collect::<Vec<_>>(),
            Err(error) => {
                self.fail(position, path, format!("{} is not a pattern: {}", quote(pattern), error.msg));
                return Vec::new();
            }
        };
        if found.is_empty() {
            let place = self.place(position, path);
            let problem =
                Problem::new(format!("no file matches {}", quote(pattern)), "remove it, or add a file");
            self.warnings.push(Diagnostic::new(&place, problem));
        }
        found
    }

    /// Reads an included file, with the files that it includes in turn.
    fn included(&mut self, file: &Path, position: Position, path: &str, depth: usize) -> Option<Node> {
        self.files.push(file.to_owned());
        let known = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let number = u16::try_from(self.origins.len()).ok().filter(|_| self.origins.len() < MOST_FILES);
        let problem = if self.open.contains(&known) {
            Some(format!("{} includes itself", shown(file)))
        } else if depth >= DEEPEST || number.is_none() {
            Some("too many files include each other".to_owned())
        } else {
            None
        };
        if let Some(problem) = problem {
            self.is_incomplete = true;
            self.fail(position, path, Problem::new(problem, "remove it from `include`"));
            return None;
        }
        let text = match regular(file).and_then(|()| read_text(file).map_err(first_problem)) {
            Ok(text) => text,
            Err(problem) => {
                self.is_incomplete = true;
                let message = format!("{}: {}", shown(file), problem.message);
                self.fail(position, path, Problem { message, ..problem });
                return None;
            }
        };
        let number = number?;
        self.origins.push(Origin::file(&file.display().to_string()));
        let mut root = self.read(&text, number)?;
        self.open.push(known);
        self.include(&mut root, depth + 1);
        self.open.pop();
        Some(root)
    }

    /// Adds the settings of an included file: the items of lists, and the entries of mappings.
    fn add(&mut self, root: &mut Node, included: Node) {
        let place = included.position;
        let (Value::Mapping(entries), Value::Mapping(more)) = (&mut root.value, included.value) else {
            let message = ["not a mapping", "write settings of the top level, such as `listeners`"];
            return self.fail(place, "", message);
        };
        for entry in more {
            let Some(before) = entries.iter_mut().find(|before| before.key == entry.key) else {
                entries.push(entry);
                continue;
            };
            match (&mut before.value.value, entry.value.value) {
                (Value::Sequence(items), Value::Sequence(more)) => items.extend(more),
                (Value::Mapping(inside), Value::Mapping(more)) => {
                    for one in more {
                        match inside.iter().find(|known| known.key == one.key) {
                            Some(known) => {
                                let path = joined(&entry.key, &one.key);
                                self.twice(known.position, one.position, &path);
                            }
                            None => inside.push(one),
                        }
                    }
                }
                _ => self.twice(before.position, entry.position, &entry.key),
            }
        }
    }

    fn twice(&mut self, first: Position, second: Position, path: &str) {
        let (first, second) = (self.place(first, path), self.place(second, path));
        let problem = Problem::new(
            format!("already set at {}:{}", first.origin, first.line.unwrap_or_default()),
            "remove one",
        );
        self.mistakes.push(Diagnostic::new(&second, problem).contradicting(&first));
    }
}

/// The key of included files.
const INCLUDE: &str = "include";

/// The environment and the files of this machine.
struct Machine<'a> {
    directory: PathBuf,
    files: &'a mut Vec<PathBuf>,
}

impl Surroundings for Machine<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&mut self, path: &str) -> Result<Zeroizing<String>, Problem> {
        let file = self.directory.join(path);
        self.files.push(file.clone());
        let explained = |problem: Problem| Problem {
            message: format!("{}: {}", shown(&file), problem.message),
            ..problem
        };
        regular(&file).map_err(explained)?;
        if std::fs::metadata(&file).is_ok_and(|file| file.len() > LARGEST_VALUE) {
            return Err(explained(Problem::new("larger than 1MiB", "name a file with one value")));
        }
        let text = read_text(&file).map_err(first_problem).map_err(explained)?;
        let value = text.strip_suffix('\n').map_or(text.as_str(), |text| text.trim_end_matches('\r'));
        Ok(Zeroizing::new(value.to_owned()))
    }
}

/// Returns a path for messages; quoted if it does not exist, since it may be a misplaced private key.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if path.exists() { text } else { quote(&text) }
}

/// Refuses a path that is there and is not a file: a device may have no end.
fn regular(path: &Path) -> Result<(), Problem> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(Problem::new("not a regular file", "name a file")),
        _ => Ok(()),
    }
}

fn first_problem(found: crate::Diagnostics) -> Problem {
    found.into_iter().next().map_or_else(|| "cannot be read".into(), |found| found.problem)
}

fn joined(path: &str, key: &str) -> String {
    let key = quote(key);
    let key = key.trim_matches('`');
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn set_file(node: &mut Node, number: u16) {
    node.position.file = number;
    match &mut node.value {
        Value::Null | Value::Scalar(_) => {}
        Value::Sequence(items) => items.iter_mut().for_each(|item| set_file(item, number)),
        Value::Mapping(entries) => {
            for entry in entries {
                entry.position.file = number;
                set_file(&mut entry.value, number);
            }
        }
    }
}
