//! `quadrille provider install`.

use super::{check, nginx_module::NginxModule, server::Server, target::Target};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Writes OpenSSL's configuration for one server to a separate file, and with --async the lines that load nginx's
/// module. An environment variable points only this server to that file, so other programs are unaffected. If a check
/// fails, nothing is written.
#[derive(clap::Args)]
pub(crate) struct Install {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    nginx_module: NginxModule,
    /// Output file [default: /etc/quadrille/openssl-SERVER.cnf].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite a file with other contents.
    #[arg(long)]
    force: bool,
}

pub(super) fn default_file(server: Server) -> PathBuf {
    Path::new("/etc/quadrille").join(format!("openssl-{}.cnf", server.name()))
}

impl Install {
    pub(super) fn run(&self) -> Result<(), String> {
        let server = self.target.server;
        let contents = self.target.openssl_cnf(self.nginx_module.wanted)?;
        let file = self.out.clone().unwrap_or_else(|| default_file(server));
        let mut files = vec![(file.clone(), contents.clone())];
        if self.nginx_module.wanted {
            if server != Server::Nginx {
                return Err("--async is for nginx; HAProxy has `ssl-mode-async`".to_owned());
            }
            files.push((self.nginx_module.file()?, self.nginx_module.lines()?));
        }
        for (file, contents) in &files {
            self.may_write(file, contents)?;
        }
        let checked = check::with(&self.target, &contents, None)?;
        if self.nginx_module.wanted {
            self.nginx_module.check(&self.target.program()?, &contents)?;
        }
        println!("{checked}");
        for (file, contents) in &files {
            write(file, contents)?;
            println!("wrote {}", file.display());
        }
        print!("\n{}", server.lines(&file, self.nginx_module.wanted));
        Ok(())
    }

    fn may_write(&self, file: &Path, contents: &str) -> Result<(), String> {
        let there = fs::read_to_string(file).ok();
        if there.is_some_and(|there| there != contents) && !self.force {
            return Err(format!("{} has other contents; overwrite it with --force", file.display()));
        }
        Ok(())
    }
}

fn write(file: &Path, contents: &str) -> Result<(), String> {
    let cannot = |error: io::Error| format!("cannot write {}: {error}", file.display());
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).map_err(cannot)?;
    }
    fs::write(file, contents).map_err(cannot)
}
