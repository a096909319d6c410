//! `quadrille field`.

mod keygen;
mod keys;
mod mcrypt;
mod migrate;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Field {
    /// Make a key ring file, or change the keys in one.
    Keygen(keygen::Keygen),
    /// List the keys of a key ring file: ids and states, never values.
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
