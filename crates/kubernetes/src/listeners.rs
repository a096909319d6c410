//! Listeners: one for HTTP, one for HTTPS, and one for each host with TLS settings of its own.

use crate::{
    annotation::{redirect, text::list},
    backend::{self, Servers},
    location::{self, Routes, with_conditions},
    selection::{self, Step},
    site::{Site, Source},
    tls,
    validity::{is_valid_listener, is_valid_top},
    world::World,
};
use quadrille_draft::{
    draft::{Action, Listener, Path, Route},
    tls_lists::{self, Added},
    yaml::{Map, Value},
};

/// Builds the listeners of all hosts.
pub(crate) struct Builder<'b, 'w, 'o> {
    pub(crate) world: &'w World<'o>,
    pub(crate) sources: &'b [Source<'w, 'o>],
    pub(crate) sites: &'b [Site<'o>],
}

impl Builder<'_, '_, '_> {
    /// Returns the listeners.
    pub(crate) fn listeners(&self) -> Vec<Listener> {
        let mut plain = self.listener(&self.world.options.http);
        plain.keys.set("tls", "off");
        let mut secure = self.listener(&self.world.options.https);
        secure.keys.extend(self.tls());
        let mut own = Vec::new();
        let mut certificates = self.default_certificate().into_iter().collect::<Vec<_>>();
        for site in self.sites {
            let routes = self.routes(site);
            plain.routes.extend(routes.plain);
            if let Some(listener) = self.passthrough(site) {
                own.push(listener);
                continue;
            }
            let certificate = self.certificate(site);
            if site.client_auth.is_some() || site.ciphers.is_some() {
                // A connection for another host must not reach this one.
                secure.routes.push(self.misdirected(site));
                own.extend(self.own_listener(site, certificate, routes.secure));
            } else {
                certificates.extend(certificate.filter(|one| !certificates.contains(one)));
                secure.routes.extend(routes.secure);
            }
        }
        if !self.sites.iter().any(|site| site.host.is_empty()) {
            for listener in [&mut plain, &mut secure] {
                listener.routes.push(Route::new(Path::Prefix(String::new()), Action::status(404)));
            }
        }
        let mut listeners = vec![plain];
        let covered = self.covered();
        if !covered.is_empty() && !certificates.is_empty() {
            let mut named = secure.clone();
            named.keys.set("match", Map::of("server_names", covered));
            named.keys.set("certificates", certificates.clone());
            listeners.push(named);
        }
        if !certificates.is_empty() {
            secure.keys.set("certificates", certificates);
            listeners.push(secure);
        }
        listeners.extend(own);
        listeners
    }

    /// Returns a listener with the settings of the ConfigMap.
    fn listener(&self, address: &str) -> Listener {
        let globals = &self.world.globals;
        let mut listener = Listener { address: address.to_owned(), ..Listener::default() };
        for (name, value) in
            [("X-Forwarded-Scheme", "{scheme}"), ("X-Scheme", "{scheme}"), ("X-Real-IP", "{client_ip}")]
        {
            listener.keys.push("request_headers", Map::of("set", name).with("value", value));
        }
        // HTTPoxy: CGI programs take `Proxy` for an environment variable.
        listener.keys.push("request_headers", Map::of("remove", "Proxy"));
        if globals.flag("use-forwarded-headers", false) || globals.flag("enable-real-ip", false) {
            let networks = match globals.get("proxy-real-ip-cidr") {
                Some(networks) => list(networks).collect(),
                None => vec!["0.0.0.0/0", "::/0"],
            };
            self.put(&mut listener.keys, "proxy-real-ip-cidr", Map::of("trusted_proxies", networks));
        }
        if globals.flag("use-proxy-protocol", false) {
            listener.keys.set("proxy_protocol", "required");
        }
        if let Some(networks) = globals.get("block-cidrs") {
            let clients = Map::of("deny", list(networks).collect::<Vec<_>>());
            self.put(&mut listener.keys, "block-cidrs", Map::of("clients", clients));
        }
        let keys = &mut listener.keys;
        for (name, key) in [("keep-alive", "idle"), ("client-header-timeout", "header")] {
            if let Some(time) = globals.get(name).and_then(quadrille_draft::values::duration) {
                keys.inner("timeouts").set(key, time);
            }
        }
        for (name, value) in self.world.named_map("add-headers") {
            let context = quadrille_draft::variables::Context::default();
            match quadrille_draft::variables::header_value(&value, &context) {
                Ok(value) if quadrille_draft::values::is_changeable(&name) => {
                    keys.push("response_headers", Map::of("set", name).with("value", value));
                }
                _ => self.world.refuse_global("add-headers", "one of its headers cannot be set"),
            }
        }
        for name in globals.get("hide-headers").map(list).into_iter().flatten() {
            if quadrille_draft::values::is_changeable(name) {
                keys.push("response_headers", Map::of("remove", name));
            }
        }
        if let Some(compression) = self.compression() {
            self.put(&mut listener.keys, "gzip-types", Map::of("compression", compression));
        }
        listener
    }

    /// Adds a key of listeners; one that the configuration cannot have is a remark on the ConfigMap's key.
    fn put(&self, keys: &mut Map, name: &str, added: Map) {
        match is_valid_listener(&added) {
            true => keys.extend(added),
            false => self.world.refuse_global(name, "its value cannot be used: correct it"),
        }
    }

    fn compression(&self) -> Option<Map> {
        let globals = &self.world.globals;
        let mut algorithms = Vec::new();
        for (name, algorithm) in [("enable-brotli", "br"), ("use-gzip", "gzip")] {
            if globals.flag(name, false) {
                algorithms.push(algorithm);
            }
        }
        let first = if globals.flag("enable-brotli", false) { "brotli" } else { "gzip" };
        let mut compression = Map::of("algorithms", algorithms.clone());
        if let Some(types) = globals.get(&format!("{first}-types")).filter(|types| !types.contains('*')) {
            compression.set("types", types.split_whitespace().collect::<Vec<_>>());
        }
        if let Some(minimum) =
            globals.get(&format!("{first}-min-length")).and_then(quadrille_draft::values::bytes)
        {
            compression.set("minimum", minimum.max(1));
        }
        (!algorithms.is_empty()).then_some(compression)
    }

    /// Returns keys of listeners for HTTPS.
    fn tls(&self) -> Map {
        let globals = &self.world.globals;
        let mut keys = Map::new();
        let mut settings = Map::new();
        if let Some(versions) = globals.get("ssl-protocols") {
            match tls::versions(versions) {
                Some(range) => settings.extend(range),
                None => self
                    .world
                    .refuse_global("ssl-protocols", "write some of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3"),
            }
        }
        if let Some(suites) = globals.get("ssl-ciphers")
            && tls_lists::add(suites, "cipher_suites", &mut settings) == Added::Nothing
        {
            self.world.refuse_global(
                "ssl-ciphers",
                "none of its suites exists here: the default suites are offered",
            );
        }
        if !settings.is_empty() {
            keys.set("tls", settings);
        }
        if globals.flag("hsts", true) {
            let mut value = format!("max-age={}", globals.get("hsts-max-age").unwrap_or("31536000"));
            if globals.flag("hsts-include-subdomains", true) {
                value.push_str("; includeSubDomains");
            }
            if globals.flag("hsts-preload", false) {
                value.push_str("; preload");
            }
            let change = Map::of("set", "Strict-Transport-Security").with("value", value);
            keys.push("response_headers", change);
        }
        keys
    }

    /// Returns the routes of a host: with a copy of each expression that precedes one with conditions, because more
    /// conditions precede fewer.
    fn routes(&self, site: &Site<'_>) -> Routes {
        let hosts: Vec<String> = match site.host.is_empty() {
            true => Vec::new(),
            false => std::iter::once(&site.host).chain(&site.aliases).cloned().collect(),
        };
        let mut routes = Routes { secure: Vec::new(), plain: Vec::new() };
        let mut earlier: Vec<Routes> = Vec::new();
        if let Some(root) = self.root(site) {
            routes.secure.push(root.clone());
            routes.plain.push(root);
        }
        for step in selection::steps(site, self.sources) {
            let made = self.of_step(site, &step);
            if matches!(step.path, Path::Regex(_)) {
                for conditional in made.secure.iter().filter(|one| !one.conditions.is_empty()) {
                    for before in &earlier {
                        let copy = |route: &Route| with_conditions(route, &conditional.conditions);
                        routes.secure.extend(before.secure.iter().map(copy));
                        routes.plain.extend(before.plain.iter().map(copy));
                    }
                }
            }
            if let Some(bare) = &step.without_slash {
                let redirect = Action::Redirect(Map::of("path", format!("{bare}/")));
                let route = Route::new(Path::Exact(bare.clone()), redirect);
                routes.secure.push(route.clone());
                routes.plain.push(route);
            }
            routes.secure.extend(made.secure.iter().cloned());
            routes.plain.extend(made.plain.iter().cloned());
            if matches!(step.path, Path::Regex(_)) {
                earlier.push(made);
            }
        }
        let fallback = self.fallback(site);
        routes.secure.extend(fallback.secure);
        routes.plain.extend(fallback.plain);
        for route in routes.secure.iter_mut().chain(&mut routes.plain) {
            route.hosts.clone_from(&hosts);
        }
        for (other, redirect) in &site.redirected {
            let mut route = Route::new(Path::Prefix(String::new()), Action::Redirect(redirect.clone()));
            route.hosts = vec![other.clone()];
            routes.secure.push(route.clone());
            routes.plain.push(route);
        }
        routes
    }

    fn of_step(&self, site: &Site<'_>, step: &Step) -> Routes {
        let location = &site.locations[step.location];
        let mut made = location::routes(site, location, step.path.clone(), self.sources);
        if let Some(problem) = &step.closed {
            let meta = &self.sources[location.source].ingress.meta;
            let setting = format!("path {}{}", site.host, location.path);
            self.world.refuse(
                meta,
                &setting,
                format!("{problem}; paths that it may match respond with 503 meanwhile"),
            );
            for route in made.secure.iter_mut().chain(&mut made.plain) {
                route.action = Action::status(503);
                route.comment(format!("CLOSED: {}: {problem}", location.path));
            }
        }
        made
    }

    /// Returns the redirect of a host's root.
    fn root(&self, site: &Site<'_>) -> Option<Route> {
        let location = site.locations.iter().find(|one| one.path == "/")?;
        redirect::root(&self.sources[location.source].annotations)
    }

    /// Returns the routes of paths that no location matches.
    fn fallback(&self, site: &Site<'_>) -> Routes {
        let root = Path::Prefix(String::new());
        match site.fallback {
            Some((source, backend)) => {
                let location = crate::site::Location {
                    source,
                    path: "/",
                    kind: crate::object::PathType::Prefix,
                    backend,
                    canary: None,
                };
                location::routes(site, &location, root, self.sources)
            }
            None => {
                let route = Route::new(root, Action::status(404));
                Routes { secure: vec![route.clone()], plain: vec![route] }
            }
        }
    }

    fn hosts(site: &Site<'_>) -> Vec<String> {
        let others = site.redirected.iter().map(|(other, _)| other);
        std::iter::once(&site.host).chain(&site.aliases).chain(others).cloned().collect()
    }

    /// Returns the route of a host on connections for other hosts.
    fn misdirected(&self, site: &Site<'_>) -> Route {
        let mut route = Route::new(Path::Prefix(String::new()), Action::status(421));
        if !site.host.is_empty() {
            route.hosts = Self::hosts(site);
        }
        route.comment("a connection for another host: this one has TLS settings of its own");
        route
    }

    /// Returns the hosts that a wildcard with a listener of its own would take from the listener of all others.
    fn covered(&self) -> Vec<String> {
        let is_own = |site: &&Site<'_>| {
            site.client_auth.is_some() || site.ciphers.is_some() || site.passthrough.is_some()
        };
        let (own, others): (Vec<_>, Vec<_>) = self.sites.iter().partition(is_own);
        let wildcards: Vec<String> =
            own.iter().flat_map(|site| Self::hosts(site)).filter(|host| host.starts_with("*.")).collect();
        let is_covered = |host: &String| wildcards.iter().any(|wildcard| host.ends_with(&wildcard[1..]));
        others.iter().flat_map(|site| Self::hosts(site)).filter(is_covered).collect()
    }

    fn own_listener(
        &self,
        site: &Site<'_>,
        certificate: Option<Map>,
        routes: Vec<Route>,
    ) -> Option<Listener> {
        if site.host.is_empty() {
            let first = site.locations.first().map(|one| one.source);
            let source = first.or(site.fallback.map(|(source, _)| source))?;
            let meta = &self.sources[source].ingress.meta;
            let text =
                "client certificates and suites need a rule with a host: HTTPS responds with 421 meanwhile";
            self.world.refuse(meta, "tls", text);
            return None;
        }
        let certificate = certificate.or_else(|| self.default_certificate())?;
        let mut listener = self.listener(&self.world.options.https);
        let mut keys = self.tls();
        let settings = keys.inner("tls");
        if let Some(auth) = &site.client_auth
            && auth.closed.is_none()
        {
            settings.set("client_auth", auth.tls.clone());
        }
        if let Some((source, suites)) = site.ciphers {
            let annotations = &self.sources[source].annotations;
            let words = suites.split(':').filter(|word| !word.starts_with(['!', '+', '-']));
            match tls_lists::add_all(words, "cipher_suites", settings) {
                Added::All | Added::Without(0) => annotations.works("ssl-ciphers"),
                Added::Without(count) => {
                    annotations.differ("ssl-ciphers", format!("{count} of its suites do not exist here"));
                }
                Added::Nothing => annotations
                    .differ("ssl-ciphers", "none of its suites exists here: the default suites are offered"),
            }
        }
        if settings.is_empty() {
            keys.remove("tls");
        }
        listener.keys.extend(keys);
        listener.keys.set("match", Map::of("server_names", Self::hosts(site)));
        listener.keys.set("certificates", vec![certificate]);
        listener.routes = routes;
        listener.routes.push(Route::new(Path::Prefix(String::new()), Action::status(421)));
        Some(listener)
    }

    /// Returns the listener of a host whose connections are not decrypted.
    fn passthrough(&self, site: &Site<'_>) -> Option<Listener> {
        let (source, to) = site.passthrough?;
        let annotations = &self.sources[source].annotations;
        let namespace = &annotations.meta.namespace;
        let Servers::At(servers) = backend::servers(self.world, namespace, to, false) else {
            annotations.refuse("ssl-passthrough", "the Service has no servers: connections are closed");
            return None;
        };
        let name = format!("{namespace}-{}-tls", to.service);
        let name = self.world.draft.borrow_mut().upstream(&name, Map::of("servers", servers));
        let mut listener = Listener { address: self.world.options.https.clone(), ..Listener::default() };
        let mut matched = Map::of("server_names", Self::hosts(site));
        matched.set("transport", "tls");
        listener.keys.set("match", matched);
        listener.keys.set("mode", "tcp");
        listener.keys.set("tls", "off");
        if let Some(value) = self.listener("").keys.get("proxy_protocol") {
            listener.keys.set("proxy_protocol", value.clone());
        }
        listener.keys.set("upstream", name);
        annotations.works("ssl-passthrough");
        Some(listener)
    }

    /// Returns the certificate of a host; one that cannot be used is noted.
    fn certificate(&self, site: &Site<'_>) -> Option<Map> {
        let (source, namespace, name) = site.certificate.as_ref()?;
        let meta = &self.sources[*source].ingress.meta;
        let setting = format!("tls {}", site.host);
        let Some(secret) = self.world.objects.secret(namespace, name) else {
            let text = format!(
                "the Secret {namespace}/{name} {}; HTTPS is not served meanwhile",
                self.world.objects.missing()
            );
            self.world.refuse(meta, &setting, text);
            return None;
        };
        match tls::certificate_of(secret, self.world.options) {
            Ok(certificate) => Some(certificate),
            Err(problem) => {
                let text = format!("Secret {namespace}/{name}: {problem}; HTTPS is not served meanwhile");
                self.world.refuse(meta, &setting, text);
                None
            }
        }
    }

    fn default_certificate(&self) -> Option<Map> {
        let (namespace, name) = self.world.options.default_certificate.as_deref()?.split_once('/')?;
        let secret = self.world.objects.secret(namespace, name)?;
        tls::certificate_of(secret, self.world.options).ok()
    }
}

