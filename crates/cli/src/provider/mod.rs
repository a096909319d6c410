//! `quadrille provider`: the engine inside other people's servers.

mod check;
mod install;
mod key;
mod openssl;
mod server;

use server::Server;
use std::path::PathBuf;

/// Puts the engine into servers that use OpenSSL 3, which stay as they are.
#[derive(clap::Subcommand)]
pub(crate) enum Provider {
    /// Print the configuration for a server, and where it goes.
    Config(Config),
    /// Write the OpenSSL configuration for a server, check that it works there, and print the server's lines.
    Install(install::Install),
    /// Load the module into a server's OpenSSL, and sign once through it.
    Check(check::Check),
    /// Make a file that stands for a private key in a key server, for servers that read keys from files.
    Key(key::MakeKey),
    /// Sign in a child process, so that what happens in another library stays there.
    #[command(hide = true)]
    Probe(openssl::Probe),
}

impl Provider {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        match self {
            Self::Config(config) => config.run(),
            Self::Install(install) => install.run(),
            Self::Check(check) => check.run(),
            Self::Key(key) => key.run(),
            Self::Probe(probe) => probe.run(),
        }
        .map_err(|problem| vec![problem])
    }
}

/// Prints the two parts of the configuration: the file for OpenSSL, and the lines for the server.
#[derive(clap::Args)]
pub(crate) struct Config {
    /// Which server.
    server: Server,
    #[command(flatten)]
    module: Module,
}

impl Config {
    fn run(&self) -> Result<(), String> {
        let module = self.module.find()?;
        let file = install::default_file(self.server);
        println!("# {}\n", file.display());
        print!("{}", self.server.openssl_cnf(&module));
        println!("\n# {}\n", self.server.title());
        print!("{}", self.server.lines(&file));
        Ok(())
    }
}

/// A server, and the module for it.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// Which server.
    server: Server,
    #[command(flatten)]
    module: Module,
    /// The server's program, or for Apache its mod_ssl.so.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

impl Target {
    fn program(&self) -> Result<PathBuf, String> {
        self.program.clone().map_or_else(|| self.server.program(), Ok)
    }

    fn openssl_cnf(&self) -> Result<String, String> {
        Ok(self.server.openssl_cnf(&self.module.find()?))
    }
}

/// Where the module is.
#[derive(clap::Args)]
pub(crate) struct Module {
    /// The module [default: quadrille-provider.so beside this program, or in /usr/lib/quadrille].
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

const FILE_NAME: &str = "quadrille-provider.so";

impl Module {
    pub(crate) fn find(&self) -> Result<PathBuf, String> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join(FILE_NAME));
        let usual = || Some(PathBuf::from("/usr/lib/quadrille").join(FILE_NAME));
        let found = match &self.module {
            Some(file) => Some(file.clone()),
            None => [beside(), usual()].into_iter().flatten().find(|file| file.exists()),
        };
        let missing = || {
            format!(
                "{FILE_NAME} is neither beside this program nor in /usr/lib/quadrille; name it by --module"
            )
        };
        let file = found.ok_or_else(missing)?;
        // OpenSSL wants the whole path.
        file.canonicalize().map_err(|error| format!("--module {}: {error}", file.display()))
    }
}
