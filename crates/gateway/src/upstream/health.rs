//! Active health checks, run by pingora's checkers.

use super::Upstream;
use crate::model::{self, HealthProbe};
use boring::x509::X509;
use pingora_load_balancing::health_check::{HealthCheck, HttpHealthCheck, TcpHealthCheck};
use std::sync::{Arc, Weak};

/// The checker that the model asks for.
pub(super) fn check(
    model: &model::Upstream,
    ca: Option<Arc<Box<[X509]>>>,
) -> Option<Box<dyn HealthCheck + Send + Sync>> {
    let health = model.health.as_ref()?;
    Some(match &health.probe {
        HealthProbe::Tcp => {
            let mut check = TcpHealthCheck::new();
            check.consecutive_success = health.healthy.get();
            check.consecutive_failure = health.unhealthy.get();
            check.peer_template.options.connection_timeout = Some(health.timeout);
            check
        }
        HealthProbe::Http(path) => {
            let host = server_name(model);
            let mut check = HttpHealthCheck::new(&host, model.tls.is_some());
            check.consecutive_success = health.healthy.get();
            check.consecutive_failure = health.unhealthy.get();
            check.req.set_raw_path(path.as_bytes()).ok()?;
            let options = &mut check.peer_template.options;
            options.connection_timeout = Some(health.timeout);
            options.total_connection_timeout = Some(health.timeout);
            options.read_timeout = Some(health.timeout);
            options.ca = ca;
            if model.tls.as_ref().is_some_and(|tls| !tls.verify) {
                options.verify_cert = false;
                options.verify_hostname = false;
            }
            Box::new(check)
        }
    })
}

/// Checks until the upstream is gone, as after a reload.
pub(crate) async fn run(upstream: Weak<Upstream>) {
    loop {
        let interval = match upstream.upgrade() {
            Some(upstream) => {
                let Some(health) = &upstream.model().health else { return };
                upstream.balancer.backends().run_health_check(true).await;
                health.interval
            }
            None => return,
        };
        tokio::time::sleep(interval).await;
    }
}

fn server_name(model: &model::Upstream) -> String {
    let explicit = model.tls.as_ref().and_then(|tls| tls.server_name.clone());
    let first = || {
        model
            .servers
            .first()
            .and_then(|server| server.address.rsplit_once(':'))
            .map(|(host, _)| host.to_owned())
    };
    explicit.or_else(first).unwrap_or_default()
}
