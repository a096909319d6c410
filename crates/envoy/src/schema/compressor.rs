//! Answers in fewer bytes.

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
        ("compressor_library", Read("`Gzip`, `Brotli` or `Zstd`; levels and windows are Quadrille's own")),
        ("request_direction_config", Ignored("bodies of requests are passed on as they are")),
        (
            "response_direction_config",
            Read(
                "answers of servers are compressed, also to requests with cookies; the gateway's own are not",
            ),
        ),
        ("choose_first", Read("")),
    ],
    others: HARMLESS,
};

pub(crate) const COMPRESSOR_RESPONSES: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.Compressor.ResponseDirectionConfig",
    fields: &[
        ("common_config", Read("")),
        (
            "disable_on_etag_header",
            Ignored("a strong `etag` becomes a weak one, and the answer is compressed"),
        ),
        ("weaken_etag_on_compress", Accepted("it does in any case")),
        ("remove_accept_encoding_header", Ignored("servers may compress themselves, and are asked first")),
        ("uncompressible_response_codes", Ignored("the type of an answer decides")),
        ("status_header_enabled", Ignored("answers do not say why they were not compressed")),
    ],
    others: HARMLESS,
};

pub(crate) const COMPRESSOR_COMMON: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.Compressor.CommonDirectionConfig",
    fields: &[
        ("enabled", Read("")),
        ("min_content_length", Read("30 if it is left out")),
        ("content_type", Read("Envoy's own list if it is left out")),
    ],
    others: HARMLESS,
};

pub(crate) const COMPRESSOR_PER_ROUTE: Schema = Schema {
    name: "envoy.extensions.filters.http.compressor.v3.CompressorPerRoute",
    fields: &[("disabled", Read("")), ("overrides", Ignored("the filter's own settings hold on all routes"))],
    others: HARMLESS,
};

pub(crate) const RUNTIME_FLAG: Schema = Schema {
    name: "envoy.config.core.v3.RuntimeFeatureFlag",
    fields: &[("default_value", Read("")), ("runtime_key", Accepted("there is no runtime"))],
    others: HARMLESS,
};
