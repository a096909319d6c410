//! Individually delivered resources.

use super::with_route_config;
use crate::{ConfigSource, ProcessSettings, Read, ResourceType, Resources, bootstrap, read, read_remote};
use quadrille_config::{
    model::{Origin, Serve},
    yaml::{Limits, Node, Position},
};
use std::{fmt::Write, path::PathBuf, rc::Rc, sync::Arc, time::Instant};

fn tree(text: &str) -> Node {
    quadrille_config::yaml::read(text, Limits::BY_PROGRAM).expect("YAML").expect("a document")
}

fn take(resources: &mut Resources, kind: ResourceType, text: &str) {
    let read = read(kind, &tree(text), Origin::file("xds"));
    resources.insert(read.unwrap_or_else(|errors| panic!("{errors}")));
}

const LISTENER: &str = r#"
name: web
address: { socket_address: { address: 127.0.0.1, port_value: 8443 } }
filter_chains:
- transport_socket:
    name: tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
      common_tls_context: { tls_certificate_sds_secret_configs: [ { name: server, sds_config: { ads: {}, resource_api_version: V3 } } ] }
  filters:
  - name: http
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      rds: { route_config_name: routes, config_source: { ads: {} } }
"#;
const ROUTES: &str = "{ name: routes, virtual_hosts: [ { name: a, domains: ['*'], routes: [ { match: { prefix: / }, route: { cluster: app } } ] } ] }";
const SECRET: &str = "{ name: server, tls_certificate: { certificate_chain: { inline_string: c }, private_key: { inline_string: k } } }";
const CLUSTER: &str =
    "{ name: app, type: EDS, eds_cluster_config: { service_name: s, eds_config: { ads: {} } } }";
const ENDPOINTS: &str = "{ cluster_name: s, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 81 } } } } ] } ] }";

#[test]
fn a_listener_waits_for_what_it_names() {
    let mut resources = Resources::default();
    take(&mut resources, ResourceType::Listener, LISTENER);
    take(&mut resources, ResourceType::Cluster, CLUSTER);
    let references = resources.references();
    assert_eq!(references.secrets["server"], ConfigSource::Ads);
    assert!(references.routes.contains_key("routes") && references.endpoints.contains_key("s"));
    let listener = Arc::clone(&resources.listeners["web"]);
    assert_eq!(resources.missing(&listener).len(), 2);
    let (cold, warnings) = resources.model(&ProcessSettings::default()).unwrap();
    assert!(cold.listeners.is_empty() && cold.upstreams["app"].servers.is_empty());
    assert!(warnings.lines()[0].contains("the listener `web` waits for route configuration `routes`"));
    take(&mut resources, ResourceType::Secret, SECRET);
    take(&mut resources, ResourceType::Routes, ROUTES);
    take(&mut resources, ResourceType::Endpoints, ENDPOINTS);
    assert!(resources.missing(&listener).is_empty());
    let (warm, _) = resources.model(&ProcessSettings::default()).unwrap();
    assert_eq!(warm.listeners.len(), 1);
    assert_eq!(warm.upstreams["app"].servers[0].address, "127.0.0.1:81");
}

#[test]
fn what_has_not_changed_is_the_same_object() {
    let mut resources = Resources::default();
    for (kind, text) in
        [(ResourceType::Listener, LISTENER), (ResourceType::Secret, SECRET), (ResourceType::Routes, ROUTES)]
    {
        take(&mut resources, kind, text);
    }
    let chain = |resources: &Resources| {
        resources.model(&ProcessSettings::default()).unwrap().0.listeners.remove(0).chains.remove(0)
    };
    let routes = |chain: &quadrille_config::model::Chain| match &chain.serve {
        Serve::Http(http) => Arc::clone(&http.routes),
        Serve::Tcp(_) => panic!("no HTTP"),
    };
    let before = chain(&resources);
    take(&mut resources, ResourceType::Cluster, CLUSTER);
    let same = chain(&resources);
    assert!(Arc::ptr_eq(before.tls.as_ref().unwrap(), same.tls.as_ref().unwrap()));
    assert!(Arc::ptr_eq(&routes(&before), &routes(&same)));
    take(&mut resources, ResourceType::Secret, SECRET);
    let renewed = chain(&resources);
    assert!(!Arc::ptr_eq(before.tls.as_ref().unwrap(), renewed.tls.as_ref().unwrap()));
    assert!(Arc::ptr_eq(&routes(&before), &routes(&renewed)));
}

#[test]
fn a_bad_resource_is_refused_alone_with_the_reason() {
    let text = SECRET.replace("private_key", "password: {}, private_key");
    let errors =
        read(ResourceType::Secret, &tree(&text), Origin::Resource("sds", "server".into())).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("sds `server`:1: tls_certificate.password: refused: encrypted keys are not supported"),
        "{errors}"
    );
    assert!(!errors.to_string().contains("inline_string: k"));
}

#[test]
fn control_planes_name_files_only_where_they_may() {
    let secret = |source: &str| {
        format!(
            "name: server\ntls_certificate: {{ certificate_chain: {{ inline_string: c }}, private_key: {{ {source} }} }}"
        )
    };
    let refusal = |source: &str, directories: &[&str]| {
        let directories = directories.iter().map(PathBuf::from).collect::<Vec<_>>().into();
        let origin = Origin::Resource("sds", "server".into());
        read_remote(ResourceType::Secret, &tree(&secret(source)), origin, &directories, &Rc::default())
            .err()
            .map(|errors| errors.to_string())
    };
    let listed = &["/etc/ssl", "/srv/keys"][..];
    for (source, directories) in [
        ("filename: /etc/shadow", &[][..]),
        ("filename: /etc/shadow", listed),
        ("filename: /etc/ssl/../shadow", listed),
        ("filename: /etc/ssl2/key.pem", listed),
        ("filename: key.pem", listed),
        ("environment_variable: PATH", listed),
    ] {
        let said = refusal(source, directories).unwrap_or_else(|| panic!("{source} is read"));
        assert!(said.contains("refused: a control plane names"), "{said}");
    }
    assert_eq!(refusal("filename: /srv/keys/site.pem", listed), None);
    assert_eq!(refusal("inline_string: k", &[]), None);
}

