//! `http-request` and `http-response` of frontends and backends.

use super::{
    header_rules::{request_header, response_header},
    place::{Place, Rules},
    section::{Line, Section},
    test::alternatives,
    world::World,
};
use crate::{
    ways::{Change, Conjunction, Way, apply},
    yaml::{Map, Value},
};

/// Converts the rules of a section, in their order. Changes concern the ways that `concerns` selects.
pub(super) fn convert(
    place: &Place<'_>,
    ways: &mut Vec<Way>,
    concerns: impl Fn(&Way) -> bool,
    world: &World<'_>,
) -> Rules {
    let mut rules = Rules::default();
    for line in &place.section.lines {
        let kind = line.word(0);
        if !["http-request", "http-response", "http-after-response", "redirect", "reqadd", "block"]
            .contains(&kind)
        {
            continue;
        }
        let conditions = match line.condition() {
            Some((negated, words)) => alternatives(words, negated, place.lists, place.tls),
            None => vec![Conjunction::default()],
        };
        if conditions.is_empty() {
            // The condition never holds here, such as `!{ ssl_fc }` with TLS.
            world.converted(line);
            continue;
        }
        let action: Vec<&str> = line.action().iter().map(String::as_str).collect();
        let mut change = |conjunction: &Conjunction, change: &Change| {
            let one = |way: Way| match concerns(&way) {
                true => apply(vec![way], conjunction, change),
                false => vec![way],
            };
            *ways = std::mem::take(ways).into_iter().flat_map(one).collect();
        };
        match action[..] {
            ["http-request", "deny" | "reject" | "tarpit" | "silent-drop", ..] | ["block", ..] => {
                for conjunction in &conditions {
                    deny(line, conjunction, place, &mut rules, &mut change, world);
                }
            }
            ["http-request", "auth", ..] => {
                for conjunction in &conditions {
                    authenticate(line, conjunction, &mut change, world);
                }
            }
            ["http-request", "redirect", ..] | ["redirect", ..] => {
                redirect(line, &conditions, place, &mut rules, world);
            }
            ["http-request", "return", ..] => respond(line, &conditions, place, &mut rules, world),
            ["http-request", "set-header" | "add-header" | "del-header" | "replace-header", ..] => {
                request_header(line, &conditions, place, &mut rules, world);
            }
            ["http-response" | "http-after-response", "set-header" | "add-header" | "del-header", ..] => {
                response_header(line, place, &mut rules, world);
            }
            ["http-request", track, ..] if track.starts_with("track-sc") => match line.has("src") {
                true => world.converted(line),
                false => world.refused(line, "count by the client or a header: see `rate_limits`"),
            },
            ["http-request", "allow", ..] => {
                world.refused(
                    line,
                    "exceptions are not made: denials that follow hold for these requests, too",
                );
            }
            ["http-request", "set-path" | "replace-path" | "replace-uri" | "set-uri" | "set-query", ..] => {
                world.refused(line, "write `rewrite` in the routes; servers receive the path as it is");
            }
            _ => {}
        }
    }
    rules
}

