//! Source of the .proto files: cargo fetches the package that ships them, like any other.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

/// Version of the package that the descriptor set is built from.
const VERSION: &str = "0.7.7";

/// Returns the package's directory of .proto files.
pub(crate) fn protos() -> Result<PathBuf, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let manifest = scratch.path().join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n\
         [dependencies]\nenvoy-types = \"={VERSION}\"\n[workspace]\n"
    );
    std::fs::write(&manifest, text).map_err(|error| error.to_string())?;
    std::fs::write(scratch.path().join("lib.rs"), "").map_err(|error| error.to_string())?;
    let answer = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(&manifest)
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !answer.status.success() {
        return Err(String::from_utf8_lossy(&answer.stderr).into_owned());
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&answer.stdout).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let package = packages.iter().find(|package| package["name"] == "envoy-types");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = PathBuf::from(manifest.ok_or("cargo metadata does not name envoy-types")?);
    Ok(manifest.with_file_name("proto"))
}
