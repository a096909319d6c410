//! `quadrille ctl`.
//!
//! - `client`: requests to the admin API; `status`: its status page as text.

mod client;
mod status;

use crate::{columns, schema::print};
use clap::Subcommand;
pub(crate) use client::{Client, Target};
use serde_json::Value;

/// Control a running gateway: reload it, drain servers, change the log level, show its state.
///
/// A client of the gateway's admin API, which it reaches by a Unix socket or an address:
///   quadrille ctl status                                # /run/quadrille/admin.sock, or else 127.0.0.1:9901
///   quadrille ctl --socket /run/a.sock drain app 10.0.0.1:8080
///   quadrille ctl --address 127.0.0.1:9902 log-level debug
///   quadrille ctl --config quadrille.yaml reload        # the socket or address that the file names
///
/// The socket exists with `admin: {socket: /run/quadrille/admin.sock}` in the configuration, and admits root and the
/// gateway's user. Over an address, everything but status, certificates and showing the log level needs
/// `admin: {actions: on}`.
///
/// The exit status is 0 if the gateway did it, and 2 if it refused or was not reached.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Ctl {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show version, uptime, warnings, upstreams with their servers, and certificates.
    Status {
        /// Print the page /status as JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the certificates in service with their expiry.
    Certificates {
        /// Print a JSON list.
        #[arg(long)]
        json: bool,
    },
    /// Read the configuration again, and wait for the result. After an error, the old one stays in service.
    ///
    /// A reload also sets the configured log level again.
    Reload,
    /// Take a server out of service: requests in progress complete, new ones go to other servers.
    ///
    /// The server stays out of service across reloads until `undrain`, or until a new process starts.
    Drain(Endpoint),
    /// Return a server to service.
    Undrain(Endpoint),
    /// Show the level of the log, or change it until the next reload.
    ///
    /// Lines of the levels debug and trace may contain header fields of requests.
    LogLevel {
        /// error, warn, info, debug, trace or off, or a filter in tracing's syntax, such as `info,h2=debug`.
        level: Option<String>,
        /// Return to the configured level.
        #[arg(long, conflicts_with = "level")]
        reset: bool,
    },
}

/// A server of an upstream.
#[derive(clap::Args)]
struct Endpoint {
    /// Name of the upstream in the configuration.
    upstream: String,
    /// Address of the server, as `quadrille ctl status` shows it.
    server: String,
}

impl Ctl {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let client = Client::new(self.target)?;
        match self.command {
            Command::Status { json } => {
                let (text, page) = client.json("/status")?;
                print(&if json { text } else { status::overview(&page) })
            }
            Command::Certificates { json } => {
                let (_, page) = client.json("/status")?;
                let certificates = &page["certificates"];
                match json {
                    true => print(&format!("{certificates:#}\n")),
                    false => print(&columns::aligned(&status::certificates(certificates))),
                }
            }
            Command::Reload => print(&client.post("/reload", &[])?),
            Command::Drain(endpoint) => print(&endpoint.post(&client, "/drain")?),
            Command::Undrain(endpoint) => print(&endpoint.post(&client, "/undrain")?),
            Command::LogLevel { level: None, reset: false } => {
                let (_, page) = client.json("/log-level")?;
                print(&level(&page))
            }
            Command::LogLevel { level, .. } => {
                let level = level.as_deref().unwrap_or("configured");
                print(&client.post("/log-level", &[("level", level)])?)
            }
        }
    }
}

impl Endpoint {
    fn post(&self, client: &Client, action: &str) -> Result<String, Vec<String>> {
        client.post(action, &[("upstream", &self.upstream), ("server", &self.server)])
    }
}

fn level(page: &Value) -> String {
    let text = |key: &str| page[key].as_str().unwrap_or_default().to_owned();
    let (level, configured) = (text("level"), text("configured"));
    if level == configured { format!("{level}\n") } else { format!("{level} (configured: {configured})\n") }
}
