//! The `quadrille` command.

mod acme_flags;
mod allocator;
mod bench;
mod cert;
mod check;
mod columns;
mod convert;
mod ctl;
mod demo;
mod envoy;
mod envoy_arguments;
mod explain;
mod failure;
mod field;
mod findings;
mod flags;
mod fmt;
mod generate;
mod ingress;
mod istio;
mod keyserver;
mod kubernetes;
mod logging;
mod manual;
mod process;
mod profile;
mod provider;
mod public_key_encoding;
mod resumption_flags;
mod routes;
mod rsa_key;
mod schema;
mod serve;
mod svg;
mod tickets;
mod top;
mod version;

use clap::{CommandFactory, Parser, Subcommand};
use envoy_arguments::EnvoyArguments;
use failure::Failure;
use std::process::ExitCode;

/// A TLS gateway with asynchronous, batched private-key operations.
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

/// Subcommands. A comment on a variant would replace the whole `--help` text of the subcommand's own type.
#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    #[command(short_flag = 't')]
    Check(check::Check),
    Convert(convert::Convert),
    Ctl(ctl::Ctl),
    Top(top::Top),
    Explain(explain::Explain),
    Fmt(fmt::Fmt),
    Schema(schema::Schema),
    /// List certificates, and renew and revoke those that are ordered by ACME.
    #[command(subcommand)]
    Cert(Box<cert::Cert>),
    /// Translate Ingress objects of Kubernetes, and report what works.
    #[command(subcommand)]
    Ingress(ingress::Ingress),
    Kubernetes(Box<kubernetes::Kubernetes>),
    /// Show which private-key provider Istio configures for which proxy.
    #[command(subcommand)]
    Istio(istio::Istio),
    /// Explain how requests are routed.
    #[command(subcommand)]
    Routes(routes::Routes),
    Tickets(tickets::Tickets),
    Keyserver(Box<keyserver::Keyserver>),
    /// Install the engine in nginx, HAProxy, Apache or Node, as an OpenSSL 3 provider.
    #[command(subcommand)]
    Provider(provider::Provider),
    Demo(demo::Demo),
    Bench(Box<bench::Bench>),
    Profile(profile::Profile),
    /// Generate and rotate the keys of encrypted database fields, and re-encrypt tables.
    #[command(subcommand)]
    Field(field::Field),
    Completions(generate::Completions),
    Man(generate::Man),
}

#[global_allocator]
static ALLOCATOR: allocator::Mimalloc = allocator::Mimalloc;

fn main() -> ExitCode {
    allocator::use_small_pages();
    let result = match EnvoyArguments::of_process() {
        Some(envoys) => envoys.run(),
        None => run(Cli::parse().command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let outcome = match command {
        Command::Serve(command) => command.run(),
        Command::Check(command) => return command.run(),
        Command::Convert(command) => return command.run(),
        Command::Ctl(command) => command.run(),
        Command::Top(command) => command.run(),
        Command::Ingress(command) => return command.run(),
        Command::Fmt(command) => return command.run(),
        Command::Kubernetes(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Schema(command) => command.run(),
        Command::Cert(command) => command.run(),
        Command::Istio(command) => command.run(),
        Command::Routes(command) => command.run(),
        Command::Tickets(command) => command.run(),
        Command::Keyserver(command) => command.run(),
        Command::Provider(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Profile(command) => command.run(),
        Command::Field(command) => command.run(),
        Command::Completions(command) => command.run(Cli::command()),
        Command::Man(command) => command.run(Cli::command()),
    };
    outcome.map_err(Failure::from)
}
