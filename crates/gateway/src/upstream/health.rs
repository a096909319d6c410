//! Active health checks, run by pingora's checkers.

use super::{
    proxy_header::{ProxyHeaderConnector, local_header},
    server::Host,
};
use async_trait::async_trait;
use boring::x509::X509;
use pingora_core::upstreams::peer::PeerOptions;
use pingora_error::{Error, ErrorType, Result};
use pingora_load_balancing::{
    Backend,
    health_check::{HealthCheck, HttpHealthCheck, TcpHealthCheck},
};
use quadrille_config::model::{self, Health, HealthProbe, ProxyProtocolOut};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The checker that the model asks for.
pub(super) fn check(
    model: &model::Upstream,
    ca: Option<&Arc<Box<[X509]>>>,
) -> Option<Box<dyn HealthCheck + Send + Sync>> {
    let health = model.health.clone()?;
    let probe = match &health.probe {
        HealthProbe::Tcp => {
            let mut check = TcpHealthCheck::new();
            check.peer_template.options.connection_timeout = Some(health.timeout);
            Probe::Tcp(check)
        }
        HealthProbe::Http(path) => {
            let (model, path, health, ca) = (model.clone(), path.clone(), health.clone(), ca.cloned());
            Probe::Http {
                make: Box::new(move |host| http(&model, host, &path, &health, ca.as_ref()).map(Arc::new)),
                made: Mutex::default(),
            }
        }
    };
    Some(Box::new(Check { probe, health }))
}

/// All servers' check.
struct Check {
    probe: Probe,
    health: Health,
}

enum Probe {
    Tcp(Box<TcpHealthCheck>),
    /// One for each host name, which the request and the certificate carry.
    Http {
        make: Make,
        made: Mutex<HashMap<Host, Arc<HttpHealthCheck>>>,
    },
}

type Make = Box<dyn Fn(&Host) -> Option<Arc<HttpHealthCheck>> + Send + Sync>;

/// Servers come and go; those that are gone need not be remembered.
const MOST_HOSTS: usize = 1000;

/// The check for a host, made when it is first asked for.
fn check_for_host(
    make: &Make,
    made: &Mutex<HashMap<Host, Arc<HttpHealthCheck>>>,
    host: &Host,
) -> Option<Arc<HttpHealthCheck>> {
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(check) = made.get(host) {
        return Some(Arc::clone(check));
    }
    if made.len() >= MOST_HOSTS {
        made.clear();
    }
    let check = make(host)?;
    made.insert(host.clone(), Arc::clone(&check));
    Some(check)
}

#[async_trait]
impl HealthCheck for Check {
    async fn check(&self, server: &Backend) -> Result<()> {
        match &self.probe {
            Probe::Tcp(check) => check.check(server).await,
            Probe::Http { make, made } => {
                match Host::attached(server).and_then(|host| check_for_host(make, made, host)) {
                    Some(check) => check.check(server).await,
                    None => Error::e_explain(ErrorType::InternalError, "a server without a check"),
                }
            }
        }
    }

    fn health_threshold(&self, success: bool) -> usize {
        if success { self.health.healthy.get() } else { self.health.unhealthy.get() }
    }

    fn backend_summary(&self, server: &Backend) -> String {
        format!("server {}", server.addr)
    }
}

fn http(
    model: &model::Upstream,
    host: &Host,
    path: &str,
    health: &Health,
    ca: Option<&Arc<Box<[X509]>>>,
) -> Option<HttpHealthCheck> {
    let explicit = model.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
    let mut check = HttpHealthCheck::new(explicit.unwrap_or(&host.0), model.tls.is_some());
    check.req.set_raw_path(path.as_bytes()).ok()?;
    let options: &mut PeerOptions = &mut check.peer_template.options;
    options.connection_timeout = Some(health.timeout);
    options.total_connection_timeout = Some(health.timeout);
    options.read_timeout = Some(health.timeout);
    options.ca = ca.cloned();
    if model.tls.as_ref().is_some_and(|tls| !tls.verify) {
        options.verify_cert = false;
        options.verify_hostname = false;
    }
    if model.proxy_protocol != ProxyProtocolOut::Off {
        options.custom_l4 = Some(Arc::new(ProxyHeaderConnector(local_header(model.proxy_protocol))));
    }
    Some(check)
}
