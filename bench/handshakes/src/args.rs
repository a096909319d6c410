//! Command-line arguments.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};
use quadrille_bench_handshakes::{
    contestants::Contestant,
    rival::{Protocol, Rival},
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

    /// Measure CPU per handshake and per request at 2 to 90 % of the fastest server's throughput instead, and write this
    /// page and a picture beside it.
    #[arg(long, value_name = "FILE", group = "what", num_args = 0..=1, default_missing_value = "bench/CURVE.md")]
    pub(crate) curve: Option<PathBuf>,

    /// Measure memory for this many idle connections instead of CPU per handshake.
    #[arg(long, value_name = "N", value_parser = positive, group = "what")]
    pub(crate) idle_connections: Option<usize>,

    /// Measure requests on open connections instead, with small bodies and large ones.
    #[arg(long, group = "what")]
    pub(crate) requests: bool,

    /// Measure downloads through each server instead: the large bodies of --requests alone.
    #[arg(long, group = "what")]
    pub(crate) bulk: bool,

    /// Measure HTTP/3 instead: handshakes, requests and downloads, for servers that support it.
    #[arg(long, group = "what")]
    pub(crate) http3: bool,

    /// Measure the batch size of private-key operations instead: with TCP clients, and with TCP and QUIC clients
    /// together.
    #[arg(long, group = "what")]
    pub(crate) one_queue: bool,

    /// Measure full handshakes with h2load and with our own generator instead.
    #[arg(long, group = "what")]
    pub(crate) cross_check: bool,

    /// Load each server with four times its capacity instead, for this many seconds.
    #[arg(long, value_name = "SECONDS", group = "what", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) overload: Option<u64>,

    /// Measure a well-behaved client beside misbehaving ones instead, for this many seconds each.
    #[arg(long, value_name = "SECONDS", group = "what", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) fair: Option<u64>,

    /// Protocols of the origin behind the servers, with --fair; servers that forward over HTTP/1.1 only are left out of
    /// HTTP/2.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "http1")]
    pub(crate) origin: Vec<Protocol>,

    /// Servers without external authorization, retries, a mirror and compression, with these, or both; with --fair.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "off")]
    pub(crate) filters: Vec<Filters>,

    /// Misbehaving clients to measure, by a part of their name [default: all].
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) misbehaviour: String,

    /// Measure nginx and HAProxy with and without the provider in their OpenSSL instead.
    #[arg(long, group = "what")]
    pub(crate) provider: bool,

    /// Measure full handshakes with ML-DSA-44 certificates instead, beside P-256 in the same rounds.
    #[arg(long, group = "what")]
    pub(crate) post_quantum: bool,

    /// Write a certificate of each key type and its key into this directory, for servers that are started by hand,
    /// instead of measuring.
    #[arg(long, value_name = "DIRECTORY", group = "what")]
    pub(crate) certificates: Option<PathBuf>,

    /// Run three short rounds, with fewer key types.
    #[arg(long)]
    quick: bool,

    /// Interleaved rounds [default: 5].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Maximum number of handshakes per server and round; a quarter of it for a single client.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    handshakes: u64,

    /// Maximum time in milliseconds per server and round; half of it for a single client [default: 700].
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

    /// Key types [default: rsa2048,p256,rsa4096].
    #[arg(long, value_enum, value_delimiter = ',')]
    keys: Vec<KeyKind>,

    /// Connections in flight; resumed handshakes are measured with the highest number only.
    #[arg(long, value_delimiter = ',', default_value = "32,1", value_parser = positive)]
    pub(crate) clients: Vec<usize>,

    /// Key exchange groups of the client, X25519, P-256 or X25519MLKEM768: each list is measured separately, and may
    /// name several, colon-separated. ML-KEM requires TLS 1.3, and is measured with the most clients only.
    #[arg(long, value_delimiter = ',', default_value = "X25519,X25519MLKEM768")]
    pub(crate) groups: Vec<String>,

    /// Requests per connection; 0 means the handshake alone.
    #[arg(long, default_value_t = 1)]
    pub(crate) requests_per_connection: u32,

    /// Core that the servers run on.
    #[arg(long, default_value_t = 0)]
    pub(crate) server_core: usize,

    /// Core that the client runs on.
    #[arg(long, default_value_t = 1)]
    pub(crate) client_core: usize,

    /// Path of nginx.
    #[arg(long)]
    nginx: Option<PathBuf>,

    /// Path of HAProxy.
    #[arg(long)]
    haproxy: Option<PathBuf>,

    /// Path of HAProxy with AWS-LC.
    #[arg(long)]
    haproxy_awslc: Option<PathBuf>,

    /// Path of hitch.
    #[arg(long)]
    hitch: Option<PathBuf>,

    /// Path of h2load.
    #[arg(long, default_value = "h2load")]
    pub(crate) h2load: PathBuf,

    /// Path of Envoy.
    #[arg(long)]
    envoy: Option<PathBuf>,

    /// Path of the server on rustls.
    #[arg(long)]
    rustls: Option<PathBuf>,

    /// Path of Quadrille.
    #[arg(long)]
    quadrille: Option<PathBuf>,

    /// Path of the provider's module.
    #[arg(long, default_value = "bin/quadrille-provider.so")]
    pub(crate) module: PathBuf,

    /// Path of nginx's module.
    #[arg(long, default_value = "bin/ngx_quadrille_async_module.so")]
    pub(crate) nginx_module: PathBuf,

    /// Worker processes of nginx with the provider.
    #[arg(long, value_delimiter = ',', default_value = "8,16", value_parser = positive)]
    pub(crate) workers: Vec<usize>,

    /// Date for the page.
    #[arg(long, default_value = "")]
    pub(crate) date: String,

    /// Path of the JSON output.
    #[arg(long, default_value = "bench/out")]
    pub(crate) out: PathBuf,
}

