//! Who is let in: Envoy's RBAC filters.

use super::{
    FieldPolicy::{self, Accepted, Read, Refused},
    STRICT, Schema,
};

const NO_MATCHER: FieldPolicy = Refused("write `rules`");
const NO_CONDITION: FieldPolicy = Refused("there is no CEL");
const NO_STATE: FieldPolicy = Refused("no filter here keeps state, so that nobody would match");
const ONLY_COUNTED: FieldPolicy = Accepted("it decides nothing");

pub(crate) const HTTP_RBAC: Schema = Schema {
    name: "envoy.extensions.filters.http.rbac.v3.RBAC",
    fields: &[
        ("rules", Read("without them everybody is let in")),
        ("rules_stat_prefix", ONLY_COUNTED),
        ("matcher", NO_MATCHER),
        ("shadow_rules", Read("beside `ext_authz`, which asks by them; alone they decide nothing")),
        ("shadow_matcher", ONLY_COUNTED),
        ("shadow_rules_stat_prefix", Read("beside `ext_authz`")),
        ("track_per_rule_stats", ONLY_COUNTED),
    ],
    others: STRICT,
};

pub(crate) const NETWORK_RBAC: Schema = Schema {
    name: "envoy.extensions.filters.network.rbac.v3.RBAC",
    fields: &[
        ("rules", Read("asked once the handshake is complete, and for HTTP with every request again")),
        ("rules_stat_prefix", ONLY_COUNTED),
        ("matcher", NO_MATCHER),
        ("shadow_rules", ONLY_COUNTED),
        ("shadow_matcher", ONLY_COUNTED),
        ("shadow_rules_stat_prefix", ONLY_COUNTED),
        ("stat_prefix", ONLY_COUNTED),
        ("enforcement_type", Accepted("what is asked about a connection does not change")),
        ("delay_deny", Accepted("connections are closed at once")),
    ],
    others: STRICT,
};

pub(crate) const RBAC_RULES: Schema = Schema {
    name: "envoy.config.rbac.v3.RBAC",
    fields: &[
        ("action", Read("`ALLOW`, `DENY`; `LOG` decides nothing")),
        ("policies", Read("")),
        ("audit_logging_options", Refused("there is no audit log")),
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
        ("header", Read("of requests")),
        ("url_path", Read("of requests")),
        ("destination_ip", Read("")),
        ("destination_port", Read("")),
        ("destination_port_range", Read("")),
        ("metadata", Read("of requests, of what `jwt_authn` has written")),
        ("not_rule", Read("")),
        ("requested_server_name", Read("")),
        ("matcher", Refused("there are no extensions")),
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
        ("direct_remote_ip", Read("not on listeners with the PROXY protocol")),
        ("remote_ip", Read("with `use_remote_address: true`, and without `xff_num_trusted_hops`")),
        ("header", Read("of requests")),
        ("url_path", Read("of requests")),
        ("metadata", Read("of requests, of what `jwt_authn` has written")),
        ("filter_state", NO_STATE),
        ("not_id", Read("")),
        ("sourced_metadata", Refused("write `metadata`")),
        ("custom", Refused("there are no extensions")),
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
    fields: &[("address_prefix", Read("")), ("prefix_len", Read("0 if it is left out"))],
    others: STRICT,
};

pub(crate) const INT32_RANGE: Schema = Schema {
    name: "envoy.type.v3.Int32Range",
    fields: &[("start", Read("")), ("end", Read("not one of them"))],
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
        ("double_match", Refused("numbers are not compared")),
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
