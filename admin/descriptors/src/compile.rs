//! Selection of the files to compile: the messages that a resource of the gateway can contain.

use prost_types::FileDescriptorSet;
use std::path::{Path, PathBuf};

/// The roots of the import tree inside the package.
const ROOTS: &[&str] = &["data-plane-api", "xds", "protoc-gen-validate", "googleapis", "cel-spec"];

/// Files of the types that a type URL in a resource may name. Other types stay opaque.
const ENTRIES: &[&str] = &[
    "envoy/config/listener/v3/listener.proto",
    "envoy/config/route/v3/route.proto",
    "envoy/config/cluster/v3/cluster.proto",
    "envoy/config/endpoint/v3/endpoint.proto",
    "envoy/extensions/transport_sockets/tls/v3/tls.proto",
    "envoy/extensions/transport_sockets/tls/v3/secret.proto",
    "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.proto",
    "envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol.proto",
    "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
    "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto",
    "envoy/extensions/filters/http/rbac/v3/rbac.proto",
    "envoy/extensions/filters/http/jwt_authn/v3/config.proto",
    "envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto",
    "envoy/extensions/filters/http/ratelimit/v3/rate_limit.proto",
    "envoy/extensions/filters/http/router/v3/router.proto",
    "envoy/extensions/filters/network/rbac/v3/rbac.proto",
    "envoy/extensions/filters/http/cors/v3/cors.proto",
    "envoy/extensions/filters/http/fault/v3/fault.proto",
    "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector.proto",
    "envoy/extensions/filters/listener/http_inspector/v3/http_inspector.proto",
    "envoy/extensions/filters/listener/original_dst/v3/original_dst.proto",
    "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol.proto",
    "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
    "envoy/config/trace/v3/opentelemetry.proto",
    "envoy/extensions/access_loggers/file/v3/file.proto",
    "envoy/extensions/access_loggers/stream/v3/stream.proto",
    "envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.proto",
    "envoy/extensions/load_balancing_policies/least_request/v3/least_request.proto",
    "envoy/extensions/load_balancing_policies/random/v3/random.proto",
    "envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.proto",
    "envoy/extensions/load_balancing_policies/maglev/v3/maglev.proto",
    "envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.proto",
    "envoy/service/discovery/v3/discovery.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/wrappers.proto",
    "google/protobuf/empty.proto",
    "cryptomb.proto",
    "qat.proto",
    "typed_struct.proto",
    "udpa_typed_struct.proto",
];

/// Compiled separately: together with files of `envoy.extensions.filters.common`, the compiler resolves its `common`
/// to that package.
const APART: &str = "envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit.proto";

/// Returns the entries and their transitive imports, in import order.
pub(crate) fn compiled(protos: &Path) -> Result<FileDescriptorSet, String> {
    let mut roots: Vec<_> = ROOTS.iter().map(|root| protos.join(root)).collect();
    roots.push(package().join("proto"));
    let mut all = compile(&roots, ENTRIES)?;
    for file in compile(&roots, &[APART])?.file {
        if !all.file.iter().any(|known| known.name == file.name) {
            all.file.push(file);
        }
    }
    Ok(all)
}

/// Returns this package's folder. Cargo provides it at run time; the folder at compile time may belong to another clone that
/// shares the target directory.
pub(crate) fn package() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this for all programs it runs").into()
}

fn compile(roots: &[PathBuf], entries: &[&str]) -> Result<FileDescriptorSet, String> {
    let mut compiler = protox::Compiler::new(roots).map_err(|error| error.to_string())?;
    compiler.include_imports(true);
    for entry in entries {
        compiler.open_file(entry).map_err(|error| format!("{entry}: {error}"))?;
    }
    Ok(compiler.file_descriptor_set())
}
