//! Configuration of a gateway, as plain data.
//!
//! Every front end (command-line flags, the YAML file, Envoy's and Istio's forms, control planes) produces this
//! model, and the gateway reads nothing else. Durations, sizes and addresses are already parsed; certificates and
//! keys are given by their [`Source`], because they are read again on every reload.

mod access;
mod access_log;
mod acme;
mod admin;
mod authorization;
mod basic_auth;
mod chain;
mod compression;
mod cors;
mod descriptor;
mod direct_response;
mod domain;
mod envoy_headers;
mod error_page;
mod expression;
mod fault;
mod hash_policy;
mod header_change;
mod http3;
mod http_tracing;
mod inspection;
mod jwt;
pub mod key_server;
mod keyless;
mod listener;
mod local_reply;
mod log_field;
mod matching;
mod memory;
mod metadata;
mod mirror;
mod mode;
mod original_destination;
mod outlier_detection;
mod path_rewrite;
mod paths;
mod pkcs11;
mod position;
mod problem;
mod rate_limit;
mod rate_limit_service;
mod redis_address;
mod request_id;
mod request_limits;
mod request_rule;
mod resolver;
mod resumption;
mod retry;
mod route;
mod route_setting;
mod routing;
mod sampling;
mod source;
mod source_location;
mod template;
mod timeouts;
mod tls;
mod tracing;
mod trust_anchor;
mod trusted_proxies;
mod upgrades;
mod upstream;
mod upstream_limits;

pub use access::{AccessAction, AccessCondition, AccessPolicy, AccessRules, AccessStep, Doubt};
pub use access_log::{
    AccessLog, LogFormat, LogLayout, LogPart, LogTemplate, LogVariable, RotatedFile, Syslog, SyslogServer,
};
pub use acme::{Acme, AcmeChallenge, AcmeFleet, AcmeKeyType, AcmeOnDemand, AcmeOrder, ExternalAccount};
pub use admin::{Admin, AdminSocket, UnixAccess};
pub use authorization::{
    Authorization, AuthorizationBody, AuthorizationService, ForwardAuth, HttpAuthorization,
    RouteAuthorization,
};
pub use basic_auth::{BasicAuth, PasswordHashes, RouteBasicAuth};
pub use chain::{Chain, ChainMatch, ClientOrigin, Serve, Tls, Transport};
pub use compression::{Compression, ContentCoding};
pub use cors::Cors;
pub use descriptor::{
    Descriptor, DescriptorCondition, DescriptorLimit, DescriptorPart, DescriptorValue, FilterOnRoute,
    HostDescriptors, RouteDescriptors, RouteRateLimitService,
};
pub use direct_response::{Redirect, Respond};
pub use domain::Domain;
pub use envoy_headers::{AttemptCounts, CertificateDetails, EnvoyHeaders, ForwardedCertificate};
pub use error_page::{ErrorPage, Statuses};
pub use expression::{Expression, compiled, whole, whole_within};
pub use fault::Fault;
pub use hash_policy::{HashOn, HashPolicy};
pub use header_change::{HeaderChange, HeaderPart, HeaderText};
pub use http_tracing::{HttpTracing, RouteTracing, TraceSampling, TraceShare, TraceTag, TraceTagValue};
pub use http3::{AltSvc, Http3};
pub use inspection::{Inspection, Ports};
pub use jwt::{
    JwtAuthentication, JwtClaim, JwtKeys, JwtLocation, JwtProvider, JwtRequirement, JwtRule, RemoteKeys,
    RouteJwt,
};
pub use key_server::{KeyServer, Listen};
pub use keyless::{KeyServerUse, KeySource, Keyless, KeylessTls};
pub use listener::{Limits, Listener, ProxyProtocolIn, Redirected};
pub use local_reply::{
    Comparison, LocalReplies, ReplyBody, ReplyFilter, ReplyFormat, ReplyJson, ReplyMapper, ReplyPart,
};
pub use log_field::{LogField, LogFields};
pub use matching::{
    CookieMatch, HeaderMatch, HeaderRule, PathMatch, PathRule, QueryMatch, TextMatch, TextRule,
};
pub use memory::{MemoryLimit, MemorySize, MemoryStages};
pub use metadata::{MetadataMatch, ValueMatch};
pub use mirror::Mirror;
pub use mode::Mode;
pub use original_destination::OriginalDestination;
pub use outlier_detection::OutlierDetection;
pub use path_rewrite::PathRewrite;
pub use paths::{Ambiguous, Paths, SentPath};
pub use pkcs11::{PinSource, Pkcs11Key, Pkcs11Token};
pub use position::Position;
pub use problem::Problem;
pub use rate_limit::{
    DescribedRequests, MadeDescriptors, Rate, RateLimit, RateLimitAnswer, RateLimitBy, RateLimitReply,
    RateLimited, RouteRateLimits,
};
pub use rate_limit_service::{RateLimitService, RateLimitedClients};
pub use redis_address::{RedisAddress, RedisScheme};
pub use request_id::{RequestIdOrigin, RequestIds};
pub use request_limits::{RequestLimits, RouteBodyLimit};
pub use request_rule::{RequestMatch, RequestRule, RuleAction};
pub use resolver::{DnsRefresh, LookupFamily, Resolver};
pub use resumption::{Resumption, SessionCache, TicketKeys};
pub use retry::{RetryOn, RetryPolicy};
pub use route::{Action, Forward, HostRewrite, Route, Weighted};
pub use route_setting::RouteSetting;
pub use routing::{Http, OwnHeaders, RouteTable, StripPort, VirtualHost};
pub use sampling::Sampling;
pub use source::Source;
pub use source_location::{Origin, Place};
pub use template::{RequestPart, Template, TemplatePart};
pub use timeouts::Timeouts;
pub use tls::{
    AltName, AltNameKind, CertificateSource, ClientAuth, ClientCheck, Group, OcspStapling, TlsParameters,
    TlsPolicy, Version,
};
pub use tracing::{
    CollectorEndpoint, CollectorServers, SpanCollector, TraceParents, Tracing, TracingProtocol,
};
pub use trust_anchor::{TrustAnchor, TrustAnchorId};
pub use trusted_proxies::{Network, TrustedProxies};
pub use upgrades::Upgrades;
pub use upstream::{
    Balance, Health, HealthProbe, HttpProbe, ProxyProtocolOut, Server, Upstream, UpstreamAlpn,
    UpstreamProtocol, UpstreamTimeouts, UpstreamTls,
};
pub use upstream_limits::UpstreamLimits;

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

