//! Allowed dependencies between crates.

use crate::crates::Crate;

/// The product's crates from the bottom up. A crate may depend on lower layers only, not on its neighbours. Planned
/// crates have their place already.
pub const LAYERS: &[&[&str]] = &[
    &["quadrille-one-build", "quadrille-rsa-numbers", "quadrille-unix-time"],
    &[
        "quadrille-kernels",
        "quadrille-kernels-cuda",
        "quadrille-field",
        "quadrille-handshake-timing",
        "quadrille-pem",
        "quadrille-signature-algorithms",
    ],
    &["quadrille-config", "quadrille-engine"],
    &["quadrille-draft"],
    &["quadrille-convert", "quadrille-envoy", "quadrille-kubernetes", "quadrille-pkcs11"],
    &["quadrille-key-share", "quadrille-keyless", "quadrille-ocsp", "quadrille-resumption", "quadrille-xds"],
    &["quadrille-acme"],
    &["quadrille-gateway", "quadrille-openssl-provider", "quadrille-profile", "quadrille-migrate"],
    &["quadrille-control-plane", "quadrille-kubernetes-watch"],
    &["quadrille-cli", "quadrille-php"],
];

/// Folders of tool crates. They may depend on all crates; no crate may depend on them.
pub const TOOLS: &[&str] = &["admin", "bench", "fuzz"];

/// Packages that must not be linked into a crate, not even indirectly. A final `*` matches any ending.
pub const FORBIDDEN: &[(&str, &[&[&str]])] = &[
    ("quadrille-rsa-numbers", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-unix-time", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    // Its portable tier is BoringSSL's scalar code.
    ("quadrille-kernels", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-kernels-cuda", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-field", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-handshake-timing", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-pem", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-signature-algorithms", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-config", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-draft", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-convert", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-kubernetes", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    ("quadrille-engine", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-key-share", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-pkcs11", &[RUNTIMES_AND_SOCKETS]),
    ("quadrille-envoy", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
    // Connections are passed in from outside.
    ("quadrille-xds", &[BORINGSSL]),
    ("quadrille-php", &[RUNTIMES_AND_SOCKETS, BORINGSSL]),
];

/// The engine must work inside nginx or an OpenSSL provider, which must not start any of these.
const RUNTIMES_AND_SOCKETS: &[&str] =
    &["tokio*", "mio", "socket2", "async-std", "async-io", "smol", "polling", "hyper*", "h2"];

/// The numeric crates do not depend on BoringSSL.
const BORINGSSL: &[&str] = &["boring", "boring-sys"];

/// Returns every violation of the rules above, as a sentence.
pub fn violations(crates: &[Crate]) -> Vec<String> {
    crates
        .iter()
        .flat_map(|krate| misplaced(krate).into_iter().chain(upward(krate, crates)).chain(forbidden(krate)))
        .collect()
}

fn misplaced(krate: &Crate) -> Option<String> {
    (layer(&krate.name).is_none() && !is_tool(krate)).then(|| {
        let name = &krate.name;
        format!("{name} has no place in the layers: add it to LAYERS in admin/structure/src/layers.rs")
    })
}

fn upward(krate: &Crate, crates: &[Crate]) -> Vec<String> {
    if is_tool(krate) {
        return Vec::new();
    }
    let dependencies = crates.iter().filter(|other| krate.named.contains(&other.name));
    dependencies
        .filter(|other| is_tool(other) || layer(&other.name) >= layer(&krate.name))
        .map(|other| format!("{} depends on {}, which is not below it", krate.name, other.name))
        .collect()
}

fn forbidden(krate: &Crate) -> Vec<String> {
    let rules =
        FORBIDDEN.iter().filter(|(name, _)| *name == krate.name).flat_map(|(_, groups)| groups.concat());
    rules
        .flat_map(|pattern| krate.linked.iter().filter(move |linked| matches(pattern, linked)))
        .map(|linked| format!("{} must not link {linked}", krate.name))
        .collect()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn is_tool(krate: &Crate) -> bool {
    TOOLS.iter().any(|tool| krate.folder.starts_with(tool))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate(folder: &str, name: &str, named: &[&str], linked: &[&str]) -> Crate {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Crate { name: name.into(), folder: folder.into(), named: set(named), linked: set(linked) }
    }

    fn engine(named: &[&str], linked: &[&str]) -> Crate {
        krate("crates/engine", "quadrille-engine", named, linked)
    }

    fn gateway() -> Crate {
        krate(
            "crates/gateway",
            "quadrille-gateway",
            &["quadrille-engine", "tokio"],
            &["quadrille-engine", "tokio"],
        )
    }

    #[test]
    fn downward_is_allowed() {
        assert_eq!(violations(&[engine(&["boring"], &["boring"]), gateway()]), Vec::<String>::new());
    }

    #[test]
    fn upward_is_refused() {
        let found = violations(&[engine(&["quadrille-gateway"], &[]), gateway()]);
        assert_eq!(found, ["quadrille-engine depends on quadrille-gateway, which is not below it"]);
    }

    #[test]
    fn neighbours_are_refused() {
        let profile = krate("crates/profile", "quadrille-profile", &["quadrille-gateway"], &[]);
        assert_eq!(violations(&[profile, gateway()]).len(), 1);
    }

    #[test]
    fn a_runtime_behind_another_crate_is_refused() {
        let found = violations(&[engine(&["innocent"], &["innocent", "tokio-util"])]);
        assert_eq!(found, ["quadrille-engine must not link tokio-util"]);
    }

    #[test]
    fn an_unknown_crate_must_be_placed() {
        let found = violations(&[krate("crates/extra", "quadrille-extra", &[], &[])]);
        assert!(found.iter().any(|sentence| sentence.contains("add it to LAYERS")), "{found:?}");
    }

    #[test]
    fn nothing_depends_on_a_tool() {
        let tool = krate("bench/handshakes", "quadrille-handshakes", &["quadrille-gateway"], &[]);
        let cli = krate("crates/cli", "quadrille-cli", &["quadrille-handshakes"], &[]);
        assert_eq!(violations(&[tool, cli, gateway()]).len(), 1);
    }
}
