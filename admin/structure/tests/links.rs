//! Relative links in Markdown files lead somewhere, anchors included, and so do the pages that sources mention.

use quadrille_structure::{files, files_with, markdown, root, text};
use std::path::Path;

#[test]
fn relative_links_exist() {
    let pages = files_with("md");
    assert!(pages.iter().any(|page| page == Path::new("README.md")), "the walk missed README.md");
    let broken: Vec<_> = pages.iter().flat_map(|page| broken_links(page)).collect();
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

/// `docs/decisions/boringssl.md`, as comments write it: seen from the root.
fn is_page(word: &str) -> bool {
    word.starts_with("docs/") && word.ends_with(".md")
}

fn broken_links(page: &Path) -> Vec<String> {
    let source = text(page).expect("pages are UTF-8");
    let relative = markdown::links(&source).into_iter().filter(|link| !is_external(link));
    relative
        .filter(|link| !leads_somewhere(page, link))
        .map(|link| format!("{}: {link}", page.display()))
        .collect()
}

fn is_external(link: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    let Some(anchor) = anchor else { return root().join(target).exists() };
    let Ok(target) = std::fs::read_to_string(root().join(target)) else { return false };
    markdown::anchors(&target).iter().any(|found| found == anchor)
}
