//! Paths that a source file names.
//!
//! The parser works on tokens rather than on a syntax tree, so that the insides of macro calls count and comments do
//! not.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::{collections::BTreeSet, path::Path};

/// Names used and defined by a source file.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Paths of two segments or more, in the file's order.
    pub names: Vec<Name>,
    /// Items that the file defines, at any depth.
    pub defined: BTreeSet<String>,
    /// Modules in separate files that only tests use.
    pub test_modules: BTreeSet<String>,
}

/// A path in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The path, such as `a::b::C`. A path into the own crate begins with `crate`, unless it begins with a module
    /// that the file declares.
    pub path: String,
    /// Exported name of a `pub use`; `*` for all names of a module.
    pub exported_as: Option<String>,
    /// Whether only tests use the path.
    pub in_test: bool,
}

/// Returns every path of two segments or more in `source`, a file of the module `module` (empty at the crate's root).
///
/// `use a::{b, c::*}` gives `a::b` and `a::c::*`. `self::` and `super::` are resolved, so that a path into the own
/// crate always begins with `crate::`; modules written in place (`mod tests { ... }`) are taken into account.
pub fn paths(source: &str, module: &[&str]) -> Vec<String> {
    read(source, module).names.into_iter().map(|name| name.path).collect()
}

/// Parses `source`, a file of the module `module` (empty at the crate's root).
pub fn read(source: &str, module: &[&str]) -> Source {
    let tokens: TokenStream = source.parse().expect("the file consists of Rust tokens");
    let module = module.iter().map(|&segment| segment.to_owned()).collect();
    let mut walk = Walk { module, found: Source::default(), item: Item::default() };
    walk.tokens(tokens, &[]);
    walk.found
}

/// Returns the module of a file below `src/`: `src/model/route.rs` is `["model", "route"]`.
pub fn module_of(file_below_src: &Path) -> Vec<&str> {
    let segments =
        file_below_src.iter().map(|segment| segment.to_str().expect("source files have plain names"));
    let mut segments: Vec<_> = segments.map(|segment| segment.trim_end_matches(".rs")).collect();
    if let Some(&("mod" | "lib" | "main")) = segments.last() {
        segments.pop();
    }
    segments
}

struct Walk {
    module: Vec<String>,
    found: Source,
    item: Item,
}

/// State of the item being parsed.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    is_public: bool,
    /// Whether the item is a `use` declaration with `pub`.
    exports: bool,
    in_test: bool,
}

/// Keywords that precede a defined name.
const DEFINING: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

