//! Relative links of the documentation lead somewhere after an installation, anchors included.

use quadrille_structure::{links, root};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// `QUADRILLE_INSTALLED_PAGES` names the folder of an installed package, to be tested in place of the working tree.
#[test]
fn links_of_installed_pages_exist() {
    if let Some(installed) = env::var_os("QUADRILLE_INSTALLED_PAGES") {
        return assert_links_exist(Path::new(&installed));
    }
    let folder = Scratch::new("installed-pages");
    let install = Command::new("python3")
        .args(["scripts/book.py", "install"])
        .arg(&folder.0)
        .current_dir(root())
        .status()
        .expect("python3 starts");
    assert!(install.success(), "scripts/book.py install: {install}");
    assert_links_exist(&folder.0);
    assert!(!folder.0.join("CONTRIBUTING.md").exists(), "contributors have a clone");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let folder = Scratch::new("broken-pages");
    let page = "[a](b.md) [b](a.md#there) [c](a.md#gone) [d](c.md) [e](https://example.com)\n\n# There\n";
    fs::write(folder.0.join("a.md"), page).expect("the folder is writable");
    fs::write(folder.0.join("b.md"), "").expect("the folder is writable");
    assert_eq!(links::broken(&folder.0, Path::new("a.md")), ["a.md: a.md#gone", "a.md: c.md"]);
}

fn assert_links_exist(folder: &Path) {
    let pages = pages_below(folder, Path::new(""));
    assert!(pages.len() > 80, "only {} pages in {}", pages.len(), folder.display());
    let broken: Vec<_> = pages.iter().flat_map(|page| links::broken(folder, page)).collect();
    assert!(broken.is_empty(), "\n  {}\n", broken.join("\n  "));
}

fn pages_below(root: &Path, folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root.join(folder)).expect("the folder is readable") {
        let entry = entry.expect("the folder is readable");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("entries have a type").is_dir() {
            pages.extend(pages_below(root, &path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages
}

/// A folder for one test, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("cargo's folder for tests is writable");
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
