//! The CORS filter's per-route policy.

use crate::{
    common::string_matcher,
    fraction::runtime_fraction,
    reader::{Field, ReadMessage},
    schema,
};
use quadrille_config::{fraction, model::Cors};

/// Reads `envoy.extensions.filters.http.cors.v3.CorsPolicy`; `Some(None)` if it is disabled.
pub(crate) fn cors(field: &Field<'_>) -> Option<Option<Cors>> {
    let message = field.message(&schema::CORS_POLICY)?;
    let origins = message.list("allow_origin_string_match");
    let origins = origins.iter().map(string_matcher).collect::<Option<Vec<_>>>()?;
    let enabled = match message.get("filter_enabled") {
        Some(fraction) => runtime_fraction(&fraction)?,
        None => fraction::ALL,
    };
    let forwards = message.get("forward_not_matching_preflights");
    let cors = Cors {
        origins,
        methods: message.string("allow_methods"),
        headers: message.string("allow_headers"),
        expose: message.string("expose_headers"),
        max_age: message.string("max_age"),
        credentials: message.flag("allow_credentials"),
        forward_other_preflights: forwards.is_none() || message.flag("forward_not_matching_preflights"),
    };
    Some((enabled > 0).then_some(cors))
}
