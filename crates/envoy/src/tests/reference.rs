//! The reference pages match the schema, and the schema matches the fields that are read.

use super::{CERTIFICATE, with_common, with_route_config, with_routes, with_tls};
use crate::{
    bootstrap,
    features::{FEATURES, Outcome},
    istio, reference,
    schema::{ALL, FieldPolicy, coverage},
};
use std::path::Path;

const FOLDER: &str = "../../docs/reference";

#[test]
fn the_reference_is_the_schema() {
    let folder = Path::new(FOLDER);
    let pages = reference();
    if std::env::var_os("QUADRILLE_BLESS").is_some() {
        std::fs::create_dir_all(folder.join("envoy")).unwrap();
        pages.iter().for_each(|page| std::fs::write(folder.join(&page.file), &page.text).unwrap());
    }
    for page in &pages {
        let written = std::fs::read_to_string(folder.join(&page.file)).unwrap_or_default();
        let how = "is out of date; run QUADRILLE_BLESS=1 cargo test -p quadrille-envoy reference";
        assert!(written == page.text, "{} {how}", page.file);
    }
    for entry in std::fs::read_dir(folder.join("envoy")).unwrap() {
        let file = format!("envoy/{}", entry.unwrap().file_name().display());
        assert!(pages.iter().any(|page| page.file == file), "{file} is not generated from the schema");
    }
}

/// Checks that the test of a refused feature contains its message, and that of a working feature does not.
#[test]
fn every_feature_has_its_test() {
    let crates = Path::new("..");
    for feature in FEATURES {
        let (file, function) = feature.test;
        let text = std::fs::read_to_string(crates.join(file)).unwrap_or_default();
        assert!(
            text.contains(&format!("#[test]\nfn {function}()"))
                || text.contains(&format!("#[test]\n    fn {function}()")),
            "{}: no test `{function}` in {file}",
            feature.name
        );
        if let Outcome::Refused(message) = feature.outcome {
            assert!(text.contains(message), "{}: {file} does not contain `{message}`", feature.name);
        }
    }
    let works = FEATURES.iter().filter(|feature| feature.outcome == Outcome::Works).count();
    assert!(works >= 36, "{works}");
}

/// A bootstrap that contains every message.
const EVERYTHING: &str = include_str!("everything.yaml");

#[test]
fn every_field_that_claims_to_be_read_is_read() {
    let read = |text: &str| drop(bootstrap(text, "e.yaml").unwrap_or_else(|errors| panic!("{errors}")));
    read(EVERYTHING);
    read(super::quic::BOTH);
    read(&super::compressor::all());
    read(&super::local_reply::all());
    read(&super::sidecar::all());
    read(&super::rate_limit_service::all());
    read(&super::local_rate_limit::all());
    super::upstream_limits::all().iter().for_each(|text| read(text));
    super::tracing::all().iter().for_each(|text| read(text));
    for alternative in [
        with_tls(&format!(
            "common_tls_context: {{ {CERTIFICATE} }}\nsession_ticket_keys: {{ keys: [ {{ filename: /t }} ] }}"
        )),
        with_common(
            "tls_certificates: { certificate_chain: { filename: /c }, private_key_provider: { provider_name: qat, typed_config: { \"@type\": a/qat.v3alpha.QatPrivateKeyMethodConfig, private_key: { filename: /k } } } }",
        ),
        with_common(
            "tls_certificates: { certificate_chain: { filename: /c }, private_key: { filename: /k }, private_key_provider: { provider_name: x, fallback: true, typed_config: { \"@type\": a/x.Y } } }",
        ),
        with_routes(
            "- { match: { prefix: / }, direct_response: { status: 200, body: { inline_string: x } } }",
        ),
        with_route_config("virtual_hosts: []")
            + &super::http_rbac(
                "policies: { p: { permissions: [ { any: true } ], principals: [ { direct_remote_ip: { address_prefix: 127.0.0.1, prefix_len: 32 } } ] } }",
            ),
    ] {
        read(&alternative);
    }
    let discovery = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(discovery.path(), "resources: []").unwrap();
    read(&format!(
        "dynamic_resources: {{ lds_config: {{ path_config_source: {{ path: {} }} }} }}",
        discovery.path().display()
    ));
    for provider in ["cryptomb", "qat"] {
        let mesh = format!("defaultConfig: {{ privateKeyProvider: {{ {provider}: {{ pollDelay: 1ms }} }} }}");
        istio::resolve_texts(&[("mesh.yaml", &mesh)]).unwrap();
    }
    let fields = ALL
        .iter()
        .flat_map(|group| group.messages)
        .flat_map(|schema| schema.fields.iter().map(|(field, policy)| (schema.name, *field, *policy)));
    let lies: Vec<_> = fields
        .filter(|(message, field, policy)| {
            matches!(policy, FieldPolicy::Read(_)) && !coverage::contains(message, field)
        })
        .map(|(message, field, _)| format!("{message}.{field}"))
        .collect();
    assert!(lies.is_empty(), "documented as read, but not read: {lies:#?}");
}
