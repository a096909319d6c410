//! Access control and limits of a location. What cannot be expressed closes the route.

use super::{location, scope::Scope, statement::Statement, upstream, world::World};
use crate::{draft::Route, yaml::Map};
use quadrille_draft::variables::Context;
use regex::Regex;

/// Applies `allow`, `deny`, `auth_basic`, `auth_request`, `limit_req` and other guards to a route.
pub(super) fn guard(
    route: &mut Route,
    scope: &Scope<'_>,
    internal: &Internal<'_>,
    context: &Context,
    world: &World<'_>,
) {
    clients(route, scope, world);
    basic_auth(route, scope, world);
    auth_request(route, scope, internal, context, world);
    rate_limits(route, &own_limits(scope), world);
    if let Some(one) = scope.one("satisfy") {
        match one.has("any") {
            true => world.ledger.differs(one.id, "all conditions must hold, not only one of them"),
            false => world.ledger.converted(one.id),
        }
    }
}

/// Locations of the server that may serve subrequests.
pub(super) type Internal<'a> = Vec<(&'a Statement, Scope<'a>)>;

/// Returns the location that serves an internal path: its own path, and its scope. A path that an expression may serve has
/// none, as its location cannot be determined here with certainty.
pub(super) fn internal_location<'a>(path: &str, internal: &Internal<'a>) -> Option<(&'a str, Scope<'a>)> {
    let all = || internal.iter().filter_map(|(one, scope)| Some((location::modifier(one)?, scope)));
    let is_exact =
        |(modifier, text): (&str, &str)| text == path && (modifier == "=" || text.starts_with('@'));
    if let Some(((_, text), scope)) = all().find(|(named, _)| is_exact(*named)) {
        return Some((text, scope.clone()));
    }
    let prefixes =
        all().filter(|((modifier, text), _)| matches!(*modifier, "" | "^~") && path.starts_with(text));
    let ((modifier, text), scope) = prefixes.max_by_key(|((_, text), _)| text.len())?;
    let may_match = |(kind, expression): (&str, &str)| match kind {
        "~" | "~*" => Regex::new(&format!("(?i){expression}")).map_or(true, |regex| regex.is_match(path)),
        _ => false,
    };
    let is_certain = modifier == "^~" || !all().any(|(named, _)| may_match(named));
    is_certain.then(|| (text, scope.clone()))
}

/// Limits of the location itself; those of blocks around it are shared by all locations.
fn own_limits<'a>(scope: &Scope<'a>) -> Vec<&'a Statement> {
    scope.own().iter().filter(|one| one.name == "limit_req").collect()
}

fn clients(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    let rules = scope.any(&["allow", "deny"]);
    let Some(clients) = networks(&rules, world) else {
        if !rules.is_empty() {
            route.close(403, "no client is allowed");
        }
        return;
    };
    if !clients.is_empty() {
        route.keys.set("clients", clients);
    }
}

/// Returns whether a location allows no client.
pub(super) fn denies_all(scope: &Scope<'_>) -> bool {
    let rules = scope.any(&["allow", "deny"]);
    rules.first().is_some_and(|first| first.name == "deny" && first.arg(0) == "all")
}

/// Converts an ordered list of `allow` and `deny` to `clients`, which denies rather than allows where the order cannot
/// be expressed; `None` if no client is allowed.
pub(super) fn networks(rules: &[&Statement], world: &World<'_>) -> Option<Map> {
    let (mut allow, mut deny, mut denied_by_default) = (Vec::<String>::new(), Vec::<String>::new(), false);
    for one in rules {
        world.ledger.converted(one.id);
        let network = one.arg(0);
        if network == "all" {
            denied_by_default = one.name == "deny";
            break;
        }
        let is_usable = probe_network(network);
        if one.name == "allow" && is_usable {
            if !deny.is_empty() {
                world.ledger.differs(one.id, "the `deny` before it also holds inside this network");
            }
            allow.push(network.to_owned());
        } else if one.name == "deny" && is_usable {
            if !allow.is_empty() {
                world.ledger.differs(one.id, "it also holds for networks that are allowed before it");
            }
            deny.push(network.to_owned());
        } else if one.name == "deny" {
            world
                .ledger
                .refused(one.id, "write a network such as 10.0.0.0/8 under `clients`; closed meanwhile");
            return None;
        } else {
            world
                .ledger
                .refused(one.id, "write a network such as 10.0.0.0/8 under `clients: { allow: ... }`");
        }
    }
    let mut clients = Map::new();
    if denied_by_default {
        if allow.is_empty() {
            return None;
        }
        clients.set("allow", allow);
    }
    if !deny.is_empty() {
        clients.set("deny", deny);
    }
    Some(clients)
}

