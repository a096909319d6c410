//! `quadrille completions` and `quadrille man`: files that a package installs along with the command.

use crate::manual::{self, Frame};
use clap::Command;
use clap_complete::Shell;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Write shell completions to standard output.
///
/// For bash, for instance: quadrille completions bash > ~/.local/share/bash-completion/completions/quadrille
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Write the manual pages of this command, of all its subcommands and of its configuration files.
#[derive(clap::Args)]
pub(crate) struct Man {
    /// The output directory, for pages of sections 1 and 5.
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
        // The lines that `--version` adds describe the machine that generates the pages.
        let command = command.version(env!("CARGO_PKG_VERSION")).long_version(None);
        let written = fs::create_dir_all(&self.directory)
            .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), &self.directory))
            .and_then(|()| write_file_formats(&self.directory));
        written.map_err(|error| vec![format!("cannot write to {}: {error}", self.directory.display())])
    }
}

/// Writes the pages of section 5, generated from the references.
fn write_file_formats(directory: &Path) -> io::Result<()> {
    let configuration = Frame {
        name: "quadrille.yaml",
        about: "configuration file of the Quadrille TLS gateway",
        files: &[
            ("/etc/quadrille/quadrille.yaml", "The file that the systemd unit quadrille.service reads."),
            ("/usr/share/doc/quadrille/examples/quadrille.yaml", "An example that shows every key."),
        ],
        see_also: &[
            "quadrille(1)",
            "quadrille-check(1)",
            "quadrille-serve(1)",
            "quadrille-key-policy.yaml(5)",
        ],
    };
    let policy = Frame {
        name: "quadrille-key-policy.yaml",
        about: "policy file of a Quadrille key server",
        files: &[("/usr/share/doc/quadrille/examples/key-policy.yaml", "An example that shows every key.")],
        see_also: &["quadrille-keyserver(1)", "quadrille.yaml(5)"],
    };
    let references =
        [(configuration, quadrille_config::reference()), (policy, quadrille_config::key_policy_reference())];
    for (frame, reference) in references {
        let page = manual::page(&frame, &reference);
        fs::write(directory.join(frame.name).with_added_extension("5"), page)?;
    }
    Ok(())
}