/// Whether servers run with filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Filters {
    Off,
    On,
}

impl Args {
    /// Returns the amount of measurement.
    pub(crate) fn plan(&self) -> Plan {
        let (rounds, round_time) = if self.quick { (3, 250) } else { (5, 700) };
        Plan {
            rounds: self.rounds.map_or(rounds, usize::from),
            handshakes: self.handshakes,
            round_time: Duration::from_millis(self.round_time.unwrap_or(round_time)),
        }
    }

    /// Returns the key types to measure.
    pub(crate) fn keys(&self) -> Vec<KeyKind> {
        match self.keys.as_slice() {
            [] if self.quick => vec![KeyKind::Rsa2048, KeyKind::P256],
            [] => vec![KeyKind::Rsa2048, KeyKind::P256, KeyKind::Rsa4096],
            named => named.to_vec(),
        }
    }

    /// Returns the number of idle connections in the full comparison.
    pub(crate) fn idle_connections(&self) -> usize {
        self.idle_connections.unwrap_or(if self.quick { 2_000 } else { 10_000 })
    }

    /// Returns the requested servers, each with its version or with the reason that it cannot run.
    pub(crate) fn contestants(&self) -> Vec<Contestant> {
        self.servers.iter().map(|rival| Contestant::new(*rival, self.program(*rival))).collect()
    }

    /// Returns the path of `rival`'s program.
    pub(crate) fn program(&self, rival: Rival) -> PathBuf {
        let named = match rival {
            Rival::Nginx => &self.nginx,
            Rival::Haproxy | Rival::HaproxyTcp => &self.haproxy,
            Rival::HaproxyAwsLc => &self.haproxy_awslc,
            Rival::Hitch => &self.hitch,
            Rival::Envoy => &self.envoy,
            Rival::Rustls => &self.rustls,
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
        assert!(Args::try_parse_from(["bench", "--bulk", "--cross-check"]).is_err(), "one at a time");
    }
}
