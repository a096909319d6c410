//! Envoy's messages as data: which fields have an effect, and the policy for the others.
//!
//! The reader applies these policies, and `docs/reference/envoy.md` is generated from them.

mod basic_auth;
mod bootstrap;
mod buffer;
mod cluster;
mod common;
mod compressor;
mod ext_authz;
mod http;
mod istio;
mod jwt;
mod listener;
mod local_rate_limit;
mod local_reply;
mod overload;
mod quic;
mod rate_limit_service;
mod rbac;
mod route;
mod route_action;
mod tls;
mod tracing;
mod traffic;
mod upstream_limits;

pub(crate) use basic_auth::*;
pub(crate) use bootstrap::*;
pub(crate) use buffer::*;
pub(crate) use cluster::*;
pub(crate) use common::*;
pub(crate) use compressor::*;
pub(crate) use ext_authz::*;
pub(crate) use http::*;
pub(crate) use istio::*;
pub(crate) use jwt::*;
pub(crate) use listener::*;
pub(crate) use local_rate_limit::*;
pub(crate) use local_reply::*;
pub(crate) use overload::*;
pub(crate) use quic::*;
pub(crate) use rate_limit_service::*;
pub(crate) use rbac::*;
pub(crate) use route::*;
pub(crate) use route_action::*;
pub(crate) use tls::*;
pub(crate) use tracing::*;
pub(crate) use traffic::*;
pub(crate) use upstream_limits::*;

/// A message of Envoy's API.
#[derive(Debug)]
pub(crate) struct Schema {
    /// Full name in the protocol.
    pub(crate) name: &'static str,
    /// Known fields.
    pub(crate) fields: &'static [(&'static str, FieldPolicy)],
    /// Policy of all other fields.
    pub(crate) others: FieldPolicy,
}

/// Policy of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldPolicy {
    /// The field takes effect, with these limits (or none).
    Read(&'static str),
    /// The field is accepted, and requires no action.
    Accepted(&'static str),
    /// The field has no effect, and a warning is issued.
    Ignored(&'static str),
    /// The field is an error, for this reason.
    Refused(&'static str),
    /// The field is an error, for this reason and with this remedy.
    RefusedWith(&'static str, &'static str),
}

impl Schema {
    /// Returns the policy of a field, if it is known.
    pub(crate) fn field(&self, name: &str) -> Option<FieldPolicy> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }

    /// Returns the name without its package.
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, short)| short)
    }
}

/// Messages that share a page of the reference.
pub(crate) struct Group {
    /// Name of the page's file, without extension.
    pub(crate) page: &'static str,
    pub(crate) title: &'static str,
    pub(crate) messages: &'static [&'static Schema],
}

