//! Access control: Envoy's JSON Web Token filter.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    STRICT, Schema,
};

pub(crate) const JWT_AUTHENTICATION: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
    fields: &[
        ("providers", Read("")),
        ("rules", Read("the first that matches a request")),
        ("filter_state_rules", Refused("filter state is not supported")),
        ("bypass_cors_preflight", Read("")),
        ("requirement_map", Read("")),
        ("strip_failure_response", Read("")),
        ("stat_prefix", Accepted("")),
    ],
    others: STRICT,
};

pub(crate) const JWT_PROVIDER: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtProvider",
    fields: &[
        ("issuer", Read("")),
        ("audiences", Read("")),
        ("subjects", Refused("match subjects in the RBAC filter")),
        ("require_expiration", Refused("a token without `exp` never expires")),
        ("max_lifetime", Refused("a token is valid until its `exp`")),
        (
            "remote_jwks",
            Read("fetched when a token needs them; requests with tokens of other issuers do not wait"),
        ),
        (
            "local_jwks",
            Read("RSA of 2048 to 8192 bits, P-256, P-384, Ed25519; a file is reloaded on every reload"),
        ),
        ("forward", Read("")),
        ("from_headers", Read("")),
        ("from_params", Read("")),
        ("from_cookies", Read("")),
        ("forward_payload_header", Read("")),
        ("pad_forward_payload_header", Read("")),
        ("payload_in_metadata", Read("")),
        ("normalize_payload_in_metadata", Read("")),
        ("header_in_metadata", Read("")),
        ("failed_status_in_metadata", Refused("not used")),
        ("clock_skew_seconds", Read("60 if omitted")),
        ("jwt_cache_config", Accepted("every token is verified")),
        ("claim_to_headers", Read("")),
        ("clear_route_cache", Accepted("requests are always routed after authorization")),
    ],
    others: STRICT,
};

pub(crate) const REMOTE_JWKS: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.RemoteJwks",
    fields: &[
        ("http_uri", Read("at most 1 MiB of keys")),
        ("cache_duration", Read("10 minutes if omitted; keys are refreshed after four fifths of it")),
        ("async_fetch", Read("known keys are used until new ones can be fetched")),
        ("retry_policy", Ignored("a failed fetch is retried for the next token that needs it")),
    ],
    others: STRICT,
};

pub(crate) const JWKS_ASYNC_FETCH: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwksAsyncFetch",
    fields: &[
        ("fast_listener", Accepted("listeners never wait for keys")),
        ("failed_refetch_duration", Read("1 s if omitted")),
    ],
    others: STRICT,
};

pub(crate) const JWT_HEADER: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtHeader",
    fields: &[("name", Read("")), ("value_prefix", Read(""))],
    others: STRICT,
};

pub(crate) const JWT_CLAIM_HEADER: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtClaimToHeader",
    fields: &[("header_name", Read("")), ("claim_name", Read("nested claims separated by `.`"))],
    others: STRICT,
};

pub(crate) const JWT_NORMALIZE: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtProvider.NormalizePayload",
    fields: &[("space_delimited_claims", Read(""))],
    others: STRICT,
};

pub(crate) const JWT_RULE: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.RequirementRule",
    fields: &[("match", Read("")), ("requires", Read("")), ("requirement_name", Read(""))],
    others: STRICT,
};

pub(crate) const JWT_REQUIREMENT: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtRequirement",
    fields: &[
        ("provider_name", Read("")),
        ("provider_and_audiences", Read("")),
        ("requires_any", Read("")),
        ("requires_all", Read("")),
        ("allow_missing_or_failed", Read("")),
        (
            "allow_missing",
            Read("a request with a valid and an invalid token is rejected; in Envoy the order matters"),
        ),
    ],
    others: STRICT,
};

pub(crate) const JWT_AUDIENCES: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.ProviderWithAudiences",
    fields: &[("provider_name", Read("")), ("audiences", Read(""))],
    others: STRICT,
};

pub(crate) const JWT_ANY: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtRequirementOrList",
    fields: &[("requirements", Read("at least one"))],
    others: STRICT,
};

pub(crate) const JWT_ALL: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtRequirementAndList",
    fields: &[("requirements", Read("at least one"))],
    others: STRICT,
};
