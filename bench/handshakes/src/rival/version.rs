//! Version of a program, from its own output.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, bail};

use super::server::Rival;

/// Returns the server's version and that of its TLS library.
pub(super) fn version(rival: Rival, program: &Path) -> Result<String> {
    let argument = match rival {
        Rival::Nginx => "-V",
        Rival::Haproxy | Rival::HaproxyAwsLc | Rival::HaproxyTcp => "-vv",
        Rival::Hitch
        | Rival::Envoy
        | Rival::Rustls
        | Rival::Quadrille
        | Rival::QuadrilleTcp
        | Rival::Keyless => "--version",
    };
    let text = output(program, argument)?;
    let version = match rival {
        Rival::Hitch => parse(rival, &text).map(|version| match linked_openssl(program) {
            Some(library) => format!("{version}, OpenSSL {library}"),
            None => version,
        }),
        _ => parse(rival, &text),
    };
    match version {
        Some(version) => Ok(version),
        None => bail!("{} {argument} names no version: {}", program.display(), text.trim()),
    }
}

fn output(program: &Path, argument: &str) -> Result<String> {
    let output = Command::new(program)
        .arg(argument)
        .output()
        .with_context(|| format!("{} does not run", program.display()))?;
    Ok([String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat())
}

fn parse(rival: Rival, text: &str) -> Option<String> {
    let after = |mark: &str| text.split_once(mark)?.1.split_whitespace().next();
    let with_openssl = |version: &str, mark: &str| match after(mark) {
        Some(library) => format!("{version}, OpenSSL {library}"),
        None => version.to_owned(),
    };
    Some(match rival {
        Rival::Nginx => with_openssl(after("nginx/")?, "built with OpenSSL "),
        Rival::Haproxy | Rival::HaproxyTcp => {
            with_openssl(after("HAProxy version ")?, "Running on OpenSSL version : OpenSSL ")
        }
        Rival::HaproxyAwsLc => {
            let version = after("HAProxy version ")?;
            format!("{version}, AWS-LC {}", after("Running on OpenSSL version : AWS-LC ")?)
        }
        Rival::Hitch => after("hitch ")?.to_owned(),
        Rival::Envoy => {
            // "... version: COMMIT/VERSION/STATE/TYPE/LIBRARY"
            let (_, build) = after("version: ")?.split_once('/')?;
            let (version, rest) = build.split_once('/')?;
            format!("{version}, {}", rest.rsplit('/').next()?)
        }
        Rival::Rustls => {
            let (version, library) = text.trim().strip_prefix("rustls ")?.split_once(", aws-lc-rs ")?;
            format!("{version}, aws-lc-rs {library}")
        }
        Rival::Quadrille | Rival::QuadrilleTcp | Rival::Keyless => after("quadrille ")?.to_owned(),
    })
}

/// Returns the system's OpenSSL version, if `program` is linked with it and does not print it itself.
fn linked_openssl(program: &Path) -> Option<String> {
    let libraries = Command::new("ldd").arg(program).output().ok()?;
    let linked = String::from_utf8_lossy(&libraries.stdout).contains("libssl.so.3");
    let openssl = linked.then(|| output(Path::new("openssl"), "version").ok()).flatten()?;
    openssl.split_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_the_programs_print_them() {
        let cases = [
            (
                Rival::Nginx,
                "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.15 3 Sep 2024\nTLS SNI support enabled\n",
                "1.22.1, OpenSSL 3.0.15",
            ),
            (
                Rival::Haproxy,
                "HAProxy version 2.6.12-1+deb12u1 2023/12/16 - https://haproxy.org/\n\
                 Running on OpenSSL version : OpenSSL 3.0.15 3 Sep 2024\n",
                "2.6.12-1+deb12u1, OpenSSL 3.0.15",
            ),
            (
                Rival::HaproxyAwsLc,
                "HAProxy version 3.0.11-9e587df 2025/06/02 - https://haproxy.org/\n\
                 Running on OpenSSL version : AWS-LC 1.60.0\n",
                "3.0.11-9e587df, AWS-LC 1.60.0",
            ),
            (Rival::Hitch, "hitch 1.7.2\n", "1.7.2"),
            (Rival::Envoy, "\nenvoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL\n\n", "1.40.0, BoringSSL"),
            (Rival::Rustls, "rustls 0.23.44, aws-lc-rs 1.19.0\n", "0.23.44, aws-lc-rs 1.19.0"),
            (Rival::Quadrille, "quadrille 0.1.0\n", "0.1.0"),
        ];
        for (rival, printed, version) in cases {
            assert_eq!(parse(rival, printed).as_deref(), Some(version));
            assert_eq!(parse(rival, "command not understood"), None);
        }
    }
}