/// All messages, in the order of the reference.
pub(crate) const ALL: &[Group] = &[
    Group {
        page: "bootstrap",
        title: "The bootstrap",
        messages: &[&BOOTSTRAP, &NODE, &STATIC_RESOURCES, &DYNAMIC_RESOURCES, &ADMIN, &DISCOVERY_RESPONSE],
    },
    Group {
        page: "overload",
        title: "Overload manager",
        messages: &[
            &OVERLOAD_MANAGER,
            &RESOURCE_MONITOR,
            &OVERLOAD_ACTION,
            &OVERLOAD_TRIGGER,
            &THRESHOLD_TRIGGER,
            &SCALED_TRIGGER,
            &FIXED_HEAP,
            &CGROUP_MEMORY,
        ],
    },
    Group {
        page: "common",
        title: "Common messages",
        messages: &[
            &DATA_SOURCE,
            &ADDRESS,
            &SOCKET_ADDRESS,
            &PIPE,
            &CONFIG_SOURCE,
            &PATH_CONFIG_SOURCE,
            &API_CONFIG_SOURCE,
            &GRPC_SERVICE,
            &ENVOY_GRPC,
            &ACCESS_LOG,
            &FILE_ACCESS_LOG,
            &HEADER_VALUE,
            &STRING_MATCHER,
            &REGEX_MATCHER,
        ],
    },
    Group {
        page: "listeners",
        title: "Listeners",
        messages: &[
            &LISTENER,
            &ADDITIONAL_ADDRESS,
            &FILTER_CHAIN,
            &FILTER_CHAIN_MATCH,
            &UDP_LISTENER,
            &QUIC_OPTIONS,
            &FILTER,
            &LISTENER_FILTER,
            &LISTENER_PREDICATE,
            &LISTENER_PREDICATE_SET,
            &PROXY_PROTOCOL,
            &TCP_PROXY,
            &TCP_WEIGHTED,
            &TCP_CLUSTER_WEIGHT,
        ],
    },
    Group {
        page: "tls",
        title: "TLS and secrets",
        messages: &[
            &DOWNSTREAM_TLS,
            &QUIC_TRANSPORT,
            &UPSTREAM_TLS,
            &COMMON_TLS,
            &COMBINED_VALIDATION,
            &TLS_PARAMETERS,
            &TLS_CERTIFICATE,
            &PRIVATE_KEY_PROVIDER,
            &CRYPTOMB,
            &QAT,
            &VALIDATION,
            &SAN_MATCHER,
            &SDS_SECRET,
            &SECRET,
            &TICKET_KEYS,
            &TRANSPORT_SOCKET,
        ],
    },
    Group {
        page: "http",
        title: "The HTTP connection manager, and HTTP to upstreams",
        messages: &[
            &HTTP_MANAGER,
            &UPGRADE,
            &RDS,
            &INTERNAL_ADDRESS_CONFIG,
            &CLIENT_CERTIFICATE_DETAILS,
            &HTTP_FILTER,
            &ROUTER,
            &COMMON_HTTP_OPTIONS,
            &HTTP3_OPTIONS,
            &UPSTREAM_HTTP,
            &UPSTREAM_HTTP_NAME,
            &EXPLICIT_HTTP,
        ],
    },
    Group {
        page: "local-replies",
        title: "Local replies",
        messages: &[
            &LOCAL_REPLY,
            &RESPONSE_MAPPER,
            &SUBSTITUTION_FORMAT,
            &ACCESS_LOG_FILTER,
            &STATUS_CODE_FILTER,
            &COMPARISON_FILTER,
            &RUNTIME_NUMBER,
            &HEADER_FILTER,
            &AND_FILTER,
            &OR_FILTER,
        ],
    },
    Group {
        page: "rbac",
        title: "Access control: RBAC",
        messages: &[
            &HTTP_RBAC,
            &NETWORK_RBAC,
            &RBAC_RULES,
            &RBAC_POLICY,
            &RBAC_PERMISSION,
            &RBAC_PERMISSION_SET,
            &RBAC_PRINCIPAL,
            &RBAC_PRINCIPAL_SET,
            &RBAC_AUTHENTICATED,
            &PATH_MATCHER,
            &CIDR_RANGE,
            &INT32_RANGE,
            &METADATA_MATCHER,
            &METADATA_PATH,
            &VALUE_MATCHER,
            &LIST_MATCHER,
            &OR_MATCHER,
        ],
    },
    Group {
        page: "jwt",
        title: "Access control: JSON Web Tokens",
        messages: &[
            &JWT_AUTHENTICATION,
            &JWT_PROVIDER,
            &REMOTE_JWKS,
            &JWKS_ASYNC_FETCH,
            &JWT_HEADER,
            &JWT_CLAIM_HEADER,
            &JWT_NORMALIZE,
            &JWT_RULE,
            &JWT_REQUIREMENT,
            &JWT_AUDIENCES,
            &JWT_ANY,
            &JWT_ALL,
        ],
    },
    Group {
        page: "ext-authz",
        title: "Access control: authorization servers",
        messages: &[
            &EXT_AUTHZ,
            &AUTHZ_BODY,
            &AUTHZ_GRPC_SERVICE,
            &EXT_AUTHZ_HTTP,
            &EXT_AUTHZ_REQUEST,
            &EXT_AUTHZ_RESPONSE,
            &HTTP_URI,
            &HTTP_STATUS,
            &STRING_MATCHERS,
        ],
    },
    Group { page: "basic-auth", title: "Access control: Basic authentication", messages: &[&BASIC_AUTH] },
    Group {
        page: "local-rate-limit",
        title: "Rate limits: local",
        messages: &[&LOCAL_RATE_LIMIT, &LOCAL_DESCRIPTOR, &DESCRIPTOR_ENTRY, &TOKEN_BUCKET],
    },
    Group {
        page: "rate-limit-service",
        title: "Rate limits: rate limit services",
        messages: &[
            &RATE_LIMIT_SERVICE,
            &RATE_LIMIT_PER_ROUTE,
            &RATE_LIMIT_SERVICE_CONFIG,
            &RATE_LIMIT_GRPC_SERVICE,
            &RATE_LIMIT,
            &RATE_LIMIT_HITS,
            &RATE_LIMIT_OVERRIDE,
            &RATE_LIMIT_OVERRIDE_VALUE,
            &RATE_LIMIT_ACTION,
            &RATE_LIMIT_BARE_ACTION,
            &RATE_LIMIT_HEADER,
            &RATE_LIMIT_QUERY,
            &RATE_LIMIT_MASKED_ADDRESS,
            &RATE_LIMIT_GENERIC_KEY,
            &RATE_LIMIT_HEADER_MATCH,
            &RATE_LIMIT_QUERY_MATCH,
            &RATE_LIMIT_ADDRESS_MATCH,
            &ADDRESS_MATCHER,
            &RATE_LIMIT_METADATA,
            &METADATA_KEY,
            &METADATA_KEY_SEGMENT,
        ],
    },
    Group {
        page: "tracing",
        title: "Tracing",
        messages: &[
            &HTTP_TRACING,
            &TRACING_PROVIDER,
            &OPEN_TELEMETRY,
            &TRACING_GRPC_SERVICE,
            &TRACING_HTTP_SERVICE,
            &TRACING_HEADER,
            &CUSTOM_TAG,
            &LITERAL_TAG,
            &NAMED_TAG,
            &ROUTE_TRACING,
            &DECORATOR,
        ],
    },
    Group { page: "buffer", title: "Request limits: buffers", messages: &[&BUFFER, &BUFFER_PER_ROUTE] },
    Group {
        page: "compressor",
        title: "Compressors",
        messages: &[
            &COMPRESSOR,
            &COMPRESSOR_RESPONSES,
            &COMPRESSOR_COMMON,
            &COMPRESSOR_PER_ROUTE,
            &RUNTIME_FLAG,
        ],
    },
    Group {
        page: "route-matches",
        title: "Route matches",
        messages: &[
            &ROUTE_CONFIGURATION,
            &VIRTUAL_HOST,
            &ROUTE,
            &ROUTE_MATCH,
            &HEADER_MATCHER,
            &INT64_RANGE,
            &QUERY_MATCHER,
        ],
    },
    Group {
        page: "route-actions",
        title: "Route actions",
        messages: &[
            &ROUTE_ACTION,
            &ROUTE_UPGRADE,
            &WEIGHTED_CLUSTER,
            &CLUSTER_WEIGHT,
            &MAX_STREAM_DURATION,
            &RETRY_POLICY,
            &REGEX_REWRITE,
            &REDIRECT,
            &DIRECT_RESPONSE,
            &HEADER_OPTION,
            &HASH_POLICY,
            &HASH_HEADER,
            &HASH_COOKIE,
            &HASH_CONNECTION,
            &HASH_QUERY,
            &CORS_POLICY,
            &HTTP_FAULT,
            &FAULT_DELAY,
            &FAULT_ABORT,
            &FRACTIONAL_PERCENT,
            &RUNTIME_FRACTION,
        ],
    },
    Group {
        page: "clusters",
        title: "Clusters",
        messages: &[
            &CLUSTER,
            &ORIGINAL_DST_CONFIG,
            &BIND_CONFIG,
            &EXTRA_SOURCE_ADDRESS,
            &COMMON_LB,
            &PERCENT,
            &ROUND_ROBIN,
            &LEAST_REQUEST,
            &SLOW_START,
            &CIRCUIT_BREAKERS,
            &CIRCUIT_BREAKER_THRESHOLDS,
            &OUTLIER_DETECTION,
            &SOCKET_MATCH,
            &PROXY_PROTOCOL_UPSTREAM,
            &PROXY_PROTOCOL_CONFIG,
            &EDS_CONFIG,
            &LOAD_ASSIGNMENT,
            &LOCALITY_ENDPOINTS,
            &LB_ENDPOINT,
            &ENDPOINT,
            &HEALTH_CHECK,
            &HTTP_HEALTH_CHECK,
            &GRPC_HEALTH_CHECK,
            &LB_POLICY,
            &LB_POLICY_ITEM,
            &TYPED_EXTENSION,
        ],
    },
    Group {
        page: "istio",
        title: "Istio (`quadrille istio resolve`)",
        messages: &[&PROXY_CONFIG, &ISTIO_PROVIDER, &ISTIO_CRYPTOMB, &ISTIO_QAT],
    },
];

/// Policy for messages in which an omitted field does not weaken security.
const HARMLESS: FieldPolicy = FieldPolicy::Ignored("Quadrille does not know this field");

/// Policy for messages that control access, or to which peer secrets are disclosed.
const STRICT: FieldPolicy = FieldPolicy::RefusedWith(
    "Quadrille does not know this field, and ignoring it here could weaken security",
    "remove it",
);

/// Fields that the tests have read: a field documented as read that is not read is an error in the reference.
#[cfg(test)]
pub(crate) mod coverage {
    use std::{collections::BTreeSet, sync::Mutex};

    static READ: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());

    pub(crate) fn note(message: &'static str, field: &'static str) {
        READ.lock().expect("no test panics while it holds this").insert((message, field));
    }

    pub(crate) fn contains(message: &'static str, field: &'static str) -> bool {
        READ.lock().expect("no test panics while it holds this").contains(&(message, field))
    }
}
