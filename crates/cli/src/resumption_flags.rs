//! The flags of resumption.

use clap::Args;
use quadrille_config::{
    Problem,
    model::{Place, Resumption, SessionCache, Source, TicketKeys},
    values,
};
use std::{path::PathBuf, time::Duration};

/// How returning clients avoid a full handshake.
#[derive(Args)]
pub(crate) struct ResumptionFlags {
    /// Session tickets: off, local (keys of this process), fleet (keys of all gateways, rotated through the Redis of
    /// --session-cache), or key FILE[,FILE...] as nginx has them: the first encrypts, the others decrypt.
    #[arg(long, value_name = "WHERE", default_value = "local")]
    session_tickets: String,
    /// Sessions of TLS 1.2 clients without tickets: off, memory, or redis://[user:password@]host[:port][/database] for
    /// all gateways (rediss:// is TLS, redis+cluster://host:port,... a cluster).
    #[arg(long, value_name = "WHERE", value_parser = session_cache, default_value = "memory")]
    session_cache: SessionCache,
    /// Sessions that this process keeps at most [default: 20480]; with 0, Redis is asked for each.
    #[arg(long, value_name = "N", value_parser = values::count_or_zero)]
    session_cache_size: Option<usize>,
    /// How long a session may be resumed [default: 12h].
    #[arg(long, value_name = "TIME", value_parser = values::session_lifetime)]
    session_lifetime: Option<Duration>,
    /// How long a handshake waits for Redis before it becomes a full one [default: 20ms].
    #[arg(long, value_name = "TIME", value_parser = values::timeout)]
    session_lookup_timeout: Option<Duration>,
    /// How long a ticket key encrypts; it is accepted for as long again [default: 12h].
    #[arg(long, value_name = "TIME", value_parser = values::rotation)]
    ticket_rotation: Option<Duration>,
    /// Let TLS 1.3 clients that return send GET and the like before the handshake is complete (0-RTT), once for each
    /// ticket; upstreams see `Early-Data: 1`, and may answer 425.
    #[arg(long)]
    early_data: bool,
    /// What all gateways of a fleet share and Redis does not see; make it with `quadrille tickets generate FILE`.
    #[arg(long, value_name = "FILE")]
    fleet_secret: Option<PathBuf>,
    /// File with the password of Redis, so that it need not stand in the address.
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
    /// What cannot work together.
    pub(crate) fn contradictions(&self) -> Vec<String> {
        let redis = matches!(self.session_cache, SessionCache::Redis(..));
        let mut problems = Vec::new();
        if redis && self.fleet_secret.is_none() {
            problems.push("--session-cache redis://... needs --fleet-secret FILE: what goes to Redis is sealed with it; make one with: quadrille tickets generate FILE".to_owned());
        }
        if matches!(self.session_cache, SessionCache::Memory) && self.session_cache_size == Some(0) {
            problems.push(
                "--session-cache-size 0 needs Redis; to keep no sessions, write --session-cache off"
                    .to_owned(),
            );
        }
        if !redis && self.session_tickets == "fleet" {
            problems.push(
                "--session-tickets fleet needs --session-cache redis://HOST: the keys rotate through it"
                    .to_owned(),
            );
        }
        if !redis && self.fleet_secret.is_some() {
            problems.push("--fleet-secret is of no use without --session-cache redis://HOST".to_owned());
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
