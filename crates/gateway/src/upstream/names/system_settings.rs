//! Settings of the system's resolver (resolv.conf(5)), as far as DNS queries of this process follow them.

use hickory_resolver::{
    config::{ResolverConfig, ResolverOpts},
    net::NetError,
    proto::rr::Name,
    system_conf::read_system_conf,
};

/// Servers, search list and options of the system.
pub(super) struct SystemSettings {
    pub(super) config: ResolverConfig,
    pub(super) options: ResolverOpts,
    /// Whether names are not queried for IPv6 addresses (`options no-aaaa`).
    pub(super) no_aaaa: bool,
}

const FILE: &str = "/etc/resolv.conf";
/// Environment variable with further options.
const OPTIONS: &str = "RES_OPTIONS";

impl SystemSettings {
    pub(super) fn read() -> Result<Self, NetError> {
        let (config, options) = read_system_conf()?;
        let text = std::fs::read(FILE).unwrap_or_default();
        let more = std::env::var(OPTIONS).unwrap_or_default();
        let no_aaaa = sets_no_aaaa(&String::from_utf8_lossy(&text)) || has_no_aaaa(&more);
        Ok(Self { config, options, no_aaaa })
    }
}

/// Returns the names that a name stands for, with the search list applied as by the system.
pub(super) fn candidates(name: Name, config: &ResolverConfig, ndots: usize) -> Vec<Name> {
    if name.is_fqdn() {
        return vec![name];
    }
    let mut whole = name.clone();
    whole.set_fqdn(true);
    let suffixes = config.domain().into_iter().chain(config.search());
    let mut names: Vec<Name> = Vec::new();
    for searched in suffixes.filter_map(|suffix| name.clone().append_domain(suffix).ok()) {
        if !names.contains(&searched) {
            names.push(searched);
        }
    }
    let first = usize::from(name.num_labels()) > ndots || name.is_localhost();
    names.insert(if first { 0 } else { names.len() }, whole);
    names
}

fn sets_no_aaaa(text: &str) -> bool {
    let options = text.lines().filter_map(|line| line.trim_start().strip_prefix("options"));
    options.filter(|rest| rest.starts_with(char::is_whitespace)).any(has_no_aaaa)
}

fn has_no_aaaa(options: &str) -> bool {
    options.split_whitespace().any(|option| option == "no-aaaa")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    #[test]
    fn no_aaaa_is_an_option_among_others() {
        for text in
            ["options no-aaaa", "nameserver 192.0.2.1\noptions  ndots:5 no-aaaa edns0\n", "options\tno-aaaa"]
        {
            assert!(sets_no_aaaa(text), "{text:?}");
        }
        for text in [
            "",
            "options ndots:5",
            "# options no-aaaa",
            "optionsno-aaaa",
            "search no-aaaa",
            "options no-aaaaa",
        ] {
            assert!(!sets_no_aaaa(text), "{text:?}");
        }
    }

    #[test]
    fn the_search_list_applies_to_short_names() {
        let name = |text| Name::from_str(text).expect("a name");
        let search = vec![name("ns.svc.example."), name("svc.example.")];
        let config = ResolverConfig::from_parts(None, search, Vec::new());
        let shown = |text, ndots| {
            let names = candidates(name(text), &config, ndots);
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown("web", 1), ["web.ns.svc.example.", "web.svc.example.", "web."]);
        assert_eq!(
            shown("a.example", 1),
            ["a.example.", "a.example.ns.svc.example.", "a.example.svc.example."]
        );
        assert_eq!(shown("a.example", 5).last().map(String::as_str), Some("a.example."));
        assert_eq!(shown("a.example.", 5), ["a.example."]);
    }
}
