//! Variants of an enum in a source file, and the names of variants in a table.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;

/// Returns the variants of the enum `name`, at any depth of `source`, in their order; empty if there is no such enum.
pub fn variants(source: &str, name: &str) -> Vec<String> {
    find(source.parse().expect("the file consists of Rust tokens"), name).unwrap_or_default()
}

fn find(tokens: TokenStream, name: &str) -> Option<Vec<String>> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    tokens.iter().enumerate().find_map(|(at, token)| match token {
        TokenTree::Ident(word) if word == "enum" && is_word(tokens.get(at + 1), name) => {
            tokens[at..].iter().find_map(braces).map(names)
        }
        TokenTree::Group(group) => find(group.stream(), name),
        _ => None,
    })
}

/// Returns the first word of each variant, after its attributes.
fn names(body: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_named = false;
    for token in body {
        match token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => is_named = false,
            TokenTree::Ident(name) if !is_named => {
                names.push(name.to_string());
                is_named = true;
            }
            _ => {}
        }
    }
    names
}

fn braces(token: &TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    }
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(found)) if found == word)
}

/// Compares the variants that a table names, as `Enum::Variant`, with those in the sources. Returns a line for each
/// difference.
pub fn mismatches(named: &BTreeSet<String>, known: &BTreeSet<String>) -> Vec<String> {
    let missing = known.difference(named).map(|name| format!("{name} is in no row of the table: add it"));
    let unknown = named.difference(known);
    let unknown = unknown.map(|name| format!("{name} is in the table and not in the sources: remove it"));
    missing.chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::{mismatches, variants};

    #[test]
    fn fields_attributes_and_values_are_left_out() {
        let source = "enum Other { X }\n\
            /// Doc, with a comma.\n\
            #[derive(Debug)]\n\
            pub enum Key<T> {\n\
                /// RSA, of any size.\n\
                Rsa { bits: u32, exponent: u32 },\n\
                #[default]\n\
                Ec(Curve, T),\n\
                Ed25519 = 7,\n\
            }\n\
            fn f() -> Key { Key::Rsa { bits: 1 } }";
        assert_eq!(variants(source, "Key"), ["Rsa", "Ec", "Ed25519"]);
        assert_eq!(variants(source, "Other"), ["X"]);
        assert_eq!(variants(source, "Missing"), [""; 0]);
        assert_eq!(variants("mod inner { enum Key { A } }", "Key"), ["A"]);
    }

    #[test]
    fn tables_are_compared_both_ways() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(mismatches(&set(&["A::X"]), &set(&["A::X"])), [""; 0]);
        assert_eq!(
            mismatches(&set(&["A::X", "A::Z"]), &set(&["A::X", "A::Y"])),
            [
                "A::Y is in no row of the table: add it",
                "A::Z is in the table and not in the sources: remove it"
            ]
        );
    }
}