impl Walk {
    /// Parses tokens; `prefix` holds the segments in front of a `{...}` group.
    fn tokens(&mut self, tokens: TokenStream, prefix: &[String]) {
        let outer = self.item;
        let mut path = prefix.to_vec();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    self.end(&mut path, prefix, None);
                    let Some(TokenTree::Ident(name)) = tokens.next() else { continue };
                    match tokens.next_if(|next| matches!(next, TokenTree::Group(_))) {
                        Some(TokenTree::Group(body)) => self.inline_module(name.to_string(), body),
                        _ if self.item.in_test => _ = self.found.test_modules.insert(name.to_string()),
                        _ => _ = self.found.defined.insert(name.to_string()),
                    }
                    self.item = outer;
                }
                TokenTree::Ident(word) if word == "pub" && path.is_empty() => {
                    self.item.is_public = true;
                    tokens.next_if(is_restriction);
                }
                TokenTree::Ident(word) if word == "use" && path.is_empty() => {
                    self.item.exports = self.item.is_public;
                }
                TokenTree::Ident(segment) => {
                    path.push(segment.to_string());
                    if is_separator(tokens.peek()) {
                        continue;
                    }
                    let mut alias = None;
                    if self.item.exports && tokens.next_if(|next| is_word(next, "as")).is_some() {
                        alias = tokens.next().map(|name| name.to_string());
                    } else if path.len() == 1 && DEFINING.contains(&path[0].as_str()) {
                        tokens
                            .next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
                        if let Some(TokenTree::Ident(name)) = tokens.peek() {
                            self.found.defined.insert(name.to_string());
                        }
                    }
                    self.end(&mut path, prefix, alias);
                }
                TokenTree::Punct(star) if star.as_char() == '*' && !path.is_empty() => {
                    path.push("*".to_owned());
                    self.end(&mut path, prefix, None);
                }
                TokenTree::Punct(colon) if colon.as_char() == ':' && path.len() > prefix.len() => {}
                TokenTree::Punct(mark) => {
                    self.end(&mut path, prefix, None);
                    match mark.as_char() {
                        ';' => self.item = outer,
                        '#' => self.item.in_test |= tokens.peek().is_some_and(is_test_only),
                        _ => {}
                    }
                }
                TokenTree::Literal(_) => self.end(&mut path, prefix, None),
                TokenTree::Group(group) => {
                    let is_block = group.delimiter() == Delimiter::Brace && !self.item.exports;
                    let continues = group.delimiter() == Delimiter::Brace && path.len() > prefix.len();
                    let inner =
                        if continues { std::mem::replace(&mut path, prefix.to_vec()) } else { Vec::new() };
                    self.tokens(group.stream(), &inner);
                    // An item ends with its block, a `use` with its semicolon.
                    if is_block && !continues {
                        self.item = outer;
                    }
                }
            }
        }
        self.end(&mut path, prefix, None);
        self.item = outer;
    }

    fn inline_module(&mut self, name: String, body: Group) {
        self.module.push(name);
        self.item.is_public = false;
        self.tokens(body.stream(), &[]);
        self.module.pop();
    }

    fn end(&mut self, path: &mut Vec<String>, prefix: &[String], alias: Option<String>) {
        if path.len() > prefix.len() {
            let path = self.resolve(path);
            if let [_, .., last] = &path[..] {
                let exported_as = self.item.exports.then(|| alias.unwrap_or_else(|| last.clone()));
                let in_test = self.item.in_test;
                self.found.names.push(Name { path: path.join("::"), exported_as, in_test });
            }
        }
        path.truncate(prefix.len());
    }

    fn resolve(&self, path: &[String]) -> Vec<String> {
        let ups = path.iter().take_while(|segment| *segment == "super").count();
        let is_relative = ups > 0 || path[0] == "self" && path.len() > 1;
        if !is_relative {
            return path.to_vec();
        }
        let base = &self.module[..self.module.len().saturating_sub(ups)];
        let rest = &path[ups.max(1)..];
        std::iter::once("crate".to_owned()).chain(base.iter().cloned()).chain(rest.iter().cloned()).collect()
    }
}

fn is_separator(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(colon)) if colon.as_char() == ':' && colon.spacing() == proc_macro2::Spacing::Joint)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

/// Returns whether the token is the restriction after `pub`, as in `pub(super)`.
fn is_restriction(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Parenthesis
        && first
            .is_some_and(|first| ["crate", "self", "super", "in"].iter().any(|word| is_word(&first, word)))
}

/// Returns whether an attribute's `[...]` limits its item to tests: `[cfg(test)]`, `[test]`.
fn is_test_only(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else { return false };
    let text = group.stream().to_string().replace(' ', "");
    text == "test" || text.starts_with("cfg(test)") || text.starts_with("cfg(all(test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread() {
        assert_eq!(
            paths("use std::{io, net::{TcpStream, UdpSocket}};", &[]),
            ["std::io", "std::net::TcpStream", "std::net::UdpSocket"]
        );
    }

    #[test]
    fn macros_count_and_comments_do_not() {
        let source =
            "// tokio::spawn\n/// [`tokio::spawn`]\nfn f(x: u8) { vec![tokio::spawn(g)]; \"mio::Poll\"; }";
        assert_eq!(paths(source, &[]), ["tokio::spawn"]);
    }

    #[test]
    fn relative_paths_are_resolved() {
        let source =
            "use super::Place; use self::inner::X; mod tests { use super::*; use super::super::up::Y; }";
        assert_eq!(
            paths(source, &["model", "route"]),
            [
                "crate::model::Place",
                "crate::model::route::inner::X",
                "crate::model::route::*",
                "crate::model::up::Y"
            ]
        );
    }

    #[test]
    fn a_type_annotation_is_not_a_path() {
        assert_eq!(
            paths("struct S { net: Net, std: u8 } fn f() { S { net: a::b(), std: 1 } }", &[]),
            ["a::b"]
        );
    }

    #[test]
    fn files_name_their_modules() {
        assert_eq!(module_of(Path::new("model/route.rs")), ["model", "route"]);
        assert_eq!(module_of(Path::new("model/mod.rs")), ["model"]);
        assert_eq!(module_of(Path::new("lib.rs")), Vec::<&str>::new());
    }
}
