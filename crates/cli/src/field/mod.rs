//! `quadrille field`.

mod keygen;
mod keys;
mod mcrypt;
mod migrate;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Field {
    /// Create a key ring file, or change its keys.
    Keygen(keygen::Keygen),
    /// List the ids and states of the keys in a key ring file, never their values.
    Keys(keys::Keys),
    /// Re-encrypt columns of a table while it is in use.
    Migrate(Box<migrate::Migrate>),
}

impl Field {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        match self {
            Self::Keygen(command) => command.run(),
            Self::Keys(command) => command.run(),
            Self::Migrate(command) => command.run(),
        }
        .map_err(|problem| vec![problem])
    }
}
