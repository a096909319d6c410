//! The bootstrap configuration.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused},
    HARMLESS, Schema,
};

pub(crate) const BOOTSTRAP: Schema = Schema {
    name: "envoy.config.bootstrap.v3.Bootstrap",
    fields: &[
        ("node", Read("sent to control planes")),
        ("static_resources", Read("")),
        ("dynamic_resources", Read("")),
        ("admin", Read("without it, there is no admin address")),
        ("default_config_source", Accepted("`self` means ADS")),
        ("layered_runtime", Ignored("there are no runtime flags")),
        (
            "overload_manager",
            Read("limits the memory of the process; without it, the limit is 80 % of what is available"),
        ),
        ("cluster_manager", Ignored("")),
        ("stats_sinks", Ignored("statistics are served by the admin listener")),
        ("stats_config", Ignored("statistics have fixed names")),
        ("stats_flush_interval", Ignored("statistics are served by the admin listener")),
        ("tracing", Ignored("write `provider` in `tracing` of the connection manager")),
        ("watchdog", Ignored("")),
        ("watchdogs", Ignored("")),
        ("bootstrap_extensions", Ignored("")),
        ("header_prefix", Refused("the names `x-envoy-*` are fixed")),
    ],
    others: HARMLESS,
};

pub(crate) const NODE: Schema = Schema {
    name: "envoy.config.core.v3.Node",
    fields: &[
        ("id", Read("")),
        ("cluster", Read("")),
        ("metadata", Accepted("sent to control planes")),
        ("locality", Accepted("sent to control planes")),
        ("dynamic_parameters", Accepted("sent to control planes")),
    ],
    others: HARMLESS,
};

pub(crate) const STATIC_RESOURCES: Schema = Schema {
    name: "envoy.config.bootstrap.v3.Bootstrap.StaticResources",
    fields: &[("listeners", Read("")), ("clusters", Read("")), ("secrets", Read(""))],
    others: HARMLESS,
};

pub(crate) const DYNAMIC_RESOURCES: Schema = Schema {
    name: "envoy.config.bootstrap.v3.Bootstrap.DynamicResources",
    fields: &[
        ("lds_config", Read("")),
        ("cds_config", Read("")),
        ("ads_config", Read("")),
        ("lds_resources_locator", Refused("use `lds_config`")),
        ("cds_resources_locator", Refused("use `cds_config`")),
    ],
    others: HARMLESS,
};

pub(crate) const ADMIN: Schema = Schema {
    name: "envoy.config.bootstrap.v3.Admin",
    fields: &[
        ("address", Read("")),
        ("access_log", Ignored("requests to the admin address are not logged")),
        ("access_log_path", Ignored("requests to the admin address are not logged")),
        ("profile_path", Ignored("use `quadrille profile system`")),
        ("socket_options", Ignored("")),
        ("ignore_global_conn_limit", Accepted("always the case")),
    ],
    others: HARMLESS,
};

pub(crate) const DISCOVERY_RESPONSE: Schema = Schema {
    name: "envoy.service.discovery.v3.DiscoveryResponse",
    fields: &[
        ("resources", Read("")),
        ("version_info", Read("")),
        ("type_url", Accepted("each resource has its own")),
    ],
    others: HARMLESS,
};
