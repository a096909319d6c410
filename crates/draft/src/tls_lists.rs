//! Lists of cipher suites and groups, as far as they exist here.

use crate::yaml::{Map, document};

/// Outcome of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// All items are added.
    All,
    /// This number of items is left out.
    Without(usize),
    /// The defaults apply.
    Nothing,
}

/// Adds a list with colons, such as `ECDHE-ECDSA-AES128-GCM-SHA256:...`, under `key` of TLS settings. Suites of TLS 1.3 are
/// always offered.
pub fn add(list: &str, key: &str, settings: &mut Map) -> Added {
    if list == "auto" {
        return Added::All;
    }
    add_all(list.split(':'), key, settings)
}

/// Adds these items under `key` of TLS settings.
pub fn add_all<'t>(list: impl Iterator<Item = &'t str>, key: &str, settings: &mut Map) -> Added {
    let of_tls13 = |word: &&str| word.starts_with("TLS_") && !word.contains("_WITH_");
    let words: Vec<_> = list.filter(|word| !of_tls13(word)).collect();
    let mut known: Vec<&str> = Vec::new();
    for word in &words {
        if !known.contains(word) && is_accepted(&Map::of(key, vec![*word])) {
            known.push(word);
        }
    }
    let with = settings.clone().with(key, known.clone());
    if known.is_empty() || !is_accepted(&with) {
        return Added::Nothing;
    }
    *settings = with;
    match words.len() - known.len() {
        0 => Added::All,
        others => Added::Without(others),
    }
}

/// Returns whether the configuration's reader accepts TLS settings.
fn is_accepted(settings: &Map) -> bool {
    let listener = Map::of("address", "127.0.0.1:1")
        .with("certificates", vec![Map::of("chain", "c").with("key", "k")])
        .with("tls", settings.clone())
        .with("respond", "x");
    quadrille_config::parse(&document(&Map::of("listeners", vec![listener])), "probe").is_ok()
}
