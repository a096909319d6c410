//! Flags for the target server and the location of the module.

use super::server::Server;
use std::path::PathBuf;

/// A server and the module for it.
#[derive(clap::Args)]
pub(super) struct Target {
    /// The server.
    pub(super) server: Server,
    #[command(flatten)]
    module: Module,
    /// The server's program, or for Apache its mod_ssl.so.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A directory, file or socket that files of `quadrille provider key` may name; all others are rejected. May be
    /// repeated.
    #[arg(long, value_name = "PATH")]
    pem_keys: Vec<PathBuf>,
    /// Also use the provider for X25519: it takes less CPU than OpenSSL 3.0's. `install --async` implies this.
    #[arg(long)]
    key_exchange: bool,
}

impl Target {
    /// Returns the server's program.
    pub(super) fn program(&self) -> Result<PathBuf, String> {
        self.program.clone().map_or_else(|| self.server.program(), Ok)
    }

    /// Returns the configuration of the server's OpenSSL. `key_exchange` uses the provider for X25519 even without
    /// the flag.
    pub(super) fn openssl_cnf(&self, key_exchange: bool) -> Result<String, String> {
        let absolute = |path: &PathBuf| {
            let path = std::path::absolute(path).map_err(|error| error.to_string())?;
            path.into_os_string()
                .into_string()
                .map_err(|path| format!("--pem-keys {}: not UTF-8", path.display()))
        };
        let pem_keys = self.pem_keys.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
        Ok(self.server.openssl_cnf(&self.module.find()?, &pem_keys, key_exchange || self.key_exchange))
    }
}

/// Location of the module.
#[derive(clap::Args)]
pub(super) struct Module {
    /// The module [default: quadrille-provider.so beside this program, or in lib/quadrille].
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

const FILE_NAME: &str = "quadrille-provider.so";

impl Module {
    /// Returns the absolute path of the module.
    pub(super) fn find(&self) -> Result<PathBuf, String> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join(FILE_NAME));
        let installed = || {
            let prefix = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
            Some(prefix.join("lib/quadrille").join(FILE_NAME))
        };
        let usual = || Some(PathBuf::from("/usr/lib/quadrille").join(FILE_NAME));
        let found = match &self.module {
            Some(file) => Some(file.clone()),
            None => [beside(), installed(), usual()].into_iter().flatten().find(|file| file.exists()),
        };
        let missing = || {
            format!(
                "{FILE_NAME} is neither beside this program nor in /usr/lib/quadrille; give its path with --module"
            )
        };
        let file = found.ok_or_else(missing)?;
        // OpenSSL needs the absolute path.
        file.canonicalize().map_err(|error| format!("--module {}: {error}", file.display()))
    }
}
