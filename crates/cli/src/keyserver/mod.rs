//! `quadrille keyserver`, with `keys`, `ping` and `sign` for operators.

mod keys;
mod ping;
mod remote;
mod serve;
mod sign;

/// Hold private keys, and compute with them for gateways on other machines.
///
///   quadrille keyserver --keys /etc/quadrille/keys --listen 0.0.0.0:2407 \
///     --client-ca gateways-ca.pem --cert keyserver.pem --key keyserver.key
///
/// Serves each private key in a PEM file in the --keys directory under its key identifier, and each key in a PKCS#11
/// token whose pkcs11: URI a file of the directory contains. Keys, certificates and the
/// policy are reloaded when they change, and on SIGHUP; SIGTERM drains. Without --policy, every client with a
/// certificate from --client-ca may sign with every key, and no client may decrypt.
#[derive(clap::Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub(crate) struct Keyserver {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    serve: serve::Serve,
}

#[derive(clap::Subcommand)]
enum Tool {
    /// List the private keys of a directory or of a PKCS#11 token.
    Keys(keys::Keys),
    /// Test whether a key server is up and holds a certificate's key, and measure its latency.
    Ping(ping::Ping),
    /// Sign a file with a key that a key server holds.
    Sign(sign::Sign),
}

impl Keyserver {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        match self.tool {
            Some(Tool::Keys(keys)) => keys.run(),
            Some(Tool::Ping(ping)) => ping.run(),
            Some(Tool::Sign(sign)) => sign.run(),
            None => self.serve.run(),
        }
    }
}
