//! `quadrille provider`: the engine as an OpenSSL provider in other servers.

mod check;
mod install;
mod key;
mod key_kind;
mod nginx_module;
mod openssl;
mod server;
mod target;

use server::Server;
use target::Module;

/// Installs the engine in servers that use OpenSSL 3, without changes to them.
#[derive(clap::Subcommand)]
pub(crate) enum Provider {
    /// Print the configuration for a server, with the files it belongs in.
    Config(Config),
    /// Write the OpenSSL configuration for a server, check that it works there, and print the server's configuration.
    Install(install::Install),
    /// Load the module into a server's OpenSSL, and sign once through it.
    Check(check::Check),
    /// Make a file that refers to a private key in a key server, for servers that read keys from files.
    Key(key::MakeKey),
    /// Sign in a child process, to isolate this one from the other library.
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

/// Prints the two parts of the configuration: OpenSSL's file and the server's lines.
#[derive(clap::Args)]
pub(crate) struct Config {
    /// The server.
    server: Server,
    #[command(flatten)]
    module: Module,
}

impl Config {
    fn run(&self) -> Result<(), String> {
        let module = self.module.find()?;
        let file = install::default_file(self.server);
        println!("# {}\n", file.display());
        print!("{}", self.server.openssl_cnf(&module, &[], false));
        println!("\n# {}\n", self.server.title());
        print!("{}", self.server.lines(&file, false));
        Ok(())
    }
}
