//! Configurations on the pages of the guide: `quadrille check` accepts each of them.

use crate::support::{Certificates, Pair, output, quadrille};
use quadrille_engine::MlDsa;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Files named on pages besides certificates and keys.
const OTHERS: &[(&str, &str)] = &[
    ("errors/sorry.html", "Sorry.\n"),
    ("errors/shop-closed.html", "Closed.\n"),
    ("admins.htpasswd", USERS),
    ("users.htpasswd", USERS),
];

const USERS: &str = "alice:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n";

/// Replacements for parts that cannot work here: hosts of examples do not resolve, and a certificate of the tests has
/// neither an OCSP response nor properties.
const REPLACED: &[(&str, &str)] = &[
    ("app.internal.example", "127.0.0.1"),
    ("app.internal", "127.0.0.1"),
    (", ocsp: example.ocsp", ""),
    ("trust_anchor: properties", "trust_anchor: 32473.1"),
];

/// Returns the pages with their complete configurations, which have listeners.
fn configurations() -> Vec<(PathBuf, String)> {
    let root = Path::new("../..");
    let guide = std::fs::read_dir(root.join("docs/guide")).expect("the guide");
    let pages = guide.map(|entry| entry.expect("an entry").path()).chain([root.join("README.md")]);
    let pages = pages.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let of_page = |page: PathBuf| {
        let text = std::fs::read_to_string(&page).expect("a page");
        let blocks = text.split("\n```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        let configurations = blocks.filter(|block| block.lines().any(|line| line.starts_with("listeners:")));
        configurations.map(|block| (page.clone(), format!("{block}\n"))).collect::<Vec<_>>()
    };
    pages.flat_map(of_page).collect()
}

/// Returns the words that follow this one.
fn after<'a>(text: &'a str, word: &str) -> BTreeSet<&'a str> {
    let ends = |letter: char| letter.is_whitespace() || ",}]".contains(letter);
    text.split(word)
        .skip(1)
        .filter_map(|rest| rest.split(ends).next())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Creates the files that a configuration names in this directory.
fn furnish(directory: &Path, text: &str, [ecdsa, rsa, ml_dsa]: &[Pair; 3], ca: &Path) {
    let copy = |name: &str, from: &Path| {
        let to = directory.join(name);
        std::fs::create_dir_all(to.parent().expect("a directory")).expect("a directory");
        std::fs::copy(from, to).expect("copying");
    };
    let pair = |name: &str| match name {
        name if name.contains("rsa") => rsa,
        name if name.contains("mldsa") => ml_dsa,
        _ => ecdsa,
    };
    let is_key = |name: &&&str| name.ends_with(".pem") || name.ends_with(".key");
    after(text, "certificate: ").iter().filter(is_key).for_each(|name| copy(name, &pair(name).chain));
    after(text, "chain: ").iter().for_each(|name| copy(name, &pair(name).chain));
    after(text, " key: ").iter().filter(is_key).for_each(|name| copy(name, &pair(name).key));
    after(text, "ca: ").iter().filter(is_key).for_each(|name| copy(name, ca));
    for (name, content) in OTHERS.iter().filter(|(name, _)| text.contains(name)) {
        let file = directory.join(name);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, content).expect("writing");
    }
}

#[test]
fn every_configuration_of_the_guide_is_taken() {
    let certificates = Certificates::new();
    let names = &["example.com"];
    let ml_dsa = certificates.ml_dsa(MlDsa::MlDsa44, names);
    let pairs = [certificates.ecdsa("P-256", names), certificates.rsa(2048, names), ml_dsa];
    let all = configurations();
    assert!(all.len() >= 15, "{} configurations", all.len());
    let mut refused = Vec::new();
    for (page, text) in all {
        let directory = tempfile::tempdir().expect("a directory");
        furnish(directory.path(), &text, &pairs, &certificates.ca());
        let mut text = REPLACED.iter().fold(text, |text, (from, to)| text.replace(from, to));
        if !text.contains("\nupstreams:") {
            let servers = |name: &&str| format!("{name}: {{servers: [\"127.0.0.1:1\"]}}");
            let named: Vec<_> = after(&text, "upstream: ").iter().map(servers).collect();
            text.push_str(&format!("upstreams: {{{}}}\n", named.join(", ")));
        }
        let file = directory.path().join("quadrille.yaml");
        std::fs::write(&file, &text).expect("writing");
        let (good, said) = output(quadrille("check").current_dir(directory.path()).arg("quadrille.yaml"));
        if !good {
            refused.push(format!("{}\n{said}{text}", page.display()));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
