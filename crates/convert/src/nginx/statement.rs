//! Statements of nginx's configuration, as a tree, with the files that it includes.

use super::lexer::{self, Kind, Token};
use crate::{
    ledger::{Ledger, Place, StatementId},
    source::Source,
};
use std::{path::Path, sync::Arc};

/// Depth of blocks and included files.
const DEEPEST: usize = 30;
/// Number of statements, all files together.
const MOST: usize = 100_000;

/// A statement: a name, arguments, and a block of statements or none.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) id: StatementId,
    pub(super) name: String,
    pub(super) args: Vec<String>,
    pub(super) block: Option<Vec<Statement>>,
}

impl Statement {
    /// Returns an argument, or an empty text.
    pub(super) fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", String::as_str)
    }

    /// Returns the value of an argument of the form `key=value`.
    pub(super) fn option(&self, key: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='))
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.args.iter().any(|arg| arg == word)
    }

    pub(super) fn statements(&self) -> &[Statement] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns whether the argument is `on`.
    pub(super) fn is_on(&self) -> bool {
        self.arg(0) == "on"
    }
}

/// Reads the tree of a source. Statements of included files take the place of `include`; one whose file cannot be read
/// stays in the tree.
///
/// # Errors
/// If the text is not in nginx's syntax.
pub(super) fn read(source: &Source, ledger: &Ledger) -> Result<Vec<Statement>, String> {
    let reader = Reader { ledger, directory: &source.directory };
    reader.file(&source.name, &source.text, 0)
}

/// Returns the text of a statement for remarks, without values of headers, which may be secrets.
fn shown(words: &[String]) -> String {
    let is_header = words.first().is_some_and(|name| name.ends_with("_header") || name.ends_with("_headers"));
    let count = if is_header { 2 } else { words.len() };
    words[..count.min(words.len())].join(" ")
}

struct Reader<'a> {
    ledger: &'a Ledger,
    directory: &'a Path,
}

impl Reader<'_> {
    fn file(&self, name: &Arc<str>, text: &str, depth: usize) -> Result<Vec<Statement>, String> {
        let tokens = lexer::tokens(text).map_err(|problem| format!("{name}:{problem}"))?;
        let mut rest = tokens.as_slice();
        let statements = self.block(name, &mut rest, depth)?;
        match rest.first() {
            None => Ok(statements),
            Some(token) => Err(format!("{name}:{}: a closing brace without a block; remove it", token.line)),
        }
    }

    /// Reads statements until a closing brace or the end.
    fn block(&self, name: &Arc<str>, rest: &mut &[Token], depth: usize) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        if depth > DEEPEST {
            return Err(format!("{name}: blocks or included files are nested too deeply"));
        }
        while let Some(first) = rest.first() {
            if first.kind == Kind::Close {
                break;
            }
            let line = first.line;
            let mut words = Vec::new();
            let end = loop {
                let Some((token, after)) = rest.split_first() else {
                    return Err(format!("{name}:{line}: the statement does not end; add `;`"));
                };
                *rest = after;
                match &token.kind {
                    Kind::Word(word) => words.push(word.clone()),
                    end => break end,
                }
            };
            if words.is_empty() && *end != Kind::Open {
                return Err(format!("{name}:{line}: a semicolon or brace without a statement; remove it"));
            }
            let place = Place { file: Arc::clone(name), line };
            let id = self.ledger.add(place, &shown(&words));
            if self.ledger.len() > MOST {
                return Err(format!("{name}: more than {MOST} statements"));
            }
            let mut words = words.into_iter();
            let mut statement =
                Statement { id, name: words.next().unwrap_or_default(), args: words.collect(), block: None };
            if *end == Kind::Open {
                statement.block = Some(self.block(name, rest, depth + 1)?);
                match rest.split_first() {
                    Some((_, after)) => *rest = after,
                    None => return Err(format!("{name}:{line}: the block does not end; add `}}`")),
                }
            } else if *end == Kind::Close {
                return Err(format!("{name}:{line}: the statement does not end; add `;`"));
            }
            if statement.name == "include" && statement.block.is_none() {
                match self.included(&statement, depth)? {
                    Some(included) => statements.extend(included),
                    None => statements.push(statement),
                }
            } else {
                statements.push(statement);
            }
        }
        Ok(statements)
    }

    /// Returns the statements of included files; `None` if one of them cannot be read.
    fn included(&self, include: &Statement, depth: usize) -> Result<Option<Vec<Statement>>, String> {
        let pattern = self.directory.join(include.arg(0)).display().to_string();
        let mut paths = Vec::new();
        if pattern.contains(['*', '?', '[']) {
            if let Ok(found) = glob::glob(&pattern) {
                paths.extend(found.filter_map(Result::ok));
            }
        } else {
            paths.push(Path::new(&pattern).to_owned());
        }
        let mut statements = Vec::new();
        for path in paths {
            let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
            let name = path.display().to_string().into();
            statements.extend(self.file(&name, &text, depth + 1)?);
        }
        self.ledger.converted(include.id);
        Ok(Some(statements))
    }
}
