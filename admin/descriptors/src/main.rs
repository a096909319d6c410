//! Writes `crates/xds/src/decode/envoy.descriptors`: the part of Envoy's API needed to read xDS resources.
//!
//! ```text
//! cargo run --package quadrille-descriptors            # writes the file
//! cargo run --package quadrille-descriptors -- --check # compares it
//! ```
//!
//! The .proto files come from the package of the crate `envoy-types`, which cargo fetches but does not compile, and
//! for the few messages that it lacks from `proto/`. Options, comments and unreferenced types are left out.

mod compile;
mod source;
mod trim;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    match run(check) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("quadrille-descriptors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool) -> Result<String, String> {
    let file = embedded();
    let made = make(&source::protos()?)?;
    if check {
        let there = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        return if there == made {
            Ok(format!("{} matches the .proto files", file.display()))
        } else {
            Err(format!("{} does not match the .proto files; regenerate it", file.display()))
        };
    }
    std::fs::write(&file, &made).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(format!("{}: {} bytes", file.display(), made.len()))
}

/// Builds the compressed descriptor set.
fn make(protos: &Path) -> Result<Vec<u8>, String> {
    let set = trim::trimmed(compile::compiled(protos)?);
    let plain = prost::Message::encode_to_vec(&set);
    Ok(miniz_oxide::deflate::compress_to_vec(&plain, 9))
}

fn embedded() -> PathBuf {
    compile::package().join("../../crates/xds/src/decode/envoy.descriptors")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_embedded_descriptors_match_the_proto_files() {
        match source::protos() {
            Ok(protos) => {
                let there = std::fs::read(embedded()).unwrap();
                assert!(there == make(&protos).unwrap(), "run: cargo run --package quadrille-descriptors");
            }
            Err(error) => {
                // Written directly to stderr, which test output capture does not hide: a skipped test passes.
                let _ = writeln!(std::io::stderr(), "SKIPPED: the .proto files cannot be fetched: {error}");
            }
        }
    }
}
