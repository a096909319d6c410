//! Listeners as the page `/config` shows them.

use super::{
    authorization, basic_auth, connection_match::MATCH, error_pages, jwt, listener_limits::ListenerLimits,
    listener_paths::PATHS, rate_limits, route, upgrades,
};
use crate::{
    file::shown::{if_true, list},
    model::{
        AccessRules, AccessStep, Chain, ChainMatch, Listener, RouteAuthorization, RouteBasicAuth, RouteJwt,
        Serve, TrustedProxies,
    },
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A chain as the file represents it: a separate listener, with the address of others.
pub(super) struct ListenerWithChain {
    /// The listener, without its chains.
    pub(super) listener: Listener,
    pub(super) chain: Chain,
}

impl ListenerWithChain {
    /// Returns the access rules, which include those of `clients`.
    pub(super) fn access(&self) -> Vec<&AccessRules> {
        match &self.chain.serve {
            Serve::Http(http) => http.access.iter().filter_map(AccessStep::rules).collect(),
            Serve::Tcp(_) => self.chain.access.iter().collect(),
        }
    }

    pub(super) fn limits(&self) -> ListenerLimits {
        let requests = self.chain.http().map(|http| http.limits.clone()).unwrap_or_default();
        ListenerLimits { socket: self.listener.limits.clone(), requests, mode: self.chain.mode() }
    }
}

/// Returns null: the key is shown as the last route.
pub(super) fn as_route(_: &ListenerWithChain) -> Value {
    Value::Null
}

pub(super) fn accepts(accepts: &ChainMatch) -> Value {
    if accepts.is_any() { Value::Null } else { MATCH.show(accepts) }
}

/// Shows trusted networks; null for Envoy's form of trust, which a file cannot express.
pub(super) fn networks(trusted: &TrustedProxies) -> Value {
    match trusted {
        TrustedProxies::In(networks) => list(networks.iter().map(|network| network.to_string().into())),
        TrustedProxies::AppendedTo => Value::Null,
    }
}

pub(super) fn paths(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => PATHS.show(&http.paths),
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn routes(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => route::show_table(&http.routes),
        Serve::Tcp(to) => json!([route::show_targets(to)]),
    }
}

pub(super) fn rate_limits(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => {
            let limits: Vec<_> = http.access.iter().flat_map(AccessStep::rate_limits).cloned().collect();
            rate_limits::show(&limits)
        }
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn basic_auth(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => {
            let own = http.access.iter().find_map(AccessStep::basic_auth);
            own.map(|own| basic_auth::show(&RouteBasicAuth::InPlace(Arc::clone(own)))).into()
        }
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn jwt(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => {
            let own = http.access.iter().find_map(|step| match step {
                AccessStep::RouteJwt { own, .. } => own.clone(),
                _ => None,
            });
            own.map(|own| jwt::show(&RouteJwt::InPlace(own))).into()
        }
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn authorization(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => {
            let own = http.access.iter().find_map(|step| match step {
                AccessStep::RouteAuthorization { own, .. } => own.clone(),
                _ => None,
            });
            own.map(|own| authorization::show(&RouteAuthorization::InPlace(own))).into()
        }
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn error_pages(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => error_pages::show(&http.error_pages),
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn upgrades(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => upgrades::show(&http.upgrades),
        Serve::Tcp(_) => Value::Null,
    }
}

pub(super) fn abort_on_close(serve: &Serve) -> Value {
    match serve {
        Serve::Http(http) => if_true(http.abort_on_close),
        Serve::Tcp(_) => Value::Null,
    }
}