/// The configuration of one `quadrille serve` process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    /// The sockets that accept connections.
    pub listeners: Vec<Listener>,
    /// Named groups of servers that routes point to.
    pub upstreams: BTreeMap<String, Upstream>,
    /// DNS resolution of server names.
    pub resolver: Resolver,
    /// Batching and computation of private-key operations.
    pub engine: EngineSettings,
    /// Session resumption.
    pub resumption: Resumption,
    /// The ACME account, for ordered certificates.
    pub acme: Option<Acme>,
    /// Sampling of handshakes for measurement; `None` measures none.
    pub sampling: Option<Sampling>,
    /// The metrics and health endpoint; `None` switches it off.
    pub admin: Option<Admin>,
    /// Event-loop threads; `None` means one for each CPU.
    pub threads: Option<NonZeroUsize>,
    /// Limit on the memory of the process.
    pub memory: MemoryLimit,
    /// Time for which connections are still accepted after SIGTERM, while the readiness page already fails.
    pub lame_duck: Duration,
    /// Time that a drain waits for open connections.
    pub drain_timeout: Duration,
    /// The destination of the access log.
    pub access_log: AccessLog,
    /// The fields of the access log.
    pub access_log_fields: LogFields,
    /// The syslog server that receives the lines of the access log, too.
    pub access_log_syslog: Option<Syslog>,
    /// The format of the access log's lines, in place of the fields.
    pub access_log_format: Option<Arc<LogFormat>>,
    /// Whether every request is forwarded with an `X-Request-Id`.
    pub request_ids: bool,
    /// Tracing of requests; `None` traces none.
    pub tracing: Option<Tracing>,
}

/// Settings of the engine, which batches and computes private-key operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EngineSettings {
    /// The backend that computes.
    pub backend: BackendChoice,
    /// Maximum time to wait for a batch to fill (Envoy's CryptoMB `poll_delay`). With zero, the default, batches fill
    /// while the backend is busy, and `latency_budget` applies.
    pub poll_delay: Duration,
    /// Maximum time that an operation waits for others while CPU is scarce, without a `poll_delay`. Zero never waits.
    pub latency_budget: Duration,
    /// Maximum number of operations in a batch, in whole passes of the backend. With a `poll_delay`, a batch of this
    /// size does not wait for it.
    pub batch: NonZeroUsize,
    /// Compute threads; `None` means one for each CPU.
    pub threads: Option<NonZeroUsize>,
    /// Maximum number of waiting operations, in all queues together; beyond it, new ones are refused.
    pub queue: NonZeroUsize,
    /// Whether the key exchange of TLS 1.3 is computed in batches too, where that is cheaper than BoringSSL's.
    pub key_exchange: bool,
}

/// The backend that computes private-key operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackendChoice {
    /// The fastest backend that this CPU supports, and a GPU for the excess load, if there is one.
    #[default]
    Auto,
    /// Like `Auto`, but the process does not start without a GPU.
    Gpu,
    /// The fastest backend that this CPU supports, without a GPU.
    Lanes,
    /// BoringSSL, one operation at a time.
    Scalar,
}

/// A configuration without listeners, with default settings.
impl Default for Gateway {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            upstreams: BTreeMap::new(),
            resolver: Resolver::default(),
            engine: EngineSettings::default(),
            resumption: Resumption::default(),
            acme: None,
            sampling: Some(Sampling::default()),
            admin: Some(Admin::default()),
            threads: None,
            memory: MemoryLimit::default(),
            lame_duck: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
            access_log: AccessLog::Off,
            access_log_fields: LogFields::default(),
            access_log_syslog: None,
            access_log_format: None,
            request_ids: false,
            tracing: None,
        }
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            backend: BackendChoice::Auto,
            poll_delay: Duration::ZERO,
            latency_budget: Duration::from_millis(1),
            batch: NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN),
            threads: None,
            queue: NonZeroUsize::new(16 * 1024).unwrap_or(NonZeroUsize::MIN),
            key_exchange: true,
        }
    }
}