fn probe_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let Ok(address) = address.parse::<std::net::IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}

fn basic_auth(route: &mut Route, scope: &Scope<'_>, world: &World<'_>) {
    let Some(one) = scope.one("auth_basic") else {
        scope.all("auth_basic_user_file").iter().for_each(|one| world.ledger.converted(one.id));
        return;
    };
    let file = scope.one("auth_basic_user_file");
    let users = file.map(|file| file.arg(0)).filter(|path| !path.contains('$') && !path.is_empty());
    if one.arg(0) == "off" {
        world.ledger.converted(one.id);
        file.iter().for_each(|file| world.ledger.converted(file.id));
        return;
    }
    let Some(users) = users else {
        file.iter().for_each(|file| {
            world.ledger.refused(file.id, "name one file under `basic_auth: { users: ... }`");
        });
        world.ledger.refused(one.id, "add the file of users: `basic_auth: { users: ... }`");
        route.close(503, &format!("{}: no file of users", world.ledger.shown(one.id)));
        return;
    };
    let mut auth = Map::of("users", world.file(users));
    match one.arg(0).contains('$') || one.arg(0).is_empty() {
        true => world.ledger.differs(one.id, "the realm is `Restricted`"),
        false => {
            auth.set("realm", one.arg(0));
            world.ledger.converted(one.id);
        }
    }
    // As in nginx, servers receive the password.
    auth.set("authorization", "forward");
    if let Some(file) = file {
        world.ledger.differs(
            file.id,
            "passwords need hashes of bcrypt, SHA-crypt or Argon2: make those of MD5 and SHA-1 again by `htpasswd -B`",
        );
    }
    route.keys.set("basic_auth", auth);
}

fn auth_request(
    route: &mut Route,
    scope: &Scope<'_>,
    internal: &Internal<'_>,
    context: &Context,
    world: &World<'_>,
) {
    let Some(one) = scope.one("auth_request").filter(|one| one.arg(0) != "off") else {
        scope.all("auth_request").iter().for_each(|one| world.ledger.converted(one.id));
        return;
    };
    match authorization(one, scope, internal, context, world) {
        Ok(authorization) => {
            route.keys.set("authorization", authorization);
            world.ledger.converted(one.id);
        }
        Err(problem) => {
            world
                .ledger
                .refused(one.id, format!("{problem}: write `authorization: {{ upstream: ..., path: ... }}`"));
            route.close(503, &format!("{}: {problem}", world.ledger.shown(one.id)));
        }
    }
}

fn authorization(
    one: &Statement,
    scope: &Scope<'_>,
    internal: &Internal<'_>,
    context: &Context,
    world: &World<'_>,
) -> Result<Map, String> {
    let path = one.arg(0);
    let (prefix, place) = internal_location(path, internal).ok_or("its location is not found")?;
    let pass =
        place.own().iter().find(|one| one.name == "proxy_pass").ok_or("its location has no `proxy_pass`")?;
    let to = upstream::destination(pass, &place, context, world)?;
    world.ledger.converted(pass.id);
    // A URI of `proxy_pass` replaces the location's path.
    let path = to.uri.map_or_else(|| path.to_owned(), |uri| format!("{uri}{}", &path[prefix.len()..]));
    let path = quadrille_config::values::path(&path).map_err(|problem| problem.to_string())?;
    let mut authorization = Map::of("upstream", to.upstream).with("path", path);
    let copied = copied_headers(scope, world);
    if !copied.is_empty() {
        authorization.set("copy_headers", copied);
    }
    Ok(authorization)
}

