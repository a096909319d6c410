//! `quadrille profile`.

mod algorithms;
mod flame;
mod flow;
mod handshake;
mod sample_load;
mod system;

use clap::Subcommand;

/// Measure the cost of HTTPS on this machine: by algorithm, by handshake message, or by sampling a server.
#[derive(clap::Args)]
pub(crate) struct Profile {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure rates by algorithm, and estimate this machine's handshake rates.
    Algorithms(algorithms::Algorithms),
    /// Measure CPU time by handshake message, of the server or the client.
    Handshake(handshake::Handshake),
    /// Sample a running gateway or client: shares of CPU by class of work and step of TLS, and a flame graph.
    System(Box<system::System>),
}

impl Profile {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let result = match self.what {
            What::Algorithms(command) => command.run(),
            What::Handshake(command) => command.run(),
            What::System(command) => command.run(),
        };
        result.map_err(|problem| vec![problem])
    }
}
