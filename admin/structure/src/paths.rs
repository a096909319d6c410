//! Which paths a source file names.
//!
//! Works on tokens rather than on a syntax tree, so that the insides of macro calls count and comments do not.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::Path;

/// Every path of two segments or more in `source`, a file of the module `module` (empty at the crate's root).
///
/// `use a::{b, c::*}` gives `a::b` and `a::c::*`. `self::` and `super::` are resolved, so that a path into the own
/// crate always begins with `crate::`; modules written in place (`mod tests { ... }`) are taken into account.
pub fn paths(source: &str, module: &[&str]) -> Vec<String> {
    let tokens: TokenStream = source.parse().expect("the file consists of Rust tokens");
    let mut walk =
        Walk { module: module.iter().map(|&segment| segment.to_owned()).collect(), found: Vec::new() };
    walk.tokens(tokens, &[]);
    walk.found
}

/// The module that a file below `src/` is: `src/model/route.rs` is `["model", "route"]`.
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
    found: Vec<String>,
}

impl Walk {
    /// `prefix` holds the segments in front of a `{...}` group.
    fn tokens(&mut self, tokens: TokenStream, prefix: &[String]) {
        let mut path = prefix.to_vec();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    self.end(&mut path, prefix);
                    if let Some(TokenTree::Ident(name)) = tokens.next()
                        && let Some(TokenTree::Group(body)) =
                            tokens.next_if(|next| matches!(next, TokenTree::Group(_)))
                    {
                        self.module.push(name.to_string());
                        self.tokens(body.stream(), &[]);
                        self.module.pop();
                    }
                }
                TokenTree::Ident(segment) => {
                    path.push(segment.to_string());
                    if !is_separator(tokens.peek()) {
                        self.end(&mut path, prefix);
                    }
                }
                TokenTree::Punct(star) if star.as_char() == '*' && !path.is_empty() => {
                    path.push("*".to_owned());
                    self.end(&mut path, prefix);
                }
                TokenTree::Punct(colon) if colon.as_char() == ':' && path.len() > prefix.len() => {}
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end(&mut path, prefix),
                TokenTree::Group(group) => {
                    let continues = group.delimiter() == Delimiter::Brace && path.len() > prefix.len();
                    let outer =
                        if continues { std::mem::replace(&mut path, prefix.to_vec()) } else { Vec::new() };
                    self.tokens(group.stream(), &outer);
                }
            }
        }
        self.end(&mut path, prefix);
    }

    fn end(&mut self, path: &mut Vec<String>, prefix: &[String]) {
        if path.len() > prefix.len() {
            let path = self.resolve(path);
            if path.len() > 1 {
                self.found.push(path.join("::"));
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
    fn a_type_annotation_is_no_path() {
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
