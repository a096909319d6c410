//! Relative links of the pages below a folder.

use crate::markdown;
use std::path::Path;

/// Returns each relative link of `page` that leads nowhere, anchors included, with the page's name. `page` is relative to
/// `folder`.
pub fn broken(folder: &Path, page: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(folder.join(page)).expect("pages are UTF-8");
    let relative = markdown::links(&source).into_iter().filter(|link| !is_external(link));
    relative
        .filter(|link| !leads_somewhere(folder, page, link))
        .map(|link| format!("{}: {link}", page.display()))
        .collect()
}

fn is_external(link: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

fn leads_somewhere(folder: &Path, page: &Path, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = folder.join(if file.is_empty() { page.to_owned() } else { page.with_file_name(file) });
    let Some(anchor) = anchor else { return target.exists() };
    let Ok(target) = std::fs::read_to_string(target) else { return false };
    markdown::anchors(&target).iter().any(|found| found == anchor)
}
