//! What came of control planes, under Envoy's names, out of the gateway's metrics.

use super::statistics::Sample;

/// The services with the prefix of their statistics. Envoy counts those of routes, endpoints and secrets for each name; here
/// they are counted together.
const SERVICES: [(&str, &str); 5] = [
    ("lds", "listener_manager.lds"),
    ("cds", "cluster_manager.cds"),
    ("eds", "eds"),
    ("rds", "rds"),
    ("sds", "sds"),
];

/// Of the services that something has been heard of.
pub(super) fn samples(metrics: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (service, prefix) in SERVICES {
        let label = format!("service=\"{service}\"");
        let of = |metric: &str, result: &str| {
            let fits = |line: &&str| {
                line.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{'))
                    && line.contains(&label)
                    && line.contains(result)
            };
            let line = metrics.lines().find(fits)?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        let values = [
            ("update_success", of("quadrille_xds_updates_total", "result=\"success\""), false),
            ("update_rejected", of("quadrille_xds_updates_total", "result=\"rejected\""), false),
            ("update_failure", of("quadrille_xds_failures_total", ""), false),
            ("control_plane.connected_state", of("quadrille_xds_connected", ""), true),
        ];
        if values.iter().all(|(_, value, _)| value.is_none()) {
            continue;
        }
        samples.extend(values.into_iter().map(|(name, value, gauge)| Sample {
            name: format!("{prefix}.{name}"),
            family: format!("envoy_{}_{}", prefix.replace('.', "_"), name.replace('.', "_")),
            labels: Vec::new(),
            value: value.unwrap_or_default() as u64,
            gauge,
        }));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_envoys_names() {
        let metrics = "quadrille_xds_updates_total{service=\"lds\",result=\"success\"} 3\n\
                       quadrille_xds_updates_total{service=\"lds\",result=\"rejected\"} 1\n\
                       quadrille_xds_connected{service=\"lds\"} 1\n";
        let samples = samples(metrics);
        let found: Vec<_> = samples.iter().map(|sample| (sample.name.as_str(), sample.value)).collect();
        let expected = [
            ("listener_manager.lds.update_success", 3),
            ("listener_manager.lds.update_rejected", 1),
            ("listener_manager.lds.update_failure", 0),
            ("listener_manager.lds.control_plane.connected_state", 1),
        ];
        assert_eq!(found, expected);
    }
}
