//! Build information for `quadrille --version` (the commit and the BoringSSL version), and the linker's arguments.

use std::{env, fs, path::Path, process::Command};

fn main() {
    // Redirects BoringSSL's encoding of public keys to `src/public_key_encoding.rs`.
    println!("cargo::rustc-link-arg-bins=-Wl,--wrap=EVP_marshal_public_key");
    order_functions();
    // Relative to the package, because another clone that shares the target directory may have compiled this program.
    let root = Path::new("../..");
    println!("cargo::rerun-if-env-changed=QUADRILLE_COMMIT");
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());
    let head = root.join(".git/logs/HEAD");
    if head.exists() {
        println!("cargo::rerun-if-changed={}", head.display());
    }
    let commit = env::var("QUADRILLE_COMMIT").ok().or_else(|| commit(root));
    println!("cargo::rustc-env=QUADRILLE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    let boring = locked_version(root, "boring-sys").unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=QUADRILLE_BORING_SYS={boring}");
}

/// Passes the list of functions that run under load to the linker: next to each other, they occupy fewer pages.
fn order_functions() {
    println!("cargo::rerun-if-env-changed=QUADRILLE_FUNCTION_ORDER");
    let Some(list) = env::var("QUADRILLE_FUNCTION_ORDER").ok().filter(|list| !list.is_empty()) else {
        return;
    };
    println!("cargo::rerun-if-changed={list}");
    println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={list},--no-warn-symbol-ordering");
}

/// Returns the commit of a clone, marked if files were changed; `None` in a source archive.
fn commit(root: &Path) -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !commit.trim().is_empty()).then(|| commit.trim().to_owned())
}

fn locked_version(root: &Path, package: &str) -> Option<String> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).ok()?;
    let (_, found) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    found.split_once('"').map(|(version, _)| version.to_owned())
}
