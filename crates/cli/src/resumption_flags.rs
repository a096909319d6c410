//! Flags for session resumption.

use clap::Args;
use quadrille_config::{
    Problem,
    model::{Place, Resumption, SessionCache, Source, TicketKeys},
    values,
};
use std::{path::PathBuf, time::Duration};

/// Session resumption for returning clients.
#[derive(Args)]
pub(crate) struct ResumptionFlags {
    /// Session tickets: off, local (keys of this process), fleet (keys shared by all gateways, rotated through the
    /// Redis of --session-cache), or key FILE[,FILE...] in nginx's format: the first encrypts, the others decrypt.
    #[arg(long, value_name = "WHERE", default_value = "local")]
    session_tickets: String,
    /// Session cache for TLS 1.2 clients without tickets: off, memory, or redis://[user:password@]host[:port][/db]
    /// for all gateways (rediss:// is TLS, redis+cluster://host:port,... a cluster).
    #[arg(long, value_name = "WHERE", value_parser = session_cache, default_value = "memory")]
    session_cache: SessionCache,
    /// Maximum number of sessions held in this process [default: 20480]; with 0, every lookup queries Redis.
    #[arg(long, value_name = "N", value_parser = values::count_or_zero)]
    session_cache_size: Option<usize>,
    /// Time for which a session may be resumed [default: 12h].
    #[arg(long, value_name = "TIME", value_parser = values::session_lifetime)]
    session_lifetime: Option<Duration>,
    /// Time that a handshake waits for Redis before it becomes a full one [default: 20ms].
    #[arg(long, value_name = "TIME", value_parser = values::timeout)]
    session_lookup_timeout: Option<Duration>,
    /// Time for which a ticket key encrypts; it is accepted for the same time after that [default: 12h].
    #[arg(long, value_name = "TIME", value_parser = values::rotation)]
    ticket_rotation: Option<Duration>,
    /// Accept early data (0-RTT) from returning TLS 1.3 clients: GET and other safe methods, once for each ticket.
    /// Upstreams receive `Early-Data: 1`, and may respond with 425.
    #[arg(long)]
    early_data: bool,
    /// The secret shared by a fleet's gateways, unknown to Redis; make one with `quadrille tickets generate FILE`.
    #[arg(long, value_name = "FILE")]
    fleet_secret: Option<PathBuf>,
    /// File with the Redis password, as an alternative to the address.
    #[arg(long, value_name = "FILE")]
    redis_password: Option<PathBuf>,
    /// CA bundle (PEM) for rediss:// [default: the system's].
    #[arg(long, value_name = "FILE")]
    redis_ca: Option<PathBuf>,
}

fn session_cache(text: &str) -> Result<SessionCache, Problem> {
    values::session_cache(text, Place::flag("--session-cache"))
}

impl ResumptionFlags {
    /// Returns the problems in the combination of flags.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let redis = matches!(self.session_cache, SessionCache::Redis(..));
        let mut problems = Vec::new();
        if redis && self.fleet_secret.is_none() {
            problems.push("--session-cache redis://... needs --fleet-secret FILE, which encrypts data in Redis; make one with: quadrille tickets generate FILE".to_owned());
        }
        if matches!(self.session_cache, SessionCache::Memory) && self.session_cache_size == Some(0) {
            problems.push(
                "--session-cache-size 0 needs Redis; to keep no sessions, write --session-cache off"
                    .to_owned(),
            );
        }
        if !redis && self.session_tickets == "fleet" {
            problems.push(
                "--session-tickets fleet needs --session-cache redis://HOST, through which the keys rotate"
                    .to_owned(),
            );
        }
        if !redis && self.fleet_secret.is_some() {
            problems.push("--fleet-secret has no effect without --session-cache redis://HOST".to_owned());
        }
        if self.early_data
            && let Some(problem) = self.tickets().early_data_problem(&self.session_cache)
        {
            problems.push(format!("--early-data: {problem}"));
        }
        problems
    }

    pub(crate) fn into_model(self) -> Resumption {
        let defaults = Resumption::default();
        let tickets = self.tickets();
        let source = |file: Option<PathBuf>, flag| file.map(|file| (Source::File(file), Place::flag(flag)));
        Resumption {
            tickets,
            cache: self.session_cache,
            cache_size: self.session_cache_size.unwrap_or(defaults.cache_size),
            lifetime: self.session_lifetime.unwrap_or(defaults.lifetime),
            rotation: self.ticket_rotation.unwrap_or(defaults.rotation),
            early_data: self.early_data,
            lookup_timeout: self.session_lookup_timeout.unwrap_or(defaults.lookup_timeout),
            fleet_secret: source(self.fleet_secret, "--fleet-secret"),
            redis_password: source(self.redis_password, "--redis-password"),
            redis_ca: self.redis_ca.map(|file| (file, Place::flag("--redis-ca"))),
        }
    }

    fn tickets(&self) -> TicketKeys {
        let place = Place::flag("--session-tickets");
        values::ticket_keys(&self.session_tickets, place.clone()).unwrap_or_else(|| {
            let files = self.session_tickets.split(',').map(|file| Source::File(file.into()));
            TicketKeys::Files(files.collect(), place)
        })
    }
}
