//! Relative links in Markdown files have existing targets, anchors included, and so do pages mentioned in sources.

use quadrille_structure::{files, files_with, links, root, text};
use std::path::Path;

#[test]
fn relative_links_exist() {
    let pages = files_with("md");
    assert!(pages.iter().any(|page| page == Path::new("README.md")), "the walk missed README.md");
    let broken: Vec<_> = pages.iter().flat_map(|page| links::broken(&root(), page)).collect();
    assert!(broken.is_empty(), "\n  {}\n", broken.join("\n  "));
}

#[test]
fn mentioned_pages_exist() {
    let mut missing = Vec::new();
    for file in files() {
        let source = text(&file).unwrap_or_default();
        let mentions = source.split(|c: char| c.is_whitespace() || "`\"'()[]<>,:".contains(c));
        let pages = mentions.map(|word| word.trim_end_matches('.')).filter(|word| is_page(word));
        let absent = pages.filter(|page| !root().join(page).exists());
        missing.extend(absent.map(|page| format!("{} mentions {page}", file.display())));
    }
    assert!(missing.is_empty(), "\n  {}\n", missing.join("\n  "));
}

/// Returns whether the word is a page as written in comments, such as `docs/decisions/boringssl.md`: a path from the
/// root.
fn is_page(word: &str) -> bool {
    word.starts_with("docs/") && word.ends_with(".md")
}