/// Returns other keys of the configuration's top level.
pub(crate) fn top(world: &World<'_>) -> Map {
    let globals = &world.globals;
    let mut top = Map::new();
    if !globals.flag("disable-access-log", false) {
        top.set("access_log", "stdout");
    }
    if globals.flag("generate-request-id", true) {
        top.set("request_ids", "on");
    }
    if let Some(host) =
        globals.get("otlp-collector-host").filter(|_| globals.flag("enable-opentelemetry", false))
    {
        let port = globals.get("otlp-collector-port").unwrap_or("4317");
        let mut tracing = Map::of("endpoint", format!("http://{host}:{port}"));
        if let Some(ratio) = globals.get("otel-sampler-ratio").and_then(|text| text.parse::<f64>().ok()) {
            tracing.set("percent", (ratio * 100.0).clamp(0.01, 100.0).to_string());
        }
        if let Some(service) = globals.get("otel-service-name") {
            tracing.set("service", service);
        }
        let trusts = globals.flag("opentelemetry-trust-incoming-span", true);
        tracing.set("parents", if trusts { "all" } else { "off" });
        let tracing = Map::of("tracing", Value::Map(tracing));
        match is_valid_top(&tracing) {
            true => top.extend(tracing),
            false => {
                world.refuse_global("otlp-collector-host", "no endpoint can be made of it: set `tracing`");
            }
        }
    }
    top
}
