//! Counts of control planes' responses and streams, under Envoy's names.

use super::sample::Sample;
use crate::stats::XdsStats;
use quadrille_xds::ResourceType;

/// Prefix of a resource type's statistics. Envoy counts routes, endpoints and secrets separately for each name; here
/// they are counted by type.
fn prefix(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Listener => "listener_manager.lds",
        ResourceType::Cluster => "cluster_manager.cds",
        ResourceType::Endpoints => "eds",
        ResourceType::Routes => "rds",
        ResourceType::Secret => "sds",
    }
}

/// Statistics of every resource type that has any activity.
pub(super) fn samples(stats: &XdsStats) -> Vec<Sample> {
    let mut samples = Vec::new();
    for kind in ResourceType::ALL {
        let stats = stats.subscription(kind);
        let values = [
            ("update_success", stats.success(), false),
            ("update_rejected", stats.rejected(), false),
            ("update_failure", stats.failure(), false),
            ("control_plane.connected_state", stats.connected(), true),
        ];
        if values.iter().all(|(_, value, _)| *value == 0) {
            continue;
        }
        let prefix = prefix(kind);
        samples.extend(values.map(|(name, value, gauge)| Sample {
            name: format!("{prefix}.{name}"),
            family: format!("envoy_{}_{}", prefix.replace('.', "_"), name.replace('.', "_")),
            labels: Vec::new(),
            value,
            gauge,
        }));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_envoys_names() {
        let stats = XdsStats::default();
        stats.count_connection(&[ResourceType::Listener], false, true);
        stats.count_response(ResourceType::Listener, true);
        stats.count_response(ResourceType::Listener, true);
        stats.count_response(ResourceType::Listener, false);
        let samples = samples(&stats);
        let found: Vec<_> = samples.iter().map(|sample| (sample.name.as_str(), sample.value)).collect();
        let expected = [
            ("listener_manager.lds.update_success", 2),
            ("listener_manager.lds.update_rejected", 1),
            ("listener_manager.lds.update_failure", 0),
            ("listener_manager.lds.control_plane.connected_state", 1),
        ];
        assert_eq!(found, expected);
    }
}
