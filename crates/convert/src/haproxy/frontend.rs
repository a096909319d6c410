//! Frontends, as listeners.

use super::{
    backend::{self, Backend},
    bind::{self, Bind},
    place::{Place, Rules},
    rules,
    section::{Line, Section},
    test::{Lists, alternatives},
    world::{World, duration, sort_out},
};
use crate::{
    draft::{Action, Listener},
    ways::{Change, Conjunction, PathTest, Way, apply, routes},
    yaml::Map,
};

/// Converts a section `frontend` or `listen`.
pub(super) fn convert(section: &Section, world: &World<'_>) {
    let binds = bind::binds(section, world);
    sort_out(section, world);
    let http = section.last(&["mode"]).is_some_and(|line| line.word(1) == "http");
    let is_stats =
        section.lines.iter().any(|line| line.begins(&["stats", "enable"]) || line.begins(&["stats", "uri"]));
    let has_target =
        section.lines.iter().any(|line| ["use_backend", "default_backend", "server"].contains(&line.word(0)));
    if is_stats && !has_target {
        return world
            .refused(&section.line, "metrics and a dashboard are at the `admin` address, on by default");
    }
    world.converted(&section.line);
    logs(section, world);
    let of_bind = |bind| match http {
        true => vec![of_http(section, bind, world)],
        false => of_tcp(section, bind, world),
    };
    let listeners: Vec<_> = binds.iter().flat_map(of_bind).collect();
    world.draft.borrow_mut().listeners.extend(listeners);
}

/// Returns the access lists of a section.
fn lists<'a>(section: &'a Section, world: &World<'_>) -> Lists<'a> {
    let mut lists = Lists::new();
    for line in section.lines.iter().filter(|line| line.word(0) == "acl" && line.words.len() > 2) {
        world.converted(line);
        lists.entry(line.word(1)).or_default().push(line);
    }
    lists
}

/// Sets the access log, which is one for all frontends.
fn logs(section: &Section, world: &World<'_>) {
    for line in section.lines.iter().filter(|line| line.word(0) == "log") {
        world.differs(
            line,
            "the access log goes to standard output, the log of the process to standard error",
        );
    }
    let kinds = [["option", "httplog"], ["option", "tcplog"]];
    for line in section.lines.iter().filter(|line| kinds.iter().any(|kind| line.begins(kind))) {
        world.draft.borrow_mut().top.set("access_log", "stdout");
        world.converted(line);
    }
}

/// Keys of connections: timeouts and limits.
fn connections(section: &Section, keys: &mut Map, http: bool, world: &World<'_>) {
    if let Some(line) = section.last(&["timeout", "client"]) {
        if let Some(time) = duration(line.word(2)) {
            keys.inner("timeouts").set("idle", time);
        }
        world.converted(line);
    }
    if let Some(line) = section.last(&["timeout", "http-request"]) {
        if let Some(time) = duration(line.word(2)).filter(|_| http) {
            keys.inner("timeouts").set("header", time);
        }
        world.converted(line);
    }
    let global = world.global.and_then(|global| global.last(&["maxconn"]));
    if let Some(line) = section.last(&["maxconn"]).or(global) {
        if let Ok(count @ 1..) = line.word(1).parse::<u64>() {
            keys.set("limits", Map::of("connections", count));
        }
        world.converted(line);
    }
}

fn of_http(section: &Section, bind: &Bind, world: &World<'_>) -> Listener {
    let mut listener =
        Listener { address: bind.address.clone(), keys: bind.keys.clone(), ..Listener::default() };
    connections(section, &mut listener.keys, true, world);
    let lists = lists(section, world);
    let mut ways = ways(section, bind, &lists, world);
    let place = Place {
        lists: &lists,
        tls: bind.tls,
        requests_certificates: bind.requests_certificates,
        section,
        of_listener: true,
    };
    tcp_requests(section, &lists, &mut listener.keys, &mut ways, world);
    let made = rules::convert(&place, &mut ways, |_| true, world);
    let mut converted = std::collections::BTreeSet::new();
    let names: Vec<String> = ways.iter().map(|way| way.backend.clone()).collect();
    for name in names.iter().filter(|name| !name.is_empty() && **name != section.name()) {
        if converted.insert(name.clone()) {
            of_backend(name, &place, &mut ways, world);
        }
    }
    names.iter().for_each(|name| set_host(&mut ways, name, &made));
    listener.rules = made.rules;
    for (key, changes) in
        [("request_headers", made.request_headers), ("response_headers", made.response_headers)]
    {
        if !changes.is_empty() {
            listener.keys.set(key, changes);
        }
    }
    compression(section, &mut listener.keys, world);
    listener.routes = routes(&ways);
    if listener.routes.is_empty() {
        // Without a backend, HAProxy responds with 503.
        listener.keys.set("respond", Map::of("status", "503"));
    }
    listener
}

