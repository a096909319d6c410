//! `quadrille completions` and `quadrille man`: what a package installs beside the command.

use clap::Command;
use clap_complete::Shell;
use std::{fs, io, path::PathBuf};

/// Write shell completions to the standard output.
///
/// For bash, for instance: quadrille completions bash > ~/.local/share/bash-completion/completions/quadrille
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// Which shell.
    shell: Shell,
}

/// Write the manual pages of this command and of all its subcommands.
#[derive(clap::Args)]
pub(crate) struct Man {
    /// The directory that they are written to, for instance /usr/local/share/man/man1.
    directory: PathBuf,
}

impl Completions {
    pub(crate) fn run(self, mut command: Command) -> Result<(), Vec<String>> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "quadrille", &mut script);
        match io::Write::write_all(&mut io::stdout(), &script) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(vec![format!("cannot write the completions: {error}")])
            }
            _ => Ok(()),
        }
    }
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Result<(), Vec<String>> {
        // What `--version` adds to the version belongs to the machine that the pages are made on.
        let command = command.version(env!("CARGO_PKG_VERSION")).long_version(None);
        let written = fs::create_dir_all(&self.directory)
            .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), &self.directory));
        written.map_err(|error| vec![format!("cannot write to {}: {error}", self.directory.display())])
    }
}
