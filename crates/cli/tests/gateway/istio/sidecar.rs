//! A pod's sidecar, in the test's own network namespaces: istiod and the agent run beside it in the pod.

use super::{Mesh, mesh::Workload};
use crate::sidecar::{ELSEWHERE, GATEWAY, HTTP, POD, Pod, get, talk};
use std::path::Path;

const APP: &str = "spiffe://cluster.local/ns/default/sa/app";
const OTHER: &str = "spiffe://cluster.local/ns/default/sa/other";

const WORKLOAD: Workload<'static> = Workload {
    role: "sidecar",
    namespace: "default",
    account: "app",
    app: "app",
    pod: "app-1",
    address: POD,
    group: Some(GATEWAY),
};

const OBJECTS: &str = r#"apiVersion: v1
kind: Pod
metadata: { name: app-1, namespace: default, labels: { app: app } }
spec: { serviceAccountName: app, nodeName: node, containers: [ { name: app, image: app } ] }
status: { phase: Running, podIP: 10.0.0.2, podIPs: [ { ip: 10.0.0.2 } ], conditions: [ { type: Ready, status: "True" } ] }
---
apiVersion: v1
kind: Service
metadata: { name: app, namespace: default }
spec:
  clusterIP: 10.96.0.10
  selector: { app: app }
  ports:
  - { name: http, port: 80, targetPort: 8080, protocol: TCP }
  - { name: found-out, port: 8090, targetPort: 8090, protocol: TCP }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: app-1, namespace: default, labels: { kubernetes.io/service-name: app } }
addressType: IPv4
endpoints: [ { addresses: [ 10.0.0.2 ], conditions: { ready: true }, targetRef: { kind: Pod, name: app-1, namespace: default } } ]
ports: [ { name: http, port: 8080, protocol: TCP }, { name: found-out, port: 8090, protocol: TCP } ]
---
apiVersion: v1
kind: Service
metadata: { name: other, namespace: default }
spec:
  clusterIP: 10.96.0.11
  selector: { app: other }
  ports:
  - { name: http, port: 80, targetPort: 8080, protocol: TCP }
  - { name: tcp-database, port: 3306, targetPort: 3306, protocol: TCP }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: other-1, namespace: default, labels: { kubernetes.io/service-name: other } }
addressType: IPv4
endpoints: [ { addresses: [ 10.0.0.1 ], conditions: { ready: true } } ]
ports: [ { name: http, port: 8080, protocol: TCP }, { name: tcp-database, port: 3306, protocol: TCP } ]
"#;

const STRICT: &str = "apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: istio-system }
spec: { mtls: { mode: STRICT } }
";

/// Returns the requests without the expected response at the time limit; prints both logs.
fn await_answer(mesh: &Mesh, ask: impl Fn() -> String, expected: &str) {
    mesh.await_or_show("agent.log", || ask() == expected);
}

#[test]
fn a_sidecar_serves_what_istiod_sends_it() {
    let Some(pod) = Pod::start() else { return };
    let (inside, outside) = (&pod.network.pod, &pod.network.outside);
    inside.inside(|| {
        let Some(mut mesh) = Mesh::start("{}", &[]) else { return };
        for (number, object) in OBJECTS.split("---\n").enumerate() {
            mesh.object(&format!("object-{number}"), object);
        }
        mesh.identity("identity", APP);
        mesh.identity("other", OTHER);
        mesh.start_agent(Path::new(env!("CARGO_BIN_EXE_quadrille")), &WORKLOAD);
        // Outbound traffic.
        let service = ["--header", "host: other.default.svc.cluster.local"];
        await_answer(&mesh, || get(inside, "http://10.96.0.11/x", &service), "service 10.0.0.2 /x");
        await_answer(&mesh, || get(inside, "http://10.96.0.11/x", &[]), "service 10.0.0.2 /x");
        await_answer(&mesh, || talk(inside, "10.96.0.11:3306", b"ping"), "database 10.0.0.2 ping");
        let elsewhere = format!("http://{ELSEWHERE}/x");
        await_answer(&mesh, || get(inside, &elsewhere, &[]), "elsewhere 10.0.0.2 /x");
        let unknown = format!("{ELSEWHERE}:7000");
        await_answer(&mesh, || talk(inside, &unknown, b"ping"), "unknown 10.0.0.2 ping");
        assert_eq!(mesh.refused(), Vec::<String>::new());
        // Inbound traffic: a service's ports and others, in plain text and from a workload of the mesh.
        let root = mesh.root();
        let (chain, key) = (mesh.path("other/cert-chain.pem"), mesh.path("other/key.pem"));
        let as_other = ["-cert", chain.to_str().expect("a path"), "-key", key.to_str().expect("a path")];
        let plain = |port: u16| get(outside, &format!("http://{POD}:{port}/x"), &[]);
        let mutual = |port: u16| pod.over_tls(&root, &format!("{POD}:{port}"), HTTP, &as_other);
        for port in [8080, 8081, 8090] {
            await_answer(&mesh, || plain(port), "app 127.0.0.6 /x");
            await_answer(&mesh, || mutual(port), "app 127.0.0.6 /x shown");
        }
        let unlet = pod.over_tls(&root, &format!("{POD}:8080"), HTTP, &[]);
        assert_eq!(unlet, "closed", "without a certificate");
        // STRICT: only clients with a certificate are accepted.
        mesh.configure("strict", STRICT);
        for port in [8080, 8081, 8090] {
            await_answer(&mesh, || plain(port), "closed");
            await_answer(&mesh, || mutual(port), "app 127.0.0.6 /x shown");
        }
        assert_eq!(mesh.refused(), Vec::<String>::new());
        assert_eq!(talk(outside, &format!("{POD}:9001"), b"\0ping"), "closed");
    });
}
