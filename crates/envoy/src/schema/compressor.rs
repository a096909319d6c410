//! Response compression.

use super::{
    FieldPolicy::{Accepted, Ignored, Read},
    HARMLESS, Schema,
};

const ELSEWHERE: super::FieldPolicy = Ignored("write `response_direction_config`");

pub(crate) const COMPRESSOR: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.Compressor",
    fields: &[
        ("content_length", ELSEWHERE),
        ("content_type", ELSEWHERE),
        ("disable_on_etag_header", ELSEWHERE),
        ("remove_accept_encoding_header", ELSEWHERE),
        ("runtime_enabled", ELSEWHERE),
        ("compressor_library", Read("`Gzip`, `Brotli` or `Zstd`; levels and windows are fixed")),
        ("request_direction_config", Ignored("request bodies are forwarded unchanged")),
        (
            "response_direction_config",
            Read("upstream responses are compressed, also for requests with cookies; local replies are not"),
        ),
        ("choose_first", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const COMPRESSOR_RESPONSES: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.Compressor.ResponseDirectionConfig",
    fields: &[
        ("common_config", Read("")),
        ("disable_on_etag_header", Ignored("a strong `etag` becomes weak, and the response is compressed")),
        ("weaken_etag_on_compress", Accepted("always the case")),
        (
            "remove_accept_encoding_header",
            Ignored("`accept-encoding` is forwarded, and upstreams may compress"),
        ),
        ("uncompressible_response_codes", Ignored("only the type of a response is checked")),
        ("status_header_enabled", Ignored("responses do not contain the reason")),
    ],
    others: HARMLESS,
};

pub(crate) const COMPRESSOR_COMMON: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.Compressor.CommonDirectionConfig",
    fields: &[
        ("enabled", Read("")),
        ("min_content_length", Read("30 if omitted")),
        ("content_type", Read("Envoy's default list if omitted")),
    ],
    others: HARMLESS,
};

pub(crate) const COMPRESSOR_PER_ROUTE: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.CompressorPerRoute",
    fields: &[("disabled", Read("")), ("overrides", Ignored("the filter's settings apply to all routes"))],
    others: HARMLESS,
};

pub(crate) const RUNTIME_FLAG: Schema = Schema {
    name: "envoy.config.core.v3.RuntimeFeatureFlag",
    fields: &[("default_value", Read("")), ("runtime_key", Accepted("runtime is not supported"))],
    others: HARMLESS,
};
