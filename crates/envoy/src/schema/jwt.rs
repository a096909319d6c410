//! Who is let in: Envoy's filter for JSON Web Tokens.

use super::{
    FieldPolicy::{Accepted, Read, Refused, RefusedWith},
    STRICT, Schema,
};

pub(crate) const JWT_AUTHENTICATION: Schema = Schema {
    name: "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
    fields: &[
        ("providers", Read("")),
        ("rules", Read("the first that is for a request")),
        ("filter_state_rules", Refused("no filter keeps state")),
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
        ("subjects", Refused("subjects are asked for in the RBAC filter")),
        ("require_expiration", Refused("a token without `exp` is taken for ever")),
        ("max_lifetime", Refused("a token is taken until its `exp`")),
        (
            "remote_jwks",
            RefusedWith(
                "keys are not fetched",
                "write `local_jwks`; istiod does so by itself unless `PILOT_JWT_ENABLE_REMOTE_JWKS` says otherwise",
            ),
        ),
        (
            "local_jwks",
            Read("RSA of 2048 to 8192 bits, P-256, P-384, Ed25519; a file is read again on every reload"),
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
        ("failed_status_in_metadata", Refused("nothing asks for it")),
        ("clock_skew_seconds", Read("60 if it is left out")),
        ("jwt_cache_config", Accepted("every token is verified")),
        ("claim_to_headers", Read("")),
        ("clear_route_cache", Accepted("requests are routed after that in any case")),
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
    fields: &[("header_name", Read("")), ("claim_name", Read("those of objects with a `.` between"))],
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
            Read("a request with a good and a bad token is refused; in Envoy their order decides"),
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
