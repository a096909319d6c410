//! The configuration in effect, defaults included and secrets left out, in the shape of the file.

mod listener;
mod route;
mod tls;
mod values;

use crate::{
    model::{
        AccessLog, Gateway, Health, HealthProbe, Resumption, SessionCache, TicketKeys, Upstream, UpstreamTls,
    },
    words::name,
};
use listener::listener;
use serde_json::{Map, Value, json};
use values::{or_off, put, source, threads, time};

/// The configuration in effect, as the admin page `/config` shows it: what the file could have said to the same
/// effect. Key material given in place is `(inline)`.
pub fn show(gateway: &Gateway) -> Value {
    let upstreams: Map<_, _> =
        gateway.upstreams.iter().map(|(name, shown)| (name.clone(), upstream(shown))).collect();
    json!({
        "listeners": gateway.listeners.iter().flat_map(listener).collect::<Vec<_>>(),
        "upstreams": upstreams,
        "engine": {
            "backend": name(gateway.engine.backend),
            "poll_delay": time(gateway.engine.poll_delay),
            "batch": gateway.engine.batch,
            "threads": threads(gateway.engine.threads),
            "queue": gateway.engine.queue,
        },
        "resumption": resumption(&gateway.resumption),
        "sampling": or_off(gateway.sampling.as_ref(), |sampling| {
            json!({ "one_in": sampling.one_in, "per_second": sampling.per_second })
        }),
        "admin": or_off(gateway.admin.as_ref(), |admin| json!({ "address": admin.address.to_string() })),
        "threads": threads(gateway.threads),
        "drain_timeout": time(gateway.drain_timeout),
        "access_log": match &gateway.access_log {
            AccessLog::Off => "off".to_owned(),
            AccessLog::Stdout => "stdout".to_owned(),
            AccessLog::File(path) => path.display().to_string(),
        },
    })
}

fn resumption(resumption: &Resumption) -> Value {
    let mut shown = json!({
        "tickets": match &resumption.tickets {
            TicketKeys::Off => json!("off"),
            TicketKeys::Local => json!("local"),
            TicketKeys::Fleet(_) => json!("fleet"),
            TicketKeys::Files(files, _) => files.iter().map(source).collect(),
        },
        "cache": match &resumption.cache {
            SessionCache::Off => "off".to_owned(),
            SessionCache::Memory => "memory".to_owned(),
            SessionCache::Redis(address, _) => address.to_string(),
        },
        "cache_size": resumption.cache_size,
        "lifetime": time(resumption.lifetime),
        "rotation": time(resumption.rotation),
        "early_data": if resumption.early_data { "on" } else { "off" },
        "lookup_timeout": time(resumption.lookup_timeout),
    });
    put(&mut shown, "fleet_secret", resumption.fleet_secret.as_ref().map(|(secret, _)| source(secret)));
    put(&mut shown, "redis_password", resumption.redis_password.as_ref().map(|(file, _)| source(file)));
    let ca = resumption.redis_ca.as_ref().map(|(ca, _)| ca.display().to_string().into());
    put(&mut shown, "redis_ca", ca);
    shown
}

fn upstream(upstream: &Upstream) -> Value {
    let server =
        |server: &crate::model::Server| json!({ "address": server.address, "weight": server.weight });
    json!({
        "servers": upstream.servers.iter().map(server).collect::<Vec<_>>(),
        "balance": name(upstream.balance),
        "health": or_off(upstream.health.as_ref(), health),
        "tls": or_off(upstream.tls.as_ref(), upstream_tls),
        "protocol": name(upstream.protocol),
        "proxy_protocol": name(upstream.proxy_protocol),
        "retries": upstream.retries,
        "pool": upstream.pool,
        "timeouts": {
            "connect": time(upstream.timeouts.connect),
            "read": time(upstream.timeouts.read),
            "write": time(upstream.timeouts.write),
            "idle": time(upstream.timeouts.idle),
        },
    })
}

fn health(health: &Health) -> Value {
    let mut shown = json!({
        "interval": time(health.interval),
        "timeout": time(health.timeout),
        "healthy": health.healthy,
        "unhealthy": health.unhealthy,
    });
    if let HealthProbe::Http(path) = &health.probe {
        put(&mut shown, "path", Some(path.as_str().into()));
    }
    shown
}

fn upstream_tls(tls: &UpstreamTls) -> Value {
    let mut shown = json!({ "verify": tls.verify });
    put(&mut shown, "server_name", tls.server_name.as_deref().map(Value::from));
    put(&mut shown, "ca", tls.ca.as_ref().map(source));
    shown
}
