//! Classification of mistakes that affect access control.

use quadrille_config::Diagnostic;

/// Returns whether the refused field controls, or may control, access: a filter of connections or of requests, its
/// rules, or the validation of client certificates. The path of the field determines it.
pub fn decides_access(diagnostic: &Diagnostic) -> bool {
    const INSIDE: [&str; 7] = [
        "http_filters[",
        "typed_per_filter_config",
        ".rate_limits[",
        ".typed_config.rules",
        ".typed_config.matcher",
        "validation_context",
        "require_client_certificate",
    ];
    let path: &str = &diagnostic.place.path;
    let is_filter = path.rsplit_once('.').is_some_and(|(_, last)| last.starts_with("filters["));
    is_filter || INSIDE.iter().any(|part| path.contains(part))
}

#[cfg(test)]
mod tests {
    use super::decides_access;
    use quadrille_config::{
        Diagnostic,
        model::{Origin, Place},
    };

    #[test]
    fn by_path() {
        let decides =
            |path: &str| decides_access(&Diagnostic::new(&Place::field(&Origin::Process, 1, path), "x"));
        for path in [
            "filter_chains[0].filters[0]",
            "filter_chains[0].filters[0].typed_config.rules.policies.p.principals[0].metadata",
            "filter_chains[0].filters[0].typed_config.matcher",
            "filter_chains[0].filters[1].typed_config.http_filters[0]",
            "default_filter_chain.filters[1].typed_config.http_filters[0].typed_config.rules.action",
            "virtual_hosts[0].routes[2].typed_per_filter_config.rbac",
            "virtual_hosts[0].rate_limits[1].actions[0].extension",
            "filter_chains[0].transport_socket.typed_config.require_client_certificate",
            "filter_chains[0].transport_socket.typed_config.common_tls_context.validation_context.crl",
        ] {
            assert!(decides(path), "{path}");
        }
        for path in [
            "address.socket_address.address",
            "filter_chains[0].filters[1].typed_config.route_config.virtual_hosts[0].cors",
            "filter_chains[0].filters[1].typed_config.codec_type",
            "filter_chains[0].transport_socket.typed_config.common_tls_context.tls_certificates[0]",
            "listener_filters[0]",
            "",
        ] {
            assert!(!decides(path), "{path}");
        }
    }
}
