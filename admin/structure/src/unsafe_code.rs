//! Unsafe constructs of a source file, and the entries of a table that is to name every file with one.
//!
//! The search works on tokens, so that comments, strings and lints (`unsafe_code`) do not count and the insides of
//! macros do.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the unsafe constructs in `source`: `unsafe` blocks, functions, implementations, traits and attributes,
/// blocks of external functions, and `global_asm!`, which Rust permits without the keyword. The type of a pointer to
/// an unsafe function is not one.
pub fn constructs(source: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    search(source.parse().expect("the file consists of Rust tokens"), &mut found);
    found
}

fn search(tokens: TokenStream, found: &mut BTreeSet<&'static str>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) => found.extend(construct(&word.to_string(), &tokens[at + 1..])),
            TokenTree::Group(group) => search(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the construct that `word` begins in front of the tokens `rest`.
fn construct(word: &str, rest: &[TokenTree]) -> Option<&'static str> {
    match (word, rest.first()?) {
        ("unsafe", TokenTree::Group(group)) => match group.delimiter() {
            Delimiter::Brace => Some("a block"),
            Delimiter::Parenthesis => Some("an attribute"),
            Delimiter::Bracket | Delimiter::None => None,
        },
        ("unsafe", TokenTree::Ident(next)) => match next.to_string().as_str() {
            "fn" => function(&rest[1..]),
            "impl" => Some("an implementation"),
            "trait" => Some("a trait"),
            "extern" => external(&rest[1..]),
            _ => None,
        },
        // Before edition 2024 without `unsafe`.
        ("extern", _) => external(rest).filter(|found| *found == EXTERNAL),
        ("global_asm", TokenTree::Punct(mark)) if mark.as_char() == '!' => Some("assembly"),
        _ => None,
    }
}

const EXTERNAL: &str = "external functions";

/// Reads the tokens after `unsafe extern`.
fn external(rest: &[TokenTree]) -> Option<&'static str> {
    let rest = if matches!(rest.first()?, TokenTree::Literal(_)) { &rest[1..] } else { rest };
    match rest.first()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(EXTERNAL),
        TokenTree::Ident(next) if next == "fn" => function(&rest[1..]),
        _ => None,
    }
}

/// Reads the tokens after `fn`: a function has a name, a pointer's type has none.
fn function(rest: &[TokenTree]) -> Option<&'static str> {
    (!matches!(rest.first()?, TokenTree::Group(_))).then_some("a function")
}

/// Returns the paths that an entry such as `src/{a,b/c}.rs` stands for.
pub fn expand(entry: &str) -> Vec<String> {
    let Some((before, rest)) = entry.split_once('{') else { return vec![entry.to_owned()] };
    let (choices, after) = rest.split_once('}').expect("a list in braces is closed");
    let after = expand(after);
    let choices = choices.split(',').map(str::trim);
    choices.flat_map(|choice| after.iter().map(move |after| format!("{before}{choice}{after}"))).collect()
}

/// Compares the files with unsafe code with the entries of a table, each a file or a folder. A file belongs to the
/// longest entry that names it or a folder above it. Returns a line for each file without an entry, for each entry
/// without a file, and for each repeated entry.
pub fn mismatches(entries: &[String], files: &[(String, BTreeSet<&str>)]) -> Vec<String> {
    let mut covered: BTreeMap<&str, usize> = entries.iter().map(|entry| (entry.as_str(), 0)).collect();
    let mut found = Vec::new();
    for (file, constructs) in files {
        let holders = entries.iter().filter(|entry| holds(entry, file));
        match holders.max_by_key(|entry| entry.len()) {
            Some(entry) => *covered.entry(entry).or_default() += 1,
            None => {
                let constructs: Vec<_> = constructs.iter().copied().collect();
                found.push(format!(
                    "{file} has unsafe code ({}) and is not in the table: add it with its content and justification",
                    constructs.join(", ")
                ));
            }
        }
    }
    let unused = covered.iter().filter(|(_, count)| **count == 0);
    found.extend(
        unused.map(|(entry, _)| format!("{entry} is in the table and has no unsafe code: remove it")),
    );
    let repeated = covered.keys().filter(|entry| entries.iter().filter(|other| other == *entry).count() > 1);
    found.extend(repeated.map(|entry| format!("{entry} is in the table twice: remove one")));
    found
}

/// Returns whether the entry is this file, or a folder above it.
fn holds(entry: &str, file: &str) -> bool {
    file.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<&'static str> {
        constructs(source).into_iter().collect()
    }

    #[test]
    fn every_construct_is_found() {
        assert_eq!(found("fn f() { g(|| unsafe { h() }) }"), ["a block"]);
        assert_eq!(found("pub unsafe fn f() {}"), ["a function"]);
        assert_eq!(found("unsafe extern \"C\" fn f() {}"), ["a function"]);
        assert_eq!(found("unsafe impl Send for A {}"), ["an implementation"]);
        assert_eq!(found("pub unsafe trait A {}"), ["a trait"]);
        assert_eq!(found("unsafe extern \"C\" { fn f(); }"), ["external functions"]);
        assert_eq!(found("extern { fn f(); }"), ["external functions"]);
        assert_eq!(found("#[unsafe(no_mangle)] extern \"C\" fn f() {}"), ["an attribute"]);
        assert_eq!(found("std::arch::global_asm!(\"nop\");"), ["assembly"]);
        assert_eq!(found("macro_rules! m { ($x:expr) => { unsafe { $x } } }"), ["a block"]);
    }

    #[test]
    fn words_in_comments_strings_lints_and_types_are_not() {
        let source = "#![forbid(unsafe_code)]\n\
            //! unsafe { }\n\
            /// unsafe impl\n\
            #[expect(unsafe_op_in_unsafe_fn)]\n\
            /* unsafe { } */ fn f() { say(\"unsafe { }\", r#\"unsafe fn f\"#) }\n\
            type Callback = unsafe extern \"C\" fn(u8);\n\
            struct A { free: Option<unsafe fn(*mut u8)> }\n\
            extern \"C\" fn f() {}\n\
            extern crate alloc;";
        assert_eq!(found(source), [""; 0]);
    }

    #[test]
    fn lists_in_braces_are_expanded() {
        assert_eq!(expand("src/a.rs"), ["src/a.rs"]);
        assert_eq!(expand("src/{a,b/c}.rs"), ["src/a.rs", "src/b/c.rs"]);
        assert_eq!(expand("{a,b}/{c,d}"), ["a/c", "a/d", "b/c", "b/d"]);
    }

    #[test]
    fn files_and_entries_are_compared_both_ways() {
        let file = |path: &str| (path.to_owned(), BTreeSet::from(["a block"]));
        let entries = |list: &[&str]| list.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
        let files = [file("a/one.rs"), file("a/two.rs"), file("b/one.rs")];
        assert_eq!(mismatches(&entries(&["a", "b/one.rs"]), &files), [""; 0]);
        assert_eq!(mismatches(&entries(&["a", "a/two.rs", "b"]), &files), [""; 0]);
        assert_eq!(
            mismatches(&entries(&["a", "b/one"]), &files),
            [
                "b/one.rs has unsafe code (a block) and is not in the table: add it with its content and justification",
                "b/one is in the table and has no unsafe code: remove it",
            ]
        );
        assert_eq!(
            mismatches(&entries(&["a/one.rs", "a/two.rs", "a", "b", "b"]), &files),
            ["a is in the table and has no unsafe code: remove it", "b is in the table twice: remove one"]
        );
    }
}
