//! Access control: Envoy's RBAC filters.

use super::{
    FieldPolicy::{self, Accepted, Read, Refused},
    STRICT, Schema,
};

const NO_MATCHER: FieldPolicy = Refused("write `rules`");
const NO_CONDITION: FieldPolicy = Refused("CEL is not supported");
const NO_STATE: FieldPolicy = Refused("filter state is not supported, so the rule would never match");
const ONLY_COUNTED: FieldPolicy = Accepted("it has no effect on access");

pub(crate) const HTTP_RBAC: Schema = Schema {
    name: "envoy.extensions.filters.http.rbac.v3.RBAC",
    fields: &[
        ("rules", Read("without rules all requests are allowed")),
        ("rules_stat_prefix", ONLY_COUNTED),
        ("matcher", NO_MATCHER),
        ("shadow_rules", Read("together with `ext_authz`, which evaluates them; alone they have no effect")),
        ("shadow_matcher", ONLY_COUNTED),
        ("shadow_rules_stat_prefix", Read("together with `ext_authz`")),
        ("track_per_rule_stats", ONLY_COUNTED),
    ],
    others: STRICT,
};

pub(crate) const NETWORK_RBAC: Schema = Schema {
    name: "envoy.extensions.filters.network.rbac.v3.RBAC",
    fields: &[
        ("rules", Read("evaluated after the handshake, and for HTTP again with every request")),
        ("rules_stat_prefix", ONLY_COUNTED),
        ("matcher", NO_MATCHER),
        ("shadow_rules", ONLY_COUNTED),
        ("shadow_matcher", ONLY_COUNTED),
        ("shadow_rules_stat_prefix", ONLY_COUNTED),
        ("stat_prefix", ONLY_COUNTED),
        ("enforcement_type", Accepted("connection attributes do not change")),
        ("delay_deny", Accepted("connections are closed at once")),
    ],
    others: STRICT,
};

pub(crate) const RBAC_RULES: Schema = Schema {
    name: "envoy.config.rbac.v3.RBAC",
    fields: &[
        ("action", Read("`ALLOW`, `DENY`; `LOG` has no effect on access")),
        ("policies", Read("")),
        ("audit_logging_options", Refused("audit logging is not supported")),
    ],
    others: STRICT,
};

pub(crate) const RBAC_POLICY: Schema = Schema {
    name: "envoy.config.rbac.v3.Policy",
    fields: &[
        ("permissions", Read("")),
        ("principals", Read("")),
        ("condition", NO_CONDITION),
        ("checked_condition", NO_CONDITION),
        ("cel_config", NO_CONDITION),
    ],
    others: STRICT,
};

pub(crate) const RBAC_PERMISSION: Schema = Schema {
    name: "envoy.config.rbac.v3.Permission",
    fields: &[
        ("and_rules", Read("")),
        ("or_rules", Read("")),
        ("any", Read("`true`")),
        ("header", Read("for requests")),
        ("url_path", Read("for requests")),
        ("destination_ip", Read("")),
        ("destination_port", Read("")),
        ("destination_port_range", Read("")),
        ("metadata", Read("for requests, metadata written by `jwt_authn`")),
        ("not_rule", Read("")),
        ("requested_server_name", Read("")),
        ("matcher", Refused("extensions are not supported")),
        ("uri_template", Refused("write `url_path`")),
        ("sourced_metadata", Refused("write `metadata`")),
    ],
    others: STRICT,
};

pub(crate) const RBAC_PRINCIPAL: Schema = Schema {
    name: "envoy.config.rbac.v3.Principal",
    fields: &[
        ("and_ids", Read("")),
        ("or_ids", Read("")),
        ("any", Read("`true`")),
        ("authenticated", Read("")),
        ("source_ip", Read("")),
        ("direct_remote_ip", Read("except on listeners with the PROXY protocol")),
        ("remote_ip", Read("with `use_remote_address: true`, and without `xff_num_trusted_hops`")),
        ("header", Read("for requests")),
        ("url_path", Read("for requests")),
        ("metadata", Read("for requests, metadata written by `jwt_authn`")),
        ("filter_state", NO_STATE),
        ("not_id", Read("")),
        ("sourced_metadata", Refused("write `metadata`")),
        ("custom", Refused("extensions are not supported")),
    ],
    others: STRICT,
};

pub(crate) const RBAC_PERMISSION_SET: Schema = Schema {
    name: "envoy.config.rbac.v3.Permission.Set",
    fields: &[("rules", Read("at least one"))],
    others: STRICT,
};

pub(crate) const RBAC_PRINCIPAL_SET: Schema = Schema {
    name: "envoy.config.rbac.v3.Principal.Set",
    fields: &[("ids", Read("at least one"))],
    others: STRICT,
};

pub(crate) const RBAC_AUTHENTICATED: Schema = Schema {
    name: "envoy.config.rbac.v3.Principal.Authenticated",
    fields: &[(
        "principal_name",
        Read(
            "a URI or DNS name of the certificate, or its subject; without it, any certificate (Envoy: any TLS)",
        ),
    )],
    others: STRICT,
};

pub(crate) const PATH_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.PathMatcher",
    fields: &[("path", Read("without the query"))],
    others: STRICT,
};

pub(crate) const CIDR_RANGE: Schema = Schema {
    name: "envoy.config.core.v3.CidrRange",
    fields: &[("address_prefix", Read("")), ("prefix_len", Read("0 if omitted"))],
    others: STRICT,
};

pub(crate) const INT32_RANGE: Schema = Schema {
    name: "envoy.type.v3.Int32Range",
    fields: &[("start", Read("")), ("end", Read("exclusive"))],
    others: STRICT,
};

pub(crate) const METADATA_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.MetadataMatcher",
    fields: &[
        (
            "filter",
            Read("`envoy.filters.http.jwt_authn`, and `envoy.filters.http.rbac` for its shadow rules"),
        ),
        ("path", Read("")),
        ("value", Read("")),
        ("invert", Read("")),
    ],
    others: STRICT,
};

pub(crate) const METADATA_PATH: Schema = Schema {
    name: "envoy.type.matcher.v3.MetadataMatcher.PathSegment",
    fields: &[("key", Read(""))],
    others: STRICT,
};

pub(crate) const VALUE_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.ValueMatcher",
    fields: &[
        ("null_match", Read("")),
        ("double_match", Refused("numeric matching is not supported")),
        ("string_match", Read("")),
        ("bool_match", Read("")),
        ("present_match", Read("`true`")),
        ("list_match", Read("")),
        ("or_match", Read("")),
    ],
    others: STRICT,
};

pub(crate) const LIST_MATCHER: Schema =
    Schema { name: "envoy.type.matcher.v3.ListMatcher", fields: &[("one_of", Read(""))], others: STRICT };

pub(crate) const OR_MATCHER: Schema = Schema {
    name: "envoy.type.matcher.v3.OrMatcher",
    fields: &[("value_matchers", Read("at least one"))],
    others: STRICT,
};