/// Converts a denial. Parts of the condition that cannot be expressed are left out, so that more is denied.
fn deny(
    line: &Line,
    conjunction: &Conjunction,
    place: &Place<'_>,
    rules: &mut Rules,
    change: &mut impl FnMut(&Conjunction, &Change),
    world: &World<'_>,
) {
    let status = line
        .after("deny_status")
        .or_else(|| line.after("status"))
        .and_then(|status| status.parse::<u16>().ok());
    let status = status.filter(|status| (400..=599).contains(status)).unwrap_or(403);
    let Conjunction { src, not_src, not_methods, certificate, users, above, sni, unknown, .. } = conjunction;
    let specials = [
        src.is_some(),
        !not_src.is_empty(),
        !not_methods.is_empty(),
        certificate.is_some(),
        users.is_some(),
        above.is_some(),
    ];
    if !unknown.is_empty() || !sni.is_empty() || specials.iter().filter(|special| **special).count() > 1 {
        let part = unknown.first().map_or("several conditions on the client", String::as_str);
        world.refused(line, format!("`{part}` has no equivalent: write a rule or `clients`"));
        change(conjunction, &Change::Close(503, format!("{}: {part}", world.ledger.shown(line.id))));
        return;
    }
    if let Some(networks) = src {
        change(conjunction, &Change::Deny(networks.clone()));
    } else if !not_src.is_empty() {
        change(conjunction, &Change::Allow(not_src.clone()));
    } else if !not_methods.is_empty() {
        change(conjunction, &Change::Methods(not_methods.clone(), status));
    } else if let Some(has) = certificate {
        match (has, place.requests_certificates) {
            (false, true) => change(conjunction, &Change::Keys(Map::of("client_auth", "required"))),
            _ => change(
                conjunction,
                &Change::Close(403, format!("{}: client certificates", world.ledger.shown(line.id))),
            ),
        }
    } else if let Some((list, has)) = users {
        match (has, basic_auth(list, None, world)) {
            (false, Ok(auth)) => change(conjunction, &Change::Keys(Map::of("basic_auth", auth))),
            _ => change(conjunction, &Change::Close(503, format!("{}: users", world.ledger.shown(line.id)))),
        }
    } else if let Some(number) = above {
        match rate(*number, place.section, world) {
            Ok(limit) if place.of_listener => {
                rules
                    .rules
                    .push(Map::of("when", conjunction.when()).with("rate_limits", vec![Value::Map(limit)]));
            }
            Ok(limit) => change(conjunction, &Change::Limit(limit)),
            Err(problem) => {
                world.refused(line, format!("{problem}: write `rate_limits`"));
                change(
                    conjunction,
                    &Change::Close(503, format!("{}: {problem}", world.ledger.shown(line.id))),
                );
                return;
            }
        }
        world.differs(line, "excess requests receive 429, and capacity returns evenly");
        return;
    } else if place.of_listener {
        rules.rules.push(Map::of("when", conjunction.when()).with("deny", u64::from(status)));
    } else {
        change(conjunction, &Change::Close(status, format!("denied by {}", world.ledger.shown(line.id))));
    }
    world.converted(line);
}

/// Returns the limit for a number of requests in the period of the stick table.
fn rate(number: u64, section: &Section, world: &World<'_>) -> Result<Map, String> {
    let find = |section: &Section| {
        let table = section.lines.iter().find(|line| line.begins(&["stick-table"]))?;
        let rate = table.words.iter().find_map(|word| word.split("http_req_rate(").nth(1))?;
        Some(rate.split(')').next().unwrap_or_default().to_owned())
    };
    // Counters may be in the table of another section.
    let period = find(section).or_else(|| world.backends.values().find_map(|section| find(section)));
    let period =
        period.and_then(|period| super::world::duration(&period)).ok_or("no stick table counts requests")?;
    let number = number.max(1);
    Ok(Map::of("rate", format!("{number}/{period}")).with("ipv4_prefix", "32").with("ipv6_prefix", "128"))
}

fn authenticate(
    line: &Line,
    conjunction: &Conjunction,
    change: &mut impl FnMut(&Conjunction, &Change),
    world: &World<'_>,
) {
    let list = match &conjunction.users {
        Some((list, false)) => Some(list.clone()),
        _ => None,
    };
    let rest = Conjunction { users: None, ..conjunction.clone() };
    let auth = match (&list, rest.is_of_request()) {
        (Some(list), true) => basic_auth(list, line.after("realm"), world),
        _ => Err("only `unless { http_auth(LIST) }` has an equivalent".to_owned()),
    };
    match auth {
        Ok(auth) => {
            change(&rest, &Change::Keys(Map::of("basic_auth", auth)));
            world.converted(line);
        }
        Err(problem) => {
            world.refused(line, format!("{problem}: write `basic_auth`"));
            change(&rest, &Change::Close(503, format!("{}: {problem}", world.ledger.shown(line.id))));
        }
    }
}

