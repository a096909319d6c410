//! HTTPS with rustls and AWS-LC: a server that `make compare` measures, and a client that
//! `make test-post-quantum-clients` tests the gateway with.
//!
//! - `serve ADDRESS CHAIN KEY` responds with `ok` to every request, in one thread, without resumption.
//! - `fetch CA PORT ...` visits https://localhost:PORT/ twice, and prints the port, the server's kind of key, both
//!   handshakes, the group and the body.
//! - `fetch-by-aws-lc CA PORT ...` visits it once by AWS-LC's own TLS library, and prints the port, the signature, the group
//!   and the body.

#[cfg(feature = "aws-lc-client")]
mod aws_lc;
mod client;
mod server;

use std::{env, error::Error, process::ExitCode};

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: serve ADDRESS CHAIN KEY | fetch CA PORT ... | --version";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Outcome<()> {
    match arguments {
        ["serve", address, chain, key] => server::serve(address.parse()?, chain, key),
        ["fetch", ca, ports @ ..] => client::fetch(ca, ports),
        #[cfg(feature = "aws-lc-client")]
        ["fetch-by-aws-lc", ca, ports @ ..] => aws_lc::fetch(ca, ports),
        ["--version"] => {
            println!("rustls {}, aws-lc-rs {}", locked("rustls"), locked("aws-lc-rs"));
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// Returns the version of a package in the lock file.
fn locked(package: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let after =
        lock.split_once(&format!("name = \"{package}\"\nversion = \"")).map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default()
}
