//! The `quadrille` command.

mod acme_flags;
mod allocator;
mod bench;
mod cert;
mod check;
mod demo;
mod envoy;
mod envoy_arguments;
mod field;
mod flags;
mod generate;
mod istio;
mod keyserver;
mod logging;
mod process;
mod profile;
mod provider;
mod public_key_encoding;
mod resumption_flags;
mod rsa_key;
mod serve;
mod svg;
mod tickets;
mod version;

use clap::{CommandFactory, Parser, Subcommand};
use envoy_arguments::EnvoyArguments;
use std::process::ExitCode;

/// HTTPS compute made cheap: a TLS gateway whose private-key operations are asynchronous and batched.
#[derive(Parser)]
#[command(
    name = "quadrille",
    version = version::SHORT,
    long_version = version::LONG.as_str(),
    max_term_width = 110,
    propagate_version = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Terminate TLS and pass requests on to upstreams.
    Serve(Box<serve::Serve>),
    /// Check a configuration file, and all that it names, without serving it. `quadrille -t FILE` does the same.
    #[command(short_flag = 't')]
    Check(check::Check),
    /// List, renew and revoke certificates that are ordered by ACME.
    #[command(subcommand)]
    Cert(Box<cert::Cert>),
    /// Say which private-key provider Istio gives to which proxy.
    #[command(subcommand)]
    Istio(istio::Istio),
    /// Make, show and rotate the keys of session tickets.
    Tickets(tickets::Tickets),
    /// Hold private keys for gateways on other machines, and try such servers out.
    Keyserver(Box<keyserver::Keyserver>),
    /// Put the engine into nginx, HAProxy, Apache or Node, by way of their OpenSSL 3.
    #[command(subcommand)]
    Provider(provider::Provider),
    /// Serve a working HTTPS demo at once: a certificate made on the spot and a built-in page.
    Demo(demo::Demo),
    /// Measure TLS handshakes against any HTTPS server.
    Bench(Box<bench::Bench>),
    /// Measure what HTTPS costs on this machine: by algorithm, by handshake message, by sampling a server.
    Profile(profile::Profile),
    /// Encrypted database fields: make and rotate keys, re-encrypt tables.
    #[command(subcommand)]
    Field(field::Field),
    /// Write completions for a shell to the standard output.
    Completions(generate::Completions),
    /// Write the manual pages of this command and of all its subcommands.
    Man(generate::Man),
}

#[global_allocator]
static ALLOCATOR: allocator::Mimalloc = allocator::Mimalloc;

/// What a user or a script must mend: bad flags, a bad configuration, a port that is taken.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    allocator::use_small_pages();
    let result = match EnvoyArguments::of_process() {
        Some(envoys) => envoys.run(),
        None => run(Cli::parse().command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                eprintln!("quadrille: {problem}");
            }
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(command: Command) -> Result<(), Vec<String>> {
    match command {
        Command::Serve(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Cert(command) => command.run(),
        Command::Istio(command) => command.run(),
        Command::Tickets(command) => command.run(),
        Command::Keyserver(command) => command.run(),
        Command::Provider(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Profile(command) => command.run(),
        Command::Field(command) => command.run(),
        Command::Completions(command) => command.run(Cli::command()),
        Command::Man(command) => command.run(Cli::command()),
    }
}
