//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use quadrille_bench_handshakes::{rival::Rival, rounds::Plan, scenario::KeyKind};
use quadrille_profile::load::TlsVersion;

/// CPU per full TLS handshake, or memory per idle connection: nginx, HAProxy, Envoy and Quadrille side by side.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Measure memory for this many idle connections instead of CPU per handshake.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) idle_connections: Option<usize>,

    /// Three rounds of 500 handshakes.
    #[arg(long)]
    quick: bool,

    /// Interleaved rounds [default: 9].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Handshakes of each server in each round; a quarter of it for a single client [default: 2000].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    handshakes: Option<u64>,

    /// Servers to measure, in this order.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "nginx,haproxy,envoy,quadrille")]
    pub(crate) servers: Vec<Rival>,

    /// TLS versions.
    #[arg(long, value_delimiter = ',', default_value = "1.3,1.2")]
    pub(crate) versions: Vec<TlsVersion>,

    /// Kinds of key.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "p256,rsa2048")]
    pub(crate) keys: Vec<KeyKind>,

    /// Connections in flight.
    #[arg(long, value_delimiter = ',', default_value = "32,1", value_parser = positive)]
    pub(crate) clients: Vec<usize>,

    /// The client's key exchange groups, colon-separated: X25519, P-256, X25519MLKEM768.
    #[arg(long, default_value = "X25519")]
    pub(crate) groups: String,

    /// Requests on each connection; 0 is the handshake alone.
    #[arg(long, default_value_t = 1)]
    pub(crate) requests: u32,

    /// Core that the servers run on.
    #[arg(long, default_value_t = 0)]
    pub(crate) server_core: usize,

    /// Core that the client runs on.
    #[arg(long, default_value_t = 1)]
    pub(crate) client_core: usize,

    /// nginx's program.
    #[arg(long)]
    nginx: Option<PathBuf>,

    /// HAProxy's program.
    #[arg(long)]
    haproxy: Option<PathBuf>,

    /// Envoy's program.
    #[arg(long)]
    envoy: Option<PathBuf>,

    /// Quadrille's program.
    #[arg(long)]
    quadrille: Option<PathBuf>,

    /// Where the JSON goes.
    #[arg(long, default_value = "bench/out")]
    pub(crate) out: PathBuf,
}

impl Args {
    /// How much to measure.
    pub(crate) fn plan(&self) -> Plan {
        let (rounds, handshakes) = if self.quick { (3, 500) } else { (9, 2000) };
        Plan {
            rounds: self.rounds.map_or(rounds, usize::from),
            handshakes: self.handshakes.unwrap_or(handshakes),
            time_limit: Duration::from_secs(60),
        }
    }

    /// Where `rival`'s program is.
    pub(crate) fn program(&self, rival: Rival) -> PathBuf {
        let named = match rival {
            Rival::Nginx => &self.nginx,
            Rival::Haproxy => &self.haproxy,
            Rival::Envoy => &self.envoy,
            Rival::Quadrille | Rival::Keyless => &self.quadrille,
        };
        named.clone().unwrap_or_else(|| rival.default_program())
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
        let args = Args::parse_from(["bench", "--quick", "--rounds", "5"]);
        assert_eq!((args.plan().rounds, args.plan().handshakes), (5, 500));
        assert!(Args::try_parse_from(["bench", "--clients", "0"]).is_err());
    }
}
