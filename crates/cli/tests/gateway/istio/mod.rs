//! The gateway with istiod and started by pilot-agent in place of Envoy, with Istio's own defaults.

mod access;
mod defaults;
mod delay;
mod differential;
mod large;
mod limits;
mod mesh;
mod mtls;
mod routes;
mod sidecar;
mod tracing;
mod traffic;

use mesh::Mesh;

/// Returns a Gateway on this loopback port, with this secret, that routes `shop.example.com` to
/// `backend.example.com`.
fn shop(port: u16) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{ name: shop, namespace: istio-system }}
spec:
  selector: {{ istio: ingressgateway }}
  servers:
  - port: {{ number: {port}, name: https, protocol: HTTPS }}
    bind: 127.0.0.1
    hosts: [ shop.example.com ]
    tls: {{ mode: SIMPLE, credentialName: shop-cert }}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{ name: shop, namespace: istio-system }}
spec:
  hosts: [ shop.example.com ]
  gateways: [ shop ]
  http:
  - route: [ {{ destination: {{ host: backend.example.com, port: {{ number: 80 }} }} }} ]
"
    )
}

/// Returns an external service at this port of its host, whose server is on the second port, on loopback.
fn external(host: &str, protocol: &str, number: u16, port: u16) -> String {
    let name = host.replace('.', "-");
    format!(
        "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{ name: {name}, namespace: istio-system }}
spec:
  hosts: [ {host} ]
  location: MESH_EXTERNAL
  resolution: STATIC
  ports: [ {{ number: {number}, name: {}, protocol: {protocol}, targetPort: {port} }} ]
  endpoints: [ {{ address: 127.0.0.1 }} ]
",
        protocol.to_ascii_lowercase()
    )
}

/// Returns the backend with these lists of endpoints and further fields.
fn backend(endpoints: &str, more: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{ name: backend, namespace: istio-system }}
spec:
  hosts: [ backend.example.com ]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [ {{ number: 80, name: http, protocol: HTTP, targetPort: 80 }} ]
  endpoints: {endpoints}
{more}"
    )
}
