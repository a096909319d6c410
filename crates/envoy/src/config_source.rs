//! Sources of resources.

use crate::{
    common::{base64, duration},
    reader::{Field, ReadMessage},
    schema,
    values::enumeration,
};
use quadrille_config::Problem;
use std::{path::PathBuf, time::Duration};

/// Source of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// The control plane of `ads_config`.
    Ads,
    /// A separate control plane.
    Api(ApiSource),
    /// A resource file.
    File(PathBuf),
}

/// A control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiSource {
    /// Whether incremental xDS is used.
    pub delta: bool,
    /// Whether all resource types are in one stream.
    pub aggregated: bool,
    /// Name of its cluster.
    pub cluster: String,
    /// HTTP authority; empty for the cluster's name.
    pub authority: String,
    /// Metadata sent with each stream.
    pub metadata: Vec<(String, String)>,
}

/// Default value.
const INITIAL_FETCH: Duration = Duration::from_secs(15);

const API_VERSIONS: &[(&str, u32, ())] = &[("V3", 2, ()), ("AUTO", 0, ())];

/// Reads `envoy.config.core.v3.ConfigSource`.
pub(crate) fn config_source(field: &Field<'_>) -> Option<ConfigSource> {
    timed_config_source(field).map(|(source, _)| source)
}

/// Reads a source, with the time limit for the first response; zero is unlimited.
pub(crate) fn timed_config_source(field: &Field<'_>) -> Option<(ConfigSource, Duration)> {
    let message = field.message(&schema::CONFIG_SOURCE)?;
    if let Some(version) = message.get("resource_api_version") {
        version.parse(enumeration(API_VERSIONS))?;
    }
    let timeout = match message.get("initial_fetch_timeout") {
        Some(timeout) => duration(&timeout)?,
        None => INITIAL_FETCH,
    };
    let source = match message.one_of(&["path", "path_config_source", "api_config_source", "ads", "self"]) {
        Some(("path", path)) => ConfigSource::File(path.text()?.into()),
        Some(("path_config_source", inner)) => {
            let inner = inner.message(&schema::PATH_CONFIG_SOURCE)?;
            ConfigSource::File(inner.require("path")?.text()?.into())
        }
        Some(("api_config_source", inner)) => ConfigSource::Api(api_source(&inner)?),
        Some(_) => ConfigSource::Ads,
        None => {
            return field.fail(Problem::new(
                "no field is set",
                "write `ads: {}`, `api_config_source` or `path_config_source`",
            ));
        }
    };
    Some((source, timeout))
}

/// Reads `envoy.config.core.v3.ApiConfigSource`.
pub(crate) fn api_source(field: &Field<'_>) -> Option<ApiSource> {
    /// Values of `api_type`: whether it is incremental, and whether it is aggregated.
    const TYPES: &[(&str, u32, (bool, bool))] = &[
        ("GRPC", 2, (false, false)),
        ("DELTA_GRPC", 3, (true, false)),
        ("AGGREGATED_GRPC", 5, (false, true)),
        ("AGGREGATED_DELTA_GRPC", 6, (true, true)),
    ];
    let message = field.message(&schema::API_CONFIG_SOURCE)?;
    let (delta, aggregated) = message.require("api_type")?.parse(enumeration(TYPES))?;
    if let Some(version) = message.get("transport_api_version") {
        version.parse(enumeration(API_VERSIONS))?;
    }
    for service in message.list("grpc_services") {
        let service = service.message(&schema::GRPC_SERVICE)?;
        let Some(envoy) = service.get("envoy_grpc") else { continue };
        let envoy = envoy.message(&schema::ENVOY_GRPC)?;
        let values = service.list("initial_metadata");
        return Some(ApiSource {
            delta,
            aggregated,
            cluster: envoy.require("cluster_name")?.text()?.to_owned(),
            authority: envoy.string("authority"),
            metadata: values.iter().map(header_value).collect::<Option<_>>()?,
        });
    }
    field.fail(Problem::new(
        "`grpc_services` with `envoy_grpc` is missing",
        "it sets the control plane's cluster",
    ))
}

/// Reads `envoy.config.core.v3.HeaderValue`.
pub(crate) fn header_value(field: &Field<'_>) -> Option<(String, String)> {
    let message = field.message(&schema::HEADER_VALUE)?;
    let key = message.require("key")?.text()?.to_owned();
    let value = match message.get("raw_value") {
        Some(raw) => raw.parse(|text| {
            let bytes = base64(text)?;
            String::from_utf8(bytes.to_vec()).map_err(|_| "not UTF-8".into())
        })?,
        None => message.string("value"),
    };
    Some((key, value))
}
