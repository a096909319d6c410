//! `quadrille profile`.

mod algorithms;
mod flow;
mod handshake;

use clap::Subcommand;

/// Measures what HTTPS costs on this machine, without a server.
#[derive(clap::Args)]
pub(crate) struct Profile {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Rates by algorithm, and what they mean for this machine's handshakes.
    Algorithms(algorithms::Algorithms),
    /// CPU by handshake message, on the server's side.
    Handshake(handshake::Handshake),
}

impl Profile {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let result = match self.what {
            What::Algorithms(command) => command.run(),
            What::Handshake(command) => command.run(),
        };
        result.map_err(|problem| vec![problem])
    }
}
