//! Settings of the whole process: threads, logs, DNS servers.

use super::{scope::Scope, statement::Statement, world::World};
use crate::{values, yaml::Value};

/// Converts the directives outside of `http` and `stream`.
pub(super) fn convert(statements: &[Statement], world: &World<'_>) {
    for one in statements {
        match one.name.as_str() {
            "http" | "stream" => {}
            "events" => world.convert_all(one),
            "worker_processes" => {
                if let Ok(count @ 1..) = one.arg(0).parse::<u64>() {
                    world.draft.borrow_mut().top.set("threads", count);
                }
                world.ledger.converted(one.id);
            }
            "worker_shutdown_timeout" => {
                if let Some(time) = values::duration(one.arg(0)) {
                    world.draft.borrow_mut().top.set("drain_timeout", time);
                }
                world.ledger.converted(one.id);
            }
            "mail" | "rtmp" => {
                world.refuse_all(one, "this protocol is not served; `mode: tcp` forwards its bytes");
            }
            _ => _ = world.sort_out(std::iter::once(one)),
        }
    }
}

/// Sets the access log, which is one for all servers.
pub(super) fn access_log(scope: &Scope<'_>, world: &World<'_>) {
    for one in scope.everything().filter(|one| one.name == "access_log") {
        let path = match one.arg(0) {
            "off" => {
                world
                    .ledger
                    .differs(one.id, "the access log is one for all requests, and is on or off for all");
                continue;
            }
            "/dev/stdout" => "stdout".to_owned(),
            path if path.starts_with("syslog:") || path.contains('$') || path == "/dev/stderr" => {
                world.ledger.refused(one.id, "write `access_log: stdout`, or the path of a file");
                continue;
            }
            path => world.file(path),
        };
        let mut draft = world.draft.borrow_mut();
        let top = &mut draft.top;
        match top.get("access_log") {
            None => {
                top.set("access_log", path);
                match one.args.len() {
                    1 => world.ledger.converted(one.id),
                    _ => world
                        .ledger
                        .differs(one.id, "write the text of its `log_format` as `format` of `access_log`"),
                }
            }
            Some(known) if *known == Value::from(path.as_str()) => world.ledger.converted(one.id),
            Some(_) => world.ledger.differs(one.id, "the access log is one for all servers"),
        }
    }
}

/// Sets the DNS servers.
pub(super) fn resolver(scope: &Scope<'_>, world: &World<'_>) {
    let Some(one) = scope.one("resolver") else { return };
    let is_address = |text: &&String| {
        let host = text
            .rsplit_once(':')
            .filter(|(host, _)| !host.contains(':'))
            .map_or(text.as_str(), |(host, _)| host);
        host.parse::<std::net::IpAddr>().is_ok()
    };
    let servers: Vec<_> = one.args.iter().filter(is_address).cloned().collect();
    if servers.is_empty() {
        return world.ledger.differs(one.id, "the DNS servers of the system are used");
    }
    world.draft.borrow_mut().top.inner("resolver").set("servers", servers);
    world.ledger.converted(one.id);
}
