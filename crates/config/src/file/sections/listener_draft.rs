//! Values read for a listener, until the listener is complete.

use super::{
    authorization, basic_auth, certificate, compression, error_pages, header_changes, jwt,
    listener_clients::{Clients, restricts_clients},
    listener_http3::Http3Draft,
    listener_limits::ListenerLimits,
    listener_paths::PATHS,
    listener_rules, own_headers, rate_limits, route, route_refused, tls, upgrades,
    written_route::WrittenRoute,
};
use crate::{
    Field, Problem,
    enums::switch,
    model::{
        AccessRules, AccessStep, Action, CertificateSource, ChainMatch, Compression, ErrorPage, HeaderChange,
        Http, Mode, Network, OwnHeaders, Paths, ProxyProtocolIn, RateLimit, RequestRule, Respond,
        RouteAuthorization, RouteBasicAuth, RouteJwt, RouteTable, RuleAction, Serve, Timeouts, Tls,
        TlsPolicy, Upgrades,
    },
};
use std::{net::SocketAddr, sync::Arc};

/// Values read for a listener.
#[derive(Default)]
pub(super) struct ListenerDraft {
    pub(super) address: Option<SocketAddr>,
    pub(super) accepts: ChainMatch,
    pub(super) mode: Mode,
    pub(super) certificates: Vec<Arc<CertificateSource>>,
    pub(super) plain_text: bool,
    pub(super) tls: Option<TlsPolicy>,
    pub(super) routes: Vec<WrittenRoute>,
    pub(super) upstream: Option<String>,
    pub(super) respond: Option<Respond>,
    pub(super) request_headers: Vec<HeaderChange>,
    pub(super) response_headers: Vec<HeaderChange>,
    pub(super) hsts: Option<HeaderChange>,
    pub(super) paths: Paths,
    pub(super) proxy_protocol: ProxyProtocolIn,
    pub(super) http3: Http3Draft,
    pub(super) trusted_proxies: Vec<Network>,
    pub(super) clients: Clients,
    pub(super) rules: Vec<RequestRule>,
    pub(super) rate_limits: Vec<RateLimit>,
    pub(super) basic_auth: RouteBasicAuth,
    pub(super) jwt: RouteJwt,
    pub(super) authorization: RouteAuthorization,
    pub(super) compression: Option<Arc<Compression>>,
    pub(super) error_pages: Vec<ErrorPage>,
    pub(super) upgrades: Upgrades,
    pub(super) abort_on_close: bool,
    pub(super) timeouts: Timeouts,
    pub(super) limits: ListenerLimits,
}

impl ListenerDraft {
    pub(super) fn read_tls(&mut self, field: &Field<'_>) {
        if field.is_scalar() {
            self.plain_text = !field.parse(switch).unwrap_or(true);
        } else {
            self.tls = Some(tls::tls(field, self.mode));
        }
    }