/// Applies the rules of a backend to the ways that lead to it.
fn of_backend(name: &str, place: &Place<'_>, ways: &mut Vec<Way>, world: &World<'_>) {
    let Some(section) = world.backends.get(name) else { return };
    let lists = lists(section, world);
    let place = Place { lists: &lists, section, of_listener: false, ..*place };
    let made = rules::convert(&place, ways, |way| way.backend == name, world);
    set_host(ways, name, &made);
    for way in ways.iter_mut().filter(|way| way.backend == name) {
        for (key, changes) in
            [("request_headers", &made.request_headers), ("response_headers", &made.response_headers)]
        {
            changes.iter().for_each(|change| way.keys.push(key, change.clone()));
        }
        compression(section, &mut way.keys, world);
    }
}

fn set_host(ways: &mut [Way], backend: &str, made: &Rules) {
    let Some(host) = &made.host else { return };
    for way in ways.iter_mut().filter(|way| way.backend == backend) {
        way.keys.set("upstream_host", host);
    }
}

fn compression(section: &Section, keys: &mut Map, world: &World<'_>) {
    let all: Vec<_> = section.lines.iter().filter(|line| line.word(0) == "compression").collect();
    all.iter().for_each(|line| world.converted(line));
    let Some(algorithms) = all.iter().find(|line| line.word(1).starts_with("algo")) else { return };
    if !algorithms.has("gzip") {
        return;
    }
    let mut compression = Map::of("algorithms", vec!["gzip"]);
    if let Some(types) = all.iter().find(|line| line.word(1).starts_with("type")) {
        let types: Vec<_> = types.words[2..].iter().filter(|one| one.contains('/')).cloned().collect();
        if !types.is_empty() {
            compression.set("types", types);
        }
    }
    keys.set("compression", compression);
}

/// Returns the ways to backends, in their order.
fn ways(section: &Section, bind: &Bind, lists: &Lists<'_>, world: &World<'_>) -> Vec<Way> {
    let mut ways = Vec::new();
    if let Some(line) = section.last(&["monitor-uri"])
        && let Ok(path) = quadrille_config::values::path(line.word(1))
    {
        let when = Conjunction { path: Some(PathTest::Exact(path)), ..Conjunction::default() };
        let action = Action::status(200);
        ways.push(Way { when, action, keys: Map::new(), comments: Vec::new(), backend: String::new() });
        world.converted(line);
    }
    for line in section.lines.iter().filter(|line| line.word(0) == "use_backend") {
        let conditions = match line.condition() {
            Some((negated, words)) => alternatives(words, negated, lists, bind.tls),
            None => vec![Conjunction::default()],
        };
        world.converted(line);
        for when in conditions {
            if when.is_of_request() {
                ways.push(way_to(line.word(1), line, when, world));
            } else {
                let part = when.unknown.first().map_or("a condition on the connection", String::as_str);
                world.refused(
                    line,
                    format!("`{part}` is not a condition of a route: write a route with another one"),
                );
            }
        }
    }
    if let Some(line) = section.last(&["default_backend"]) {
        world.converted(line);
        ways.push(way_to(line.word(1), line, Conjunction::default(), world));
    } else if section.lines.iter().any(|line| line.word(0) == "server") {
        ways.push(way_to(section.name(), &section.line, Conjunction::default(), world));
    }
    ways
}

fn way_to(name: &str, line: &Line, when: Conjunction, world: &World<'_>) -> Way {
    let (action, keys, comments) = match target(name, world) {
        Ok(Backend { upstream, route }) => (Action::Upstream(upstream), route, Vec::new()),
        Err(problem) => {
            world.refused(line, format!("{problem}: name an upstream"));
            (
                Action::status(503),
                Map::new(),
                vec![format!("NOT SERVED: {}: {problem}", world.ledger.shown(line.id))],
            )
        }
    };
    Way { when, action, keys, comments, backend: name.to_owned() }
}

