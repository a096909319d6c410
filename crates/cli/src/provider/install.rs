//! `quadrille provider install`.

use super::{check, server::Server, target::Target};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Writes OpenSSL's configuration for one server to a file of its own. The server is told of it by its environment, so
/// that no other program changes. If the check fails, the file is not written.
#[derive(clap::Args)]
pub(crate) struct Install {
    #[command(flatten)]
    target: Target,
    /// Where to write it [default: /etc/quadrille/openssl-SERVER.cnf].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write over a file with other contents.
    #[arg(long)]
    force: bool,
}

pub(super) fn default_file(server: Server) -> PathBuf {
    Path::new("/etc/quadrille").join(format!("openssl-{}.cnf", server.name()))
}

impl Install {
    pub(super) fn run(&self) -> Result<(), String> {
        let server = self.target.server;
        let contents = self.target.openssl_cnf()?;
        let file = self.out.clone().unwrap_or_else(|| default_file(server));
        let there = fs::read_to_string(&file).ok();
        if there.is_some_and(|there| there != contents) && !self.force {
            return Err(format!("{} has other contents; write over it with --force", file.display()));
        }
        let checked = check::with(&self.target, &contents, None)?;
        let cannot = |error: io::Error| format!("cannot write {}: {error}", file.display());
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory).map_err(cannot)?;
        }
        fs::write(&file, contents).map_err(cannot)?;
        println!("{checked}\nwrote {}\n", file.display());
        print!("{}", server.lines(&file));
        Ok(())
    }
}