/// Returns `basic_auth` with the users of a list.
fn basic_auth(list: &str, realm: Option<&str>, world: &World<'_>) -> Result<Map, String> {
    let list = world.users.get(list).ok_or_else(|| format!("the list of users `{list}` is not defined"))?;
    let mut users = Vec::new();
    for line in list.lines.iter().filter(|line| line.word(0) == "user") {
        let hash = line.after("password").unwrap_or_default();
        let is_slow = ["$5$", "$6$", "$2y$", "$2b$", "$argon2"].iter().any(|kind| hash.starts_with(kind));
        match is_slow && !line.word(1).contains(':') {
            true => {
                users.push(format!("{}:{hash}", line.word(1)));
                world.converted(line);
            }
            false => world.refused(line, "make a hash by `htpasswd -nB NAME`, and add it to `users`"),
        }
    }
    world.ledger.converted(list.line.id);
    if users.is_empty() {
        return Err("no user has a hash of bcrypt, SHA-crypt or Argon2".to_owned());
    }
    let mut auth = Map::of("users", format!("{}\n", users.join("\n")));
    if let Some(realm) = realm.filter(|realm| !realm.is_empty()) {
        auth.set("realm", realm);
    }
    auth.set("authorization", "forward");
    Ok(auth)
}

fn redirect(
    line: &Line,
    conditions: &[Conjunction],
    place: &Place<'_>,
    rules: &mut Rules,
    world: &World<'_>,
) {
    let code = line.after("code").unwrap_or("302");
    let code = if ["301", "302", "303", "307", "308"].contains(&code) { code } else { "302" };
    let target = if let Some(scheme) = line.after("scheme") {
        Ok(Map::of("scheme", scheme)).map(|map| if place.tls { map.with("host", "{host}") } else { map })
    } else if let Some(prefix) = line.after("prefix") {
        url(prefix, true)
    } else if let Some(location) = line.after("location") {
        url(location, false)
    } else {
        Err("its kind is not known".to_owned())
    };
    let target = target.map(|map| if code == "301" { map } else { map.with("status", code) });
    let usable = conditions.iter().all(Conjunction::is_of_request) && place.of_listener;
    match target {
        Ok(target) if usable => {
            for conjunction in conditions {
                rules.rules.push(Map::of("when", conjunction.when()).with("redirect", target.clone()));
            }
            world.converted(line);
        }
        Ok(_) => world.refused(line, "write a route or a rule with `redirect`"),
        Err(problem) => world.refused(line, format!("{problem}: write a rule with `redirect`")),
    }
}

/// Returns the redirect to a URL; a prefix is followed by the request's path and query.
fn url(text: &str, is_prefix: bool) -> Result<Map, String> {
    if text.contains("%[") || text.contains('%') && !text.contains("%2") {
        return Err(format!("`{text}` has variables"));
    }
    let mut map = Map::new();
    let rest = match text.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => {
            map.set("scheme", scheme);
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let (host, port) =
                authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
            map.set("host", quadrille_config::values::host(host).map_err(|problem| problem.to_string())?);
            if let Some(port) = port {
                quadrille_config::values::port(port).map_err(|problem| problem.to_string())?;
                map.set("port", port);
            }
            path
        }
        Some(_) => return Err(format!("`{text}` is not a URL of HTTP")),
        None => text,
    };
    let path = quadrille_config::values::path(if rest.is_empty() { "/" } else { rest })
        .map_err(|problem| problem.to_string())?;
    let path = path.replace('{', "{{");
    match (is_prefix, path.as_str()) {
        (true, "/") if map.is_empty() => return Err("it leads to the same URL".to_owned()),
        (true, "/") => {}
        (true, _) => map.set("path", format!("{}{{path}}", path.trim_end_matches('/'))),
        (false, _) => {
            map.set("path", path);
            map.set("strip_query", "on");
        }
    }
    Ok(map)
}

fn respond(line: &Line, conditions: &[Conjunction], place: &Place<'_>, rules: &mut Rules, world: &World<'_>) {
    let status = line.after("status").unwrap_or("200");
    let text = line.after("string").unwrap_or_default();
    let is_usable = quadrille_config::values::status(status).is_ok()
        && ["lf-string", "file", "lf-file", "errorfile", "hdr"].iter().all(|word| !line.has(word))
        && conditions.iter().all(Conjunction::is_of_request)
        && place.of_listener;
    if !is_usable {
        return world.refused(line, "write a rule or a route with `respond`");
    }
    let mut respond = Map::of("status", status);
    if let Some(kind) =
        line.after("content-type").filter(|kind| quadrille_config::values::header_value(kind).is_ok())
    {
        respond.set("content_type", kind);
    }
    if !text.is_empty() {
        respond.set("body", text);
    }
    for conjunction in conditions {
        rules.rules.push(Map::of("when", conjunction.when()).with("respond", respond.clone()));
    }
    world.converted(line);
}