fn target(name: &str, world: &World<'_>) -> Result<Backend, String> {
    let section =
        world.backends.get(name).ok_or_else(|| format!("the backend `{name}` is not defined here"))?;
    world.converted(&section.line);
    sort_out(section, world);
    backend::convert(section, world)
}

/// Converts `tcp-request`: clients that are accepted or rejected by address.
fn tcp_requests(
    section: &Section,
    lists: &Lists<'_>,
    keys: &mut Map,
    ways: &mut Vec<Way>,
    world: &World<'_>,
) {
    for line in section.lines.iter().filter(|line| line.word(0) == "tcp-request") {
        let Some(condition) = line.condition() else {
            if !line.has("reject") {
                world.converted(line);
                continue;
            }
            world.refused(line, "every connection is rejected: remove the listener");
            *ways = close(std::mem::take(ways), line, world);
            continue;
        };
        if line.has("accept") {
            world.converted(line);
            continue;
        }
        if !line.has("reject") {
            continue;
        }
        for one in alternatives(condition.1, condition.0, lists, true) {
            let plain = Conjunction { src: None, not_src: Vec::new(), ..one.clone() };
            match (&one.src, &one.not_src[..]) {
                (Some(networks), []) if plain == Conjunction::default() => {
                    let clients = keys.inner("clients");
                    networks.iter().for_each(|network| clients.push("deny", network));
                    world.converted(line);
                }
                (None, networks) if !networks.is_empty() && plain == Conjunction::default() => {
                    keys.inner("clients").set("allow", networks.to_vec());
                    world.converted(line);
                }
                _ => {
                    world.refused(line, "reject clients by address under `clients`, or limit `rate_limits`");
                    *ways = close(std::mem::take(ways), line, world);
                }
            }
        }
    }
}

fn close(ways: Vec<Way>, line: &Line, world: &World<'_>) -> Vec<Way> {
    let change = Change::Close(503, world.ledger.shown(line.id));
    apply(ways, &Conjunction::default(), &change)
}

/// Returns the listeners of a frontend that forwards bytes: one for each SNI that selects a backend.
fn of_tcp(section: &Section, bind: &Bind, world: &World<'_>) -> Vec<Listener> {
    let lists = lists(section, world);
    let mut keys = Map::of("mode", "tcp");
    keys.extend(bind.keys.clone());
    connections(section, &mut keys, false, world);
    let mut closed = vec![Way {
        when: Conjunction::default(),
        action: Action::Upstream(String::new()),
        keys: Map::new(),
        comments: Vec::new(),
        backend: String::new(),
    }];
    tcp_requests(section, &lists, &mut keys, &mut closed, world);
    if closed.iter().any(|way| !way.action.forwards()) {
        world.refused(
            &section.line,
            "CLOSED: a rule that rejects connections has no equivalent: write `clients`",
        );
        return Vec::new();
    }
    let mut listeners = Vec::new();
    let mut add = |names: Vec<String>, name: &str, line: &Line| match target(name, world) {
        Ok(to) => {
            let mut own = keys.clone();
            if !names.is_empty() {
                let mut selected = Map::of("server_names", names);
                if !bind.tls {
                    selected.set("transport", "tls");
                }
                own.set("match", selected);
            }
            own.set("upstream", to.upstream);
            listeners.push(Listener { address: bind.address.clone(), keys: own, ..Listener::default() });
        }
        Err(problem) => world.refused(line, format!("{problem}: name an upstream")),
    };
    for line in section.lines.iter().filter(|line| line.word(0) == "use_backend") {
        let Some((negated, words)) = line.condition() else {
            world.converted(line);
            add(Vec::new(), line.word(1), line);
            continue;
        };
        for one in alternatives(words, negated, &lists, bind.tls) {
            let rest = Conjunction { sni: Vec::new(), ..one.clone() };
            let good = |name: &String| quadrille_config::values::route_host(name).is_ok();
            if !one.sni.is_empty() && rest == Conjunction::default() && one.sni.iter().all(good) {
                world.converted(line);
                add(one.sni, line.word(1), line);
            } else {
                world.refused(line, "select by SNI under `match: { server_names: ... }`");
            }
        }
    }
    if let Some(line) = section.last(&["default_backend"]) {
        world.converted(line);
        add(Vec::new(), line.word(1), line);
    } else if section.lines.iter().any(|line| line.word(0) == "server") {
        add(Vec::new(), section.name(), &section.line);
    }
    listeners
}
