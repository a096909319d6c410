//! Domains of virtual hosts.

use crate::reader::Message;
use quadrille_config::{Problem, model::Domain};

/// Reads the domains of a virtual host.
pub(super) fn domains(host: &Message<'_>) -> Option<Vec<Domain>> {
    let domains = host.list("domains");
    if domains.is_empty() {
        return host.field().fail(Problem::new("`domains` is missing", "write `\"*\"` for all"));
    }
    domains.iter().map(|domain| domain.parse(read_domain)).collect()
}

fn read_domain(text: &str) -> Result<Domain, Problem> {
    let stars = text.matches('*').count();
    if text.is_empty() || stars > 1 || (stars == 1 && !text.starts_with('*') && !text.ends_with('*')) {
        return Err(Problem::new(
            format!("{} is not a domain", quadrille_config::quote(text)),
            "write `example.com`, `*.example.com`, `example.*` or `*`",
        ));
    }
    Ok(Domain::wildcard(text))
}
