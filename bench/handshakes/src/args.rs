//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use quadrille_bench_handshakes::{
    contestants::Contestant,
    rival::Rival,
    rounds::Plan,
    scenario::{KeyKind, Resumption},
};
use quadrille_profile::load::TlsVersion;

/// CPU per TLS handshake and per request, speed and price of a download, memory per idle connection: nginx, HAProxy,
/// Envoy, hitch and Quadrille side by side.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Measure everything, and write this page and a picture beside it.
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) report: Option<PathBuf>,

    /// Measure memory for this many idle connections instead of CPU per handshake.
    #[arg(long, value_name = "N", value_parser = positive, group = "what")]
    pub(crate) idle_connections: Option<usize>,

    /// Measure requests on open connections instead, with small bodies and large ones.
    #[arg(long, group = "what")]
    pub(crate) requests: bool,

    /// Measure downloads through each server instead: of --requests, the large bodies alone.
    #[arg(long, group = "what")]
    pub(crate) bulk: bool,

    /// Measure HTTP/3 instead: handshakes, requests and downloads, of servers that speak it.
    #[arg(long, group = "what")]
    pub(crate) http3: bool,

    /// Measure how many private-key operations go together instead: of clients by TCP, and of both kinds.
    #[arg(long, group = "what")]
    pub(crate) one_queue: bool,

    /// Measure full handshakes with h2load beside our own generator instead.
    #[arg(long, group = "what")]
    pub(crate) cross_check: bool,

    /// Ask each server for four times what it can do instead, for so many seconds.
    #[arg(long, value_name = "SECONDS", group = "what", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) overload: Option<u64>,

    /// Measure nginx and HAProxy with the provider in their OpenSSL instead, beside themselves without it.
    #[arg(long, group = "what")]
    pub(crate) provider: bool,

    /// Three short rounds, and fewer kinds of key.
    #[arg(long)]
    quick: bool,

    /// Interleaved rounds [default: 5].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Handshakes of each server in each round, at most; a quarter of it for a single client.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    handshakes: u64,

    /// Milliseconds that each server gets in each round, at most; half of it for a single client [default: 700].
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    round_time: Option<u64>,

    /// Servers to measure, in this order.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "nginx,haproxy,haproxy-awslc,envoy,quadrille,keyless,hitch,haproxy-tcp,quadrille-tcp"
    )]
    servers: Vec<Rival>,

    /// Full handshakes, resumed ones, or both.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off,on")]
    pub(crate) resumption: Vec<Resumption>,

    /// TLS versions.
    #[arg(long, value_delimiter = ',', default_value = "1.3,1.2")]
    pub(crate) versions: Vec<TlsVersion>,

    /// Kinds of key [default: rsa2048,p256,rsa4096].
    #[arg(long, value_enum, value_delimiter = ',')]
    keys: Vec<KeyKind>,

    /// Connections in flight; resumed handshakes are measured with the most of them only.
    #[arg(long, value_delimiter = ',', default_value = "32,1", value_parser = positive)]
    pub(crate) clients: Vec<usize>,

    /// Key exchange groups of the client, X25519, P-256 or X25519MLKEM768: each list is measured by itself, and may name
    /// several, colon-separated. ML-KEM is in TLS 1.3 alone, and measured with the most clients only.
    #[arg(long, value_delimiter = ',', default_value = "X25519,X25519MLKEM768")]
    pub(crate) groups: Vec<String>,

    /// Requests on each connection; 0 is the handshake alone.
    #[arg(long, default_value_t = 1)]
    pub(crate) requests_per_connection: u32,

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

    /// The program of HAProxy with AWS-LC.
    #[arg(long)]
    haproxy_awslc: Option<PathBuf>,

    /// hitch's program.
    #[arg(long)]
    hitch: Option<PathBuf>,

    /// h2load's program.
    #[arg(long, default_value = "h2load")]
    pub(crate) h2load: PathBuf,

    /// Envoy's program.
    #[arg(long)]
    envoy: Option<PathBuf>,

    /// Quadrille's program.
    #[arg(long)]
    quadrille: Option<PathBuf>,

    /// The provider's module.
    #[arg(long, default_value = "bin/quadrille-provider.so")]
    pub(crate) module: PathBuf,

    /// nginx's module.
    #[arg(long, default_value = "bin/ngx_quadrille_async_module.so")]
    pub(crate) nginx_module: PathBuf,

    /// Worker processes of nginx beside the provider.
    #[arg(long, value_delimiter = ',', default_value = "8,16", value_parser = positive)]
    pub(crate) workers: Vec<usize>,

    /// The date for the page.
    #[arg(long, default_value = "")]
    pub(crate) date: String,

    /// Where the JSON goes.
    #[arg(long, default_value = "bench/out")]
    pub(crate) out: PathBuf,
}

impl Args {
    /// How much to measure.
    pub(crate) fn plan(&self) -> Plan {
        let (rounds, round_time) = if self.quick { (3, 250) } else { (5, 700) };
        Plan {
            rounds: self.rounds.map_or(rounds, usize::from),
            handshakes: self.handshakes,
            round_time: Duration::from_millis(self.round_time.unwrap_or(round_time)),
        }
    }

    /// Kinds of key to measure.
    pub(crate) fn keys(&self) -> Vec<KeyKind> {
        match self.keys.as_slice() {
            [] if self.quick => vec![KeyKind::Rsa2048, KeyKind::P256],
            [] => vec![KeyKind::Rsa2048, KeyKind::P256, KeyKind::Rsa4096],
            named => named.to_vec(),
        }
    }

    /// Idle connections of the whole comparison.
    pub(crate) fn idle_connections(&self) -> usize {
        self.idle_connections.unwrap_or(if self.quick { 2_000 } else { 10_000 })
    }

    /// The servers asked for, each with its version or with the reason why it cannot run.
    pub(crate) fn contestants(&self) -> Vec<Contestant> {
        self.servers.iter().map(|rival| Contestant::new(*rival, self.program(*rival))).collect()
    }

    /// Where `rival`'s program is.
    pub(crate) fn program(&self, rival: Rival) -> PathBuf {
        let named = match rival {
            Rival::Nginx => &self.nginx,
            Rival::Haproxy | Rival::HaproxyTcp => &self.haproxy,
            Rival::HaproxyAwsLc => &self.haproxy_awslc,
            Rival::Hitch => &self.hitch,
            Rival::Envoy => &self.envoy,
            Rival::Quadrille | Rival::QuadrilleTcp | Rival::Keyless => &self.quadrille,
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
        assert_eq!((args.plan().rounds, args.keys().len()), (5, 2));
        assert!(Args::try_parse_from(["bench", "--clients", "0"]).is_err());
        assert!(Args::try_parse_from(["bench", "--bulk", "--cross-check"]).is_err(), "one thing at a time");
    }
}
