//! `/config_dump`: the configuration as received, without secrets.

use quadrille_envoy::{Bootstrap, ResourceType};
use serde_json::{Map, Value, json};

/// Returns the page for a bootstrap with the active resources.
pub(super) fn config_dump(bootstrap: &Bootstrap) -> Value {
    let wrapped = |kind: ResourceType, field: &str| {
        bootstrap.resources.dumps(kind).map(|(_, dump)| json!({ field: dump })).collect::<Vec<_>>()
    };
    let listeners = bootstrap
        .resources
        .dumps(ResourceType::Listener)
        .map(|(name, dump)| {
            let listener = bootstrap.resources.listeners.get(name);
            let warming = listener.is_none_or(|listener| !bootstrap.resources.missing(listener).is_empty());
            let state = if warming { "warming_state" } else { "active_state" };
            json!({ "name": name, state: { "listener": dump } })
        })
        .collect::<Vec<_>>();
    let secrets = bootstrap
        .resources
        .dumps(ResourceType::Secret)
        .map(|(name, dump)| json!({ "name": name, "secret": dump }))
        .collect::<Vec<_>>();
    let dump = |name: &str, fields: Value| {
        let mut object = Map::new();
        object.insert("@type".into(), format!("type.googleapis.com/envoy.admin.v3.{name}").into());
        object.extend(fields.as_object().cloned().unwrap_or_default());
        Value::Object(object)
    };
    json!({ "configs": [
        dump("BootstrapConfigDump", json!({ "bootstrap": *bootstrap.dump })),
        dump("ClustersConfigDump", json!({ "dynamic_active_clusters": wrapped(ResourceType::Cluster, "cluster") })),
        dump("EndpointsConfigDump", json!({ "dynamic_endpoint_configs": wrapped(ResourceType::Endpoints, "endpoint_config") })),
        dump("ListenersConfigDump", json!({ "dynamic_listeners": listeners })),
        dump("RoutesConfigDump", json!({ "dynamic_route_configs": wrapped(ResourceType::Routes, "route_config") })),
        dump("SecretsConfigDump", json!({ "dynamic_active_secrets": secrets })),
    ] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Trust, resource_store::ResourceStore, tests};

    #[test]
    fn resources_of_control_planes_are_shown_and_a_listener_that_waits_as_warming() {
        let mut bootstrap = tests::bootstrap_with_ads();
        let mut store = ResourceStore::new(bootstrap.clone(), Trust::default());
        let mut page = |store: &ResourceStore| {
            bootstrap.resources = store.active().clone();
            config_dump(&bootstrap)["configs"].clone()
        };
        tests::commit(&mut store, &tests::update(ResourceType::Listener, &[tests::listener("l", "a")]));
        let listener = page(&store)[3]["dynamic_listeners"][0].clone();
        assert_eq!((&listener["name"], &listener["active_state"]), (&json!("l"), &Value::Null));
        assert_eq!(listener["warming_state"]["listener"]["name"], "l");
        tests::commit(&mut store, &tests::update(ResourceType::Routes, &[tests::routes("a")]));
        let complete = page(&store);
        assert_eq!(complete[3]["dynamic_listeners"][0]["active_state"]["listener"]["name"], "l");
        assert_eq!(complete[4]["dynamic_route_configs"][0]["route_config"]["name"], "a");
        // An update of the listener is warming: the active version is shown.
        tests::commit(&mut store, &tests::update(ResourceType::Listener, &[tests::listener("l", "b")]));
        let shown = page(&store)[3]["dynamic_listeners"].to_string();
        assert!(shown.contains("\"route_config_name\":\"a\"") && !shown.contains("warming"), "{shown}");
        store.prepare_bootstrap(tests::bootstrap_with_ads()).unwrap();
        store.commit_bootstrap();
        assert_eq!(page(&store)[3]["dynamic_listeners"].to_string(), shown, "also after a reload");
        tests::commit(&mut store, &tests::update(ResourceType::Listener, &[]));
        assert_eq!(page(&store)[3]["dynamic_listeners"], json!([]));
    }
}
