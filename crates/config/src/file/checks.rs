//! Checks of settings that are valid alone, and have no effect or a surprising one beside others.
//!
//! They run after the whole document has been read without mistakes, and compare the tree with the model.

use super::unreachable::{Unreachable, unreachable};
use crate::{
    Field, Problem,
    model::{Balance, Gateway, Server},
};

/// Notes warnings, and mistakes that concern several parts of the document.
pub(super) fn check(root: &Field<'_>, gateway: &Gateway) {
    warn_of_open_admin(root, gateway);
    let listeners = root.entry("listeners").map(|field| field.listed()).unwrap_or_default();
    for listener in &listeners {
        for route in listener.entry("routes").map(|field| field.listed()).unwrap_or_default() {
            warn_of_unused_stickiness(&route, gateway);
            refuse_loop(&route, listener);
        }
    }
    warn_of_other_clients(&listeners);
    warn_of_unreachable_routes(&listeners, gateway);
    let upstreams = root.entry("upstreams").map(|field| field.entries()).unwrap_or_default();
    upstreams.iter().for_each(|(name, field)| warn_of_idle_backups(name, field, gateway));
}

/// Warns of routes that no request can take.
fn warn_of_unreachable_routes(listeners: &[Field<'_>], gateway: &Gateway) {
    let never = unreachable(gateway);
    if never.is_empty() {
        return;
    }
    let routes = listeners.iter().filter_map(|listener| listener.entry("routes"));
    let last = listeners.iter().flat_map(|listener| ["upstream", "respond"].map(|key| listener.entry(key)));
    let all: Vec<_> = routes.flat_map(|routes| routes.listed()).chain(last.flatten()).collect();
    for Unreachable { route, first } in never {
        let Some(field) = all.iter().find(|field| field.path() == &*route.path) else { continue };
        let line = field.line_of(first);
        let message =
            format!("never taken: the route on {line} precedes it, and matches all requests that it matches");
        let remedy = "remove it, or restrict the other one; `quadrille routes explain URL` shows the order";
        field.warn("unreachable route", Problem::new(message, remedy));
    }
}

/// Warns of backup servers of upstreams that do not notice that others fail.
fn warn_of_idle_backups(name: &str, field: &Field<'_>, gateway: &Gateway) {
    let Some(upstream) = gateway.upstreams.get(name) else { return };
    let least = upstream.servers.iter().map(|server| server.priority).min().unwrap_or_default();
    let is_backup = |server: &Server| server.priority > least;
    if upstream.health.is_none()
        && upstream.outlier_detection.is_none()
        && upstream.servers.iter().any(is_backup)
    {
        let message = "its backup servers receive retries only: no failure of the others is detected";
        let remedy = "add `health` or `outlier_detection`";
        field.warn("idle backups", Problem::new(message, remedy));
    }
}

fn warn_of_open_admin(root: &Field<'_>, gateway: &Gateway) {
    let (Some(admin), Some(field)) = (&gateway.admin, root.entry("admin")) else { return };
    // A container has no other address to name: the names of the pages show that it is meant.
    if admin.address.is_some_and(|address| address.ip().is_unspecified()) && admin.hosts.is_empty() {
        let field = field.at("address");
        let message =
            "the dashboard, metrics and configuration are served on all addresses, without a password";
        let remedy =
            "use 127.0.0.1 or an address of a private network, or set `hosts` if only that can reach it";
        field.warn("open admin", Problem::new(message, remedy));
    }
}

/// Warns of `sticky` in front of an upstream that does not hash.
fn warn_of_unused_stickiness(route: &Field<'_>, gateway: &Gateway) {
    let Some(sticky) = route.entry("sticky") else { return };
    let shares = route.entry("split").map(|field| field.listed()).unwrap_or_default();
    let names = shares.iter().chain([route]).filter_map(|share| share.entry("upstream"));
    for name in names.filter_map(|field| field.node().text()) {
        let Some(upstream) = gateway.upstreams.get(name) else { continue };
        if upstream.balance != Balance::Hash {
            let message = format!("ignored: the upstream `{name}` does not have `balance: hash`");
            let remedy = "add `balance: hash` to the upstream, or remove `sticky`";
            sticky.warn(&format!("unused stickiness {name}"), Problem::new(message, remedy));
        }
    }
}

/// Refuses a redirect to HTTPS of requests that arrived by HTTPS: it leads to itself.
fn refuse_loop(route: &Field<'_>, listener: &Field<'_>) {
    let Some(redirect) = route.entry("redirect") else { return };
    let is_plain = listener.entry("certificates").is_none();
    // A condition on a header of a proxy in front may tell HTTP from HTTPS.
    if is_plain || route.entry("headers").is_some() {
        return;
    }
    let scheme = match redirect.is_scalar() {
        true => Some(redirect.clone()),
        false => redirect.entry("scheme"),
    };
    let elsewhere = ["host", "port", "path"].iter().any(|key| redirect.entry(key).is_some());
    if scheme.is_some_and(|scheme| scheme.node().text() == Some("https")) && !elsewhere {
        redirect.error(Problem::new(
            "a loop: requests of this listener already use HTTPS",
            "write this route in a listener with `tls: off`, or add `host` or `path`",
        ));
    }
}

/// Warns of `clients` of a listener that do not restrict another one with the same address and names.
fn warn_of_other_clients(listeners: &[Field<'_>]) {
    let text = |listener: &Field<'_>, key: &str| Some(listener.entry(key)?.node().text()?.to_owned());
    for listener in listeners {
        let Some(clients) = listener.entry("clients") else { continue };
        let names = server_names(listener);
        let is_neighbour = |other: &&Field<'_>| {
            let same = text(other, "address") == text(listener, "address");
            let shared =
                server_names(other) == names || server_names(other).iter().any(|name| names.contains(name));
            same && shared && other.path() != listener.path() && other.entry("clients").is_none()
        };
        for other in listeners.iter().filter(is_neighbour) {
            let line = clients.line_of(&other.place());
            let message = format!(
                "the listener on {line} has the same address and names, and accepts clients that this one denies"
            );
            let remedy = "give both the same `clients`";
            clients.warn(&format!("other clients {}", other.path()), Problem::new(message, remedy));
        }
    }
}

fn server_names(listener: &Field<'_>) -> Vec<String> {
    let names = listener.entry("match").and_then(|field| field.entry("server_names"));
    let names = names.map(|field| field.listed()).unwrap_or_default();
    names.iter().filter_map(|name| Some(name.node().text()?.to_ascii_lowercase())).collect()
}