/// Returns the headers of the authorization server that servers receive: `auth_request_set $a $upstream_http_x` with
/// `proxy_set_header X $a`.
fn copied_headers(scope: &Scope<'_>, world: &World<'_>) -> Vec<String> {
    let mut copied = Vec::new();
    for set in scope.all("auth_request_set") {
        let header = set
            .arg(1)
            .trim_start_matches('$')
            .strip_prefix("upstream_http_")
            .map(|name| name.replace('_', "-"));
        let uses = scope.all("proxy_set_header").into_iter().filter(|header| header.arg(1) == set.arg(0));
        let mut is_copied = false;
        for used in uses {
            if header.as_deref().is_some_and(|header| header.eq_ignore_ascii_case(used.arg(0))) {
                copied.push(used.arg(0).to_owned());
                world.ledger.converted(used.id);
                is_copied = true;
            }
        }
        match is_copied {
            true => world.ledger.converted(set.id),
            false => world.ledger.refused(
                set.id,
                "headers keep their names: list those for servers under `copy_headers`, for clients under `client_headers`",
            ),
        }
    }
    copied
}

/// Adds rate limits to a route or the keys of a rule; closes a route whose limit cannot be expressed.
pub(super) fn rate_limits(route: &mut Route, limits: &[&Statement], world: &World<'_>) {
    for one in limits {
        match rate_limit(one, world) {
            Ok(limit) => route.keys.push("rate_limits", limit),
            Err(problem) => {
                world.ledger.refused(one.id, format!("{problem}: write `rate_limits`"));
                route.close(503, &format!("{}: {problem}", world.ledger.shown(one.id)));
            }
        }
    }
}

/// Converts a `limit_req`.
///
/// # Errors
/// If its zone is not known, or its key cannot be expressed.
pub(super) fn rate_limit(one: &Statement, world: &World<'_>) -> Result<Map, String> {
    let zone = one.option("zone").and_then(|zone| world.zones.get(zone)).ok_or("its zone is not defined")?;
    let rate = zone.option("rate").ok_or("its zone has no rate")?;
    let (number, unit) = match (rate.strip_suffix("r/s"), rate.strip_suffix("r/m")) {
        (Some(number), _) => (number, "s"),
        (_, Some(number)) => (number, "m"),
        _ => return Err(format!("`{rate}` is not a rate")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{rate}` is not a rate"))?;
    let burst =
        one.option("burst").map_or(Ok(0), str::parse::<u64>).map_err(|_| "its burst is not a number")?;
    let mut limit = Map::of("rate", format!("{}/{unit}", number.max(1))).with("burst", burst + 1);
    match zone.arg(0).trim_start_matches('$') {
        "binary_remote_addr" | "remote_addr" => {
            limit.set("ipv4_prefix", "32");
            limit.set("ipv6_prefix", "128");
        }
        "server_name" => limit.set("by", "all"),
        key => match key.strip_prefix("http_") {
            Some(name) => limit.set("by", format!("header {}", name.replace('_', "-"))),
            None => return Err(format!("requests are not counted by `${key}`")),
        },
    }
    world.ledger.converted(zone.id);
    match (one.has("nodelay"), burst) {
        (true, _) | (_, 0) => {
            world.ledger.differs(one.id, "excess requests receive 429, and each route counts alone");
        }
        _ => world.ledger.differs(one.id, "requests within `burst` are not delayed; excess ones receive 429"),
    }
    Ok(limit)
}

/// Returns the rules of limits that a server and the blocks around it set for all locations.
pub(super) fn shared_limits<'a>(scope: &Scope<'a>) -> Vec<&'a Statement> {
    scope.all("limit_req")
}
