//! The response compression filter.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{
    Problem,
    model::{Action, Compression, ContentCoding, RouteTable},
};
use std::sync::Arc;

/// Envoy's default content types.
const TYPES: [&str; 8] = [
    "application/javascript",
    "application/json",
    "application/xhtml+xml",
    "image/svg+xml",
    "text/css",
    "text/html",
    "text/plain",
    "text/xml",
];
/// Envoy's default minimum length in bytes.
const MINIMUM: u32 = 30;

/// Types of compression library configurations, with their codings.
const LIBRARIES: [(&str, ContentCoding); 3] = [
    ("envoy.extensions.compression.zstd.compressor.v3.Zstd", ContentCoding::Zstd),
    ("envoy.extensions.compression.brotli.compressor.v3.Brotli", ContentCoding::Brotli),
    ("envoy.extensions.compression.gzip.compressor.v3.Gzip", ContentCoding::Gzip),
];

/// Adds `envoy.extensions.filters.http.compressor.v3.Compressor` to the previous compressors, which use other
/// codings.
pub(crate) fn compressor(field: &Field<'_>, before: &mut Option<Compression>) -> Option<()> {
    let message = field.message(&schema::COMPRESSOR)?;
    let (coding, first) = (library(&message)?, message.flag("choose_first"));
    let Some(own) = answers(&message, coding)? else { return Some(()) };
    match before {
        None => *before = Some(own),
        Some(all) => {
            if (&all.types, all.minimum) != (&own.types, own.minimum) {
                let text = "the types and the minimum length of the first compressor apply to all";
                field.warn("compressors that differ", text);
            }
            let place = if first { 0 } else { all.codings.len() };
            if !all.codings.contains(&coding) {
                all.codings.insert(place, coding);
            }
        }
    }
    Some(())
}

fn library(message: &Message<'_>) -> Option<ContentCoding> {
    let library = message.require("compressor_library")?.message(&schema::TYPED_EXTENSION)?;
    let config = library.require("typed_config")?;
    let (kind, _) = config.any()?;
    match LIBRARIES.iter().find(|(known, _)| *known == kind) {
        Some((_, coding)) => Some(*coding),
        None => config.fail(Problem::new(
            "this library is not supported",
            "use Envoy's `Gzip`, `Brotli` or `Zstd`, or remove the filter",
        )),
    }
}

/// Reads which responses are compressed; `Some(None)` if none.
fn answers(message: &Message<'_>, coding: ContentCoding) -> Option<Option<Compression>> {
    let mut all = Compression {
        codings: vec![coding],
        types: TYPES.map(str::to_owned).to_vec(),
        minimum: MINIMUM.into(),
        // As in Envoy, which ignores cookies.
        personal: true,
        cookies: None,
    };
    let Some(direction) = message.get("response_direction_config") else { return Some(Some(all)) };
    let direction = direction.message(&schema::COMPRESSOR_RESPONSES)?;
    let Some(common) = direction.get("common_config") else { return Some(Some(all)) };
    let common = common.message(&schema::COMPRESSOR_COMMON)?;
    if let Some(enabled) = common.get("enabled") {
        let enabled = enabled.message(&schema::RUNTIME_FLAG)?;
        if enabled.get("default_value").is_some() && !enabled.flag("default_value") {
            return Some(None);
        }
    }
    if let Some(minimum) = common.number("min_content_length") {
        all.minimum = minimum.into();
    }
    let types = common.list("content_type");
    if !types.is_empty() {
        let name = |field: &Field<'_>| field.text().map(str::to_ascii_lowercase);
        all.types = types.iter().map(name).collect::<Option<_>>()?;
    }
    Some(Some(all))
}

/// Reads `envoy.extensions.filters.http.compressor.v3.CompressorPerRoute`: returns whether compression is disabled.
pub(crate) fn is_off(field: &Field<'_>) -> Option<bool> {
    Some(field.message(&schema::COMPRESSOR_PER_ROUTE)?.flag("disabled"))
}

/// Returns the compression of routes that disable it.
pub(crate) fn none() -> Arc<Compression> {
    Arc::new(Compression { codings: Vec::new(), ..Compression::default() })
}

/// Applies a compression to the routes that do not set one.
pub(crate) fn compressed(routes: Arc<RouteTable>, compression: Option<&Arc<Compression>>) -> Arc<RouteTable> {
    let Some(compression) = compression else { return routes };
    let mut table = RouteTable::clone(&routes);
    for route in table.hosts.iter_mut().flat_map(|host| &mut host.routes) {
        if matches!(route.action, Action::Forward(_)) {
            route.compression.get_or_insert_with(|| Arc::clone(compression));
        }
    }
    Arc::new(table)
}