#[test]
fn control_planes_name_unix_sockets_only_where_they_may() {
    let refusal = |path: &str, directories: &[&str]| {
        let endpoints = format!(
            "cluster_name: app\nendpoints: [ {{ lb_endpoints: [ {{ endpoint: {{ address: {{ pipe: {{ path: '{path}' }} }} }} }} ] }} ]"
        );
        let directories = directories.iter().map(PathBuf::from).collect::<Vec<_>>().into();
        let origin = Origin::Resource("eds", "app".into());
        read_remote(ResourceType::Endpoints, &tree(&endpoints), origin, &directories, &Rc::default())
            .err()
            .map(|errors| errors.to_string())
    };
    for path in ["/run/keys.sock", "/srv/apps/../keys.sock", "@keys", "./keys.sock"] {
        let said = refusal(path, &["/srv/apps"]).unwrap_or_else(|| panic!("{path} is taken"));
        assert!(said.contains("refused: a control plane names a local Unix socket"), "{said}");
    }
    assert_eq!(refusal("/srv/apps/one.sock", &["/srv/apps"]), None);
}

#[test]
fn what_comes_from_no_text_has_no_line() {
    let mut node = tree(SECRET);
    fn forget(node: &mut Node) {
        node.position = Position::NONE;
        if let quadrille_config::yaml::Value::Mapping(entries) = &mut node.value {
            for entry in entries {
                entry.position = Position::NONE;
                forget(&mut entry.value);
            }
        }
    }
    forget(&mut node);
    let quadrille_config::yaml::Value::Mapping(entries) = &mut node.value else { unreachable!() };
    entries[0].key = "nome".to_owned();
    let errors = read(ResourceType::Secret, &node, Origin::Resource("sds", "server".into())).unwrap_err();
    assert!(errors.to_string().contains("sds `server`: nome: refused"), "{errors}");
}

#[test]
fn kinds_have_their_urls() {
    for kind in ResourceType::ALL {
        assert_eq!(ResourceType::from_type_url(&kind.type_url()), Some(kind));
    }
    assert_eq!(ResourceType::from_type_url("type.googleapis.com/x.Y"), None);
}

#[test]
fn files_of_resources() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let with_type = |kind: ResourceType, text: &str| {
        text.trim_start().replacen('{', &format!("{{ \"@type\": {}, ", kind.type_url()), 1)
    };
    let sds = file("sds.yaml", &format!("resources:\n- {}\n", with_type(ResourceType::Secret, SECRET)));
    let rds = file(
        "rds.yaml",
        &format!("{{ version_info: 1, resources: [ {} ] }}", with_type(ResourceType::Routes, ROUTES)),
    );
    let listener = LISTENER
        .replace(
            "sds_config: { ads: {}, resource_api_version: V3 }",
            &format!("sds_config: {{ path: {sds} }}"),
        )
        .replace(
            "config_source: { ads: {} }",
            &format!("config_source: {{ path_config_source: {{ path: {rds} }} }}"),
        );
    let lds = file(
        "lds.yaml",
        &format!(
            "resources:\n- \"@type\": {}\n{}",
            ResourceType::Listener.type_url(),
            super::indented(listener.trim_start(), 2)
        ),
    );
    let text = format!("dynamic_resources: {{ lds_config: {{ path_config_source: {{ path: {lds} }} }} }}");
    let found = bootstrap(&text, "e.yaml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(found.files.len(), 3);
    assert!(!found.is_dynamic());
    assert_eq!(found.model().unwrap().0.listeners.len(), 1);
    std::fs::write(folder.path().join("sds.yaml"), "resources: [ { \"@type\": a.B } ]").unwrap();
    let errors = bootstrap(&text, "e.yaml").unwrap_err().to_string();
    assert!(errors.contains("sds.yaml:1: resources[0]: a.B is not a supported resource"), "{errors}");
    std::fs::remove_file(folder.path().join("rds.yaml")).unwrap();
    assert!(bootstrap(&text, "e.yaml").unwrap_err().to_string().contains("rds.yaml: cannot be read"));
}

#[test]
fn ten_thousand_routes_and_a_thousand_secrets() {
    let mut routes = "virtual_hosts:\n- name: all\n  domains: ['*']\n  routes:\n".to_owned();
    for index in 0..10_000 {
        let _ = writeln!(
            routes,
            "  - {{ match: {{ prefix: /{index}/, headers: [ {{ name: x, string_match: {{ exact: a }} }} ] }}, route: {{ cluster: c{index}, timeout: 3s }} }}"
        );
    }
    let text = with_route_config(&routes);
    let began = Instant::now();
    let mut found = bootstrap(&text, "e.yaml").unwrap_or_else(|errors| panic!("{errors}")).resources;
    let node = tree(SECRET);
    for index in 0..1_000 {
        let read = read(ResourceType::Secret, &node, Origin::file("xds")).unwrap();
        found.insert(Read { name: format!("s{index}"), ..read });
    }
    let (gateway, _) = found.model(&ProcessSettings::default()).unwrap();
    assert_eq!(gateway.listeners.len(), 1);
    println!("10,000 routes and 1,000 secrets: {:?}", began.elapsed());
    assert!(matches!(found.listeners.len(), 1));
}
