//! The crates, and the modules inside them, import only downwards (the picture is in ARCHITECTURE.md).

use quadrille_structure::{circles, crates, files_with, layers, paths, text};
use std::path::Path;

/// Paths that a crate's sources must not name, in addition to the packages that [`layers::FORBIDDEN`] keeps from
/// being linked: the standard library's sockets need no dependency, and the engine uses BoringSSL's cryptography, not
/// its protocol. Sessions of key servers are driven by tokio in the gateway, and by plain threads in the OpenSSL
/// provider.
const UNNAMEABLE: &[(&str, &[&str])] = &[
    (
        "crates/engine/src",
        &["std::net", "std::os::unix::net", "boring::ssl", "boring_sys::SSL_", "tokio", "mio"],
    ),
    ("crates/keyless/src/session", &["std::net", "std::os::unix::net", "boring::ssl", "tokio"]),
    ("crates/openssl-provider/src", &["tokio"]),
];

/// Neighbours that a module may import. Modules that are not listed are not restricted.
const MODULES: &[(&str, &str, &[&str])] = &[
    ("crates/keyless/src", "wire", &[]),
    ("crates/keyless/src", "session", &["wire"]),
    ("crates/keyless/src", "client", &["wire", "session", "tls", "io", "Address", "Credentials", "Trust"]),
    ("crates/keyless/src", "server", &["wire", "session", "tls", "io", "Credentials", "Trust"]),
];

#[test]
fn crates_depend_downwards() {
    let crates = crates::members();
    for name in ["quadrille-engine", "quadrille-php"] {
        assert!(crates.iter().any(|krate| krate.name == name), "cargo metadata shows no {name}");
    }
    report(&layers::violations(&crates));
}

#[test]
fn sources_name_nothing_forbidden() {
    let breaches = UNNAMEABLE.iter().flat_map(|(folder, names)| {
        violations(folder, |_, path| names.iter().any(|name| begins(path, name)))
    });
    report(&breaches.collect::<Vec<_>>());
}

#[test]
fn modules_import_downwards() {
    let breaches = MODULES.iter().flat_map(|(folder, module, allowed)| {
        violations(folder, |own, path| {
            let target = path.strip_prefix("crate::").map(|rest| rest.split("::").next().unwrap_or(rest));
            let is_upward = target.is_some_and(|target| target != *module && !allowed.contains(&target));
            own.first() == Some(module) && is_upward
        })
    });
    report(&breaches.collect::<Vec<_>>());
}

#[test]
fn modules_have_no_circles() {
    let files = files_with("rs");
    let mut found = Vec::new();
    for krate in crates::members() {
        let folder = krate.folder.join("src");
        let sources = files.iter().filter_map(|file| {
            let below = file.strip_prefix(&folder).ok()?;
            Some((below.to_owned(), text(file).expect("sources are UTF-8")))
        });
        let sources: Vec<_> = sources.collect();
        assert!(!sources.is_empty(), "no sources below {}", folder.display());
        let circles = circles::circles(&sources).into_iter();
        found.extend(circles.map(|circle| format!("{} {circle}", krate.name)));
    }
    report(&found);
}

/// Returns the paths named below `folder` for which `is_breach(module, path)` holds, with their files.
fn violations(folder: &str, is_breach: impl Fn(&[&str], &str) -> bool) -> Vec<String> {
    let files: Vec<_> = files_with("rs").into_iter().filter(|file| file.starts_with(folder)).collect();
    assert!(!files.is_empty(), "no sources below {folder}");
    let mut found = Vec::new();
    for file in &files {
        let module = paths::module_of(file.strip_prefix(folder).unwrap_or(Path::new("")));
        let source = text(file).expect("sources are UTF-8");
        let named = paths::paths(&source, &module);
        found.extend(
            named
                .iter()
                .filter(|path| is_breach(&module, path))
                .map(|path| format!("{} names {path}", file.display())),
        );
    }
    found
}

/// Returns whether `path` is below `name`; a name that ends in `_` is the prefix of a segment.
fn begins(path: &str, name: &str) -> bool {
    path.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || name.ends_with('_'))
}

fn report(violations: &[String]) {
    assert!(violations.is_empty(), "\n  {}\n", violations.join("\n  "));
}
