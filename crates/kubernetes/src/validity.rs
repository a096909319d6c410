//! Parts of a configuration, tried by the configuration's reader.

use quadrille_draft::{
    draft::{Draft, Listener},
    yaml::{self, Map},
};

/// Returns whether the configuration's reader accepts a draft.
pub(crate) fn is_valid(draft: &Draft) -> bool {
    quadrille_config::parse(&yaml::document(&draft.to_map()), "probe").is_ok()
}

/// Returns a listener without TLS with these keys.
pub(crate) fn probe(keys: &Map) -> Listener {
    let mut listener = Listener { address: "127.0.0.1:1".to_owned(), ..Listener::default() };
    listener.keys = Map::of("tls", "off").with("respond", "x");
    listener.keys.extend(keys.clone());
    listener
}

/// Returns whether a listener without TLS can have these keys.
pub(crate) fn is_valid_listener(keys: &Map) -> bool {
    is_valid(&Draft { listeners: vec![probe(keys)], ..Draft::default() })
}

/// Returns whether these are keys of the configuration's top level.
pub(crate) fn is_valid_top(keys: &Map) -> bool {
    is_valid(&Draft { listeners: vec![probe(&Map::new())], top: keys.clone(), ..Draft::default() })
}