    pub(super) fn read_headers(&mut self, field: &Field<'_>, of: fn(&mut Self) -> &mut Vec<HeaderChange>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no headers", "remove this, or use `mode: http`"));
        }
        *of(self) = header_changes::header_changes(field);
    }

    pub(super) fn read_hsts(&mut self, field: &Field<'_>) {
        self.hsts = field.parse(header_changes::hsts).flatten();
        if self.hsts.is_some() && (self.plain_text || self.mode == Mode::Tcp) {
            field.error(Problem::new(
                "browsers accept it over HTTPS only",
                "set it on the listener with TLS and `mode: http`",
            ));
        }
    }

    pub(super) fn read_rate_limits(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        self.rate_limits = rate_limits::rate_limits(field);
    }

    pub(super) fn read_rules(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        self.rules = listener_rules::rules(field);
    }

    pub(super) fn read_compression(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no responses", "remove this, or use `mode: http`"));
        }
        self.compression = compression::compression(field);
    }

    pub(super) fn read_error_pages(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no responses", "remove this, or use `mode: http`"));
        }
        self.error_pages = error_pages::error_pages(field);
    }

    pub(super) fn read_basic_auth(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        self.basic_auth = basic_auth::basic_auth(field);
        if self.plain_text && matches!(self.basic_auth, RouteBasicAuth::InPlace(_)) {
            field.warn("password without TLS", "clients send their passwords in plain text: `tls` is `off`");
        }
    }

    pub(super) fn read_jwt(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        self.jwt = jwt::jwt(field);
    }

    pub(super) fn read_authorization(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        self.authorization = authorization::authorization(field);
    }

    pub(super) fn read_upgrades(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        let upgrades = upgrades::upgrades(field);
        let is_default = upgrades == Upgrades::only([Upgrades::WEBSOCKET.to_owned()]);
        self.upgrades = if is_default { Upgrades::default() } else { upgrades };
    }

    pub(super) fn read_abort_on_close(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
        }
        field.set(&mut self.abort_on_close, switch);
    }

    /// Returns the name of the listener's limits, and the scope that distinguishes them from those of other
    /// listeners.
    fn names(&self) -> (String, String) {
        let address = self.address.map(|address| address.to_string()).unwrap_or_default();
        let names = self.accepts.server_names.iter().map(|name| format!(" {name}"));
        (names.fold(address.clone(), |all, name| all + &name), format!("{address} {:?}", self.accepts))
    }

    pub(super) fn read_paths(&mut self, field: &Field<'_>) {
        if self.mode == Mode::Tcp {
            field.error(Problem::new("`mode: tcp` has no paths", "remove `paths`, or use `mode: http`"));
        }
        PATHS.read(field, &mut self.paths);
    }

    /// Returns the TLS settings; `None` for plain text.
    pub(super) fn take_tls(&mut self, field: &Field<'_>) -> Option<Tls> {
        if let (true, Some(certificates)) = (self.plain_text, field.entry("certificates")) {
            certificates.error(Problem::new("`tls: off` does not use certificates", "remove one of them"));
        }
        let policy = self.tls.take().unwrap_or_else(|| TlsPolicy::new(self.mode));
        (!self.plain_text).then(|| Tls { certificates: std::mem::take(&mut self.certificates), policy })
    }

    pub(super) fn take_serve(&mut self, field: &Field<'_>) -> Serve {
        if ["routes", "upstream", "respond"].iter().all(|key| field.entry(key).is_none()) {
            field.error(Problem::new(
                "no destination for connections",
                "add `upstream`, `respond` or `routes`",
            ));
        }
        let last = self.take_last_route(field);
        self.routes.extend(last);
        match self.mode {
            Mode::Http => {
                let own_headers = Arc::new(self.own_headers());
                let access = self.take_http_access(field);
                let routes = std::mem::take(&mut self.routes);
                route_refused::refuse_shadowed(field, &routes);
                let response: Vec<_> =
                    self.hsts.take().into_iter().chain(self.response_headers.drain(..)).collect();
                let routes =
                    routes.into_iter().map(|route| route.with_headers(&self.request_headers, &response));
                let (name, scope) = self.names();
                let routes = routes.flat_map(|route| {
                    route
                        .with_limits_of(&name, &scope)
                        .with_compression(self.compression.as_ref())
                        .into_model()
                });
                let http = Http::new(RouteTable::by_weight(routes));
                let limits = self.limits.requests.clone();
                let error_pages = std::mem::take(&mut self.error_pages);
                let response_headers = response;
                Serve::Http(Http {
                    limits,
                    paths: self.paths,
                    access,
                    own_headers,
                    response_headers,
                    error_pages,
                    upgrades: Arc::new(std::mem::take(&mut self.upgrades)),
                    abort_on_close: self.abort_on_close,
                    ..http
                })
            }
            Mode::Tcp => {
                let routes = std::mem::take(&mut self.routes);
                route_refused::refuse_second_target(field, &routes);
                Serve::Tcp(routes.into_iter().flat_map(WrittenRoute::into_shares).collect())
            }
        }
    }

    fn own_headers(&self) -> OwnHeaders {
        let read = own_headers::read_by(&self.rules, &self.rate_limits, &self.routes);
        OwnHeaders { changes: own_headers::own(&read, &self.request_headers, &self.routes), read }
    }

    /// Returns the access rules of connections; with HTTP, access is checked for each request.
    pub(super) fn take_access(&mut self, field: &Field<'_>) -> Vec<AccessRules> {
        match self.mode {
            Mode::Http => Vec::new(),
            Mode::Tcp => self.take_rules(field),
        }
    }

    fn take_http_access(&mut self, field: &Field<'_>) -> Vec<AccessStep> {
        let mut access: Vec<_> = self.take_rules(field).into_iter().map(AccessStep::Rules).collect();
        let (name, scope) = self.names();
        for RequestRule { when, action, place: _ } in &mut self.rules {
            if let RuleAction::Limit(limits) = action {
                rate_limits::name(limits, &format!("{name} rules"), &format!("{scope} {when:?}"));
            }
        }
        if !self.rules.is_empty() {
            access.push(AccessStep::RequestRules(std::mem::take(&mut self.rules)));
        }
        let before = access.len();
        rate_limits::name(&mut self.rate_limits, &name, &scope);
        if !self.rate_limits.is_empty() {
            access.push(AccessStep::RateLimits(std::mem::take(&mut self.rate_limits)));
        }
        let own = match std::mem::take(&mut self.basic_auth) {
            RouteBasicAuth::InPlace(users) => Some(users),
            RouteBasicAuth::OfChain | RouteBasicAuth::Off => None,
        };
        let of_routes =
            self.routes.iter().any(|route| matches!(route.route.basic_auth, RouteBasicAuth::InPlace(_)));
        if own.is_some() || of_routes {
            access.push(AccessStep::BasicAuth(own));
        }
        access.extend(self.take_jwt());
        access.extend(self.take_authorization());
        let restricts_clients = || self.routes.iter().any(|written| restricts_clients(&written.route.access));
        if access.len() > before && restricts_clients() {
            // A client that the route denies is not invited to send a password.
            access.insert(before, AccessStep::RouteClients);
        }
        access
    }

    fn take_jwt(&mut self) -> Option<AccessStep> {
        let in_place = |jwt: &RouteJwt| match jwt {
            RouteJwt::InPlace(tokens) => Some(Arc::clone(tokens)),
            RouteJwt::OfChain | RouteJwt::Off => None,
        };
        let own = in_place(&self.jwt);
        let of_routes: Vec<_> =
            self.routes.iter().filter_map(|written| in_place(&written.route.jwt)).collect();
        let is_used = own.is_some() || !of_routes.is_empty();
        is_used.then_some(AccessStep::RouteJwt { own, of_routes })
    }

    fn take_authorization(&mut self) -> Option<AccessStep> {
        let in_place = |authorization: &RouteAuthorization| match authorization {
            RouteAuthorization::InPlace(server) => Some(Arc::clone(server)),
            RouteAuthorization::OfChain | RouteAuthorization::Off => None,
        };
        let own = in_place(&self.authorization);
        let of_routes: Vec<_> =
            self.routes.iter().filter_map(|written| in_place(&written.route.authorization)).collect();
        let is_used = own.is_some() || !of_routes.is_empty();
        is_used.then_some(AccessStep::RouteAuthorization { own, of_routes })
    }

    fn take_rules(&mut self, field: &Field<'_>) -> Vec<AccessRules> {
        std::mem::take(&mut self.clients).into_rules(&field.at("clients").place())
    }

    /// Returns the catch-all route that `upstream` or `respond` of the listener itself stands for.
    fn take_last_route(&mut self, field: &Field<'_>) -> Option<WrittenRoute> {
        route_refused::refuse_upstream_and_respond(field);
        let (key, action) = match (self.upstream.take(), self.respond.take()) {
            (Some(upstream), _) => ("upstream", route::to_upstream(upstream)),
            (None, Some(respond)) => ("respond", Action::Respond(respond)),
            (None, None) => return None,
        };
        let field = field.at(key);
        if let (Mode::Tcp, Action::Respond(_)) = (self.mode, &action) {
            field.error(route_refused::NO_ANSWERS);
        }
        Some(WrittenRoute::for_everything(action, field.place()))
    }
}

pub(super) fn certificates(field: &Field<'_>) -> Vec<Arc<CertificateSource>> {
    field.items().iter().flat_map(certificate::certificates).map(Arc::new).collect()
}

pub(super) fn networks(field: &Field<'_>) -> Vec<Network> {
    field.items().iter().filter_map(|field| field.parse(str::parse)).collect()
}

pub(super) fn routes(field: &Field<'_>, mode: Mode) -> Vec<WrittenRoute> {
    let route = |field: &Field<'_>| {
        let route = route::route(field)?;
        if mode == Mode::Tcp {
            route_refused::refuse_http(field, &route, route::ROUTE.keys.iter().map(|key| key.name));
        }
        Some(route)
    };
    field.items().iter().filter_map(route).collect()
}
