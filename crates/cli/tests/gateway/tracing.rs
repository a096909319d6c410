//! Traces of requests, as received by a collector.

use crate::support::{
    Certificates, Collector, Configuration, Connector, Gateway, Http3Client, PATIENCE, attribute, document,
    echo_server, eventually, http3::Sending, listener, output, ports, quadrille,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::io::{Read, Write};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    file: Configuration,
}

impl Site {
    /// A site with a server that echoes requests at `/`, and an unreachable one at `/gone`.
    fn new(tracing: &str, keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.rsa(2048, &["localhost"]);
        let upstreams = format!(
            "echo: {{servers: [\"{}\"]}}, gone: {{servers: [\"127.0.0.1:{}\"], retries: 1}}",
            echo_server(),
            ports::free()
        );
        let keys = format!("http3: on, routes: [{{path: /gone, upstream: gone}}], upstream: echo{keys}");
        let text = document(&[listener(&pair, &keys)], &upstreams);
        let file = Configuration::new(&format!("{text}request_ids: on\ntracing: {tracing}\n"));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, file }
    }

    /// Returns the request that the server received for these headers.
    fn get(&self, path: &str, headers: &str) -> String {
        Connector::new(&self.certificates).get(self.gateway.address(0), path, headers).text()
    }
}

fn header(request: &str, name: &str) -> Option<String> {
    let lines = request.lines().filter_map(|line| line.split_once(": "));
    let mut found =
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned());
    let first = found.next();
    assert!(found.next().is_none(), "{name} is present twice: {request}");
    first
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the spans of one trace, once there are this many.
fn wait_for(collector: &Collector, trace: &str, count: usize) -> Vec<Span> {
    let of_trace = || {
        let spans = collector.spans().into_iter();
        spans.filter(|span| hex(&span.trace_id) == trace).collect::<Vec<_>>()
    };
    eventually("the spans do not arrive", || of_trace().len() >= count);
    let spans = of_trace();
    assert_eq!(spans.len(), count, "{spans:#?}");
    spans
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

const SERVER: i32 = 2;
const CLIENT: i32 = 3;

fn of_kind(spans: &[Span], kind: i32) -> Vec<&Span> {
    spans.iter().filter(|span| span.kind == kind).collect()
}

/// One request, from its handshake to its server, in both forms of OTLP.
#[test]
fn a_request_is_traced_from_its_handshake_to_its_server() {
    for (collector, protocol) in [(Collector::grpc(), "grpc"), (Collector::http("/v1/traces"), "http")] {
        let tracing = format!(
            "{{endpoint: 'http://{}', protocol: {protocol}, percent: 100, service: edge}}",
            collector.address
        );
        let site = Site::new(&tracing, "");
        let sent = site.get("/a?secret=1", "User-Agent: test\r\ntracestate: forged=1\r\n");
        let told = header(&sent, "traceparent").expect("a trace");
        let parts: Vec<&str> = told.split('-').collect();
        assert_eq!((parts[0], parts[3]), ("00", "01"), "{told}");
        assert_eq!(header(&sent, "tracestate"), None);
        let spans = wait_for(&collector, parts[1], 5);
        assert_eq!(collector.service(), "edge");
        let [server] = of_kind(&spans, SERVER)[..] else { panic!("{spans:#?}") };
        let [client] = of_kind(&spans, CLIENT)[..] else { panic!("{spans:#?}") };
        assert!(server.parent_span_id.is_empty(), "{server:#?}");
        assert_eq!(
            (client.parent_span_id.as_slice(), hex(&client.span_id).as_str()),
            (&server.span_id[..], parts[2])
        );
        for (key, expected) in [
            ("http.request.method", "GET"),
            ("url.path", "/a"),
            ("url.scheme", "https"),
            ("http.response.status_code", "200"),
            ("network.protocol.version", "1.1"),
            ("user_agent.original", "test"),
            ("quadrille.upstream", "echo"),
            ("client.address", "127.0.0.1"),
        ] {
            assert_eq!(attribute(server, key), expected, "{key}");
        }
        let id = header(&sent, "x-request-id").expect("a name");
        assert_eq!(attribute(server, "http.request.header.x-request-id"), id);
        let handshake = named(&spans, "tls.handshake");
        assert_eq!(handshake.parent_span_id, server.span_id);
        assert!(handshake.end_time_unix_nano <= server.start_time_unix_nano, "{spans:#?}");
        for name in ["key.wait", "key.compute"] {
            let key = named(&spans, name);
            assert_eq!(key.parent_span_id, handshake.span_id);
            assert!(key.start_time_unix_nano >= handshake.start_time_unix_nano, "{spans:#?}");
            assert!(key.end_time_unix_nano <= handshake.end_time_unix_nano, "{spans:#?}");
        }
        let said = format!("{spans:?}");
        assert!(!said.contains("secret"), "queries are private: {said}");
        let counted = || site.gateway.metric("quadrille_spans_total", &["result=\"sent\""]);
        eventually("spans are not counted", || counted() >= 5.0);
    }
}

#[test]
fn every_attempt_is_a_span_and_failures_are_errors() {
    let collector = Collector::grpc();
    let site = Site::new(&format!("{{endpoint: 'http://{}', percent: 100}}", collector.address), "");
    assert!(site.get("/gone", "").contains("Bad Gateway"));
    eventually("no spans", || {
        let spans = collector.spans();
        !of_kind(&spans, SERVER).is_empty() && of_kind(&spans, CLIENT).len() >= 2
    });
    let spans = collector.spans();
    let server = of_kind(&spans, SERVER)[0];
    assert_eq!(attribute(server, "http.response.status_code"), "502");
    assert_eq!(server.status.as_ref().expect("a status").code, 2);
    let attempts = of_kind(&spans, CLIENT);
    assert_eq!(attempts.len(), 2, "{spans:#?}");
    assert_eq!(attribute(attempts[1], "http.request.resend_count"), "1");
    assert_eq!(attribute(attempts[0], "error.type"), "no response");
}

#[test]
fn a_trusted_proxys_trace_is_continued_and_others_begin_anew() {
    let collector = Collector::grpc();
    let tracing = |more: &str| format!("{{endpoint: 'http://{}'{more}}}", collector.address);
    let site = Site::new(&tracing(", percent: 0.0001"), ", trusted_proxies: [127.0.0.1/32]");
    let sampled = format!("traceparent: 00-{TRACE}-{SPAN}-01\r\ntracestate: a=1,b=2\r\n");
    let sent = site.get("/", &sampled);
    let told = header(&sent, "traceparent").expect("a trace");
    assert!(
        told.starts_with(&format!("00-{TRACE}-")) && told.ends_with("-01") && !told.contains(SPAN),
        "{told}"
    );
    assert_eq!(header(&sent, "tracestate").as_deref(), Some("a=1,b=2"));
    let spans = wait_for(&collector, TRACE, 5);
    let server = of_kind(&spans, SERVER)[0];
    assert_eq!((hex(&server.parent_span_id), server.trace_state.as_str()), (SPAN.to_owned(), "a=1,b=2"));

    let unsampled = format!("00-{}-{SPAN}-00", TRACE.replace('4', "5"));
    let sent = site.get("/", &format!("traceparent: {unsampled}\r\n"));
    assert_eq!(header(&sent, "traceparent"), Some(unsampled), "the trace's originator decides");
    // One in a million is sampled, which may be the first.
    eventually("all are sampled", || {
        let sent = site.get("/", "traceparent: nonsense\r\ntracestate: a=1\r\n");
        assert_eq!(header(&sent, "tracestate"), None);
        header(&sent, "traceparent").expect("a trace").ends_with("-00")
    });

    for (reloads, parents, continues) in [(1.0, "all", true), (2.0, "off", false)] {
        let text = std::fs::read_to_string(site.file.path())
            .expect("a file")
            .replace("127.0.0.1/32", "192.0.2.1/32");
        let (text, _) = text.split_once("tracing:").expect("the last key");
        site.file.replace(&format!("{text}tracing: {}\n", tracing(&format!(", parents: {parents}"))));
        site.gateway.wait_for_metric("quadrille_reloads_total", &["result=\"ok\""], |count| count >= reloads);
        let told = header(&site.get("/", &sampled), "traceparent").expect("a trace");
        assert_eq!(told.contains(TRACE), continues, "{parents}: {told}");
    }
}

#[test]
fn http2_and_http3_are_traced_and_a_connection_has_one_handshake() {
    let collector = Collector::grpc();
    let site = Site::new(&format!("{{endpoint: 'http://{}', parents: all}}", collector.address), "");
    let told = format!("00-{TRACE}-{SPAN}-01");
    let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
    for _ in 0..2 {
        let headers = [("traceparent", told.as_str())];
        let answer = http3.exchange(&Sending { method: "GET", path: "/", headers: &headers, body: b"" });
        assert_eq!(answer.status, 200);
    }
    let spans = wait_for(&collector, TRACE, 7);
    assert_eq!(attribute(of_kind(&spans, SERVER)[1], "network.protocol.version"), "3");
    let other = TRACE.replace('4', "6");
    let told = format!("traceparent: 00-{other}-{SPAN}-01");
    crate::support::curl(&site.gateway, &site.certificates, &["--http2", "--header", &told], "/");
    let spans = wait_for(&collector, &other, 5);
    assert_eq!(attribute(of_kind(&spans, SERVER)[0], "network.protocol.version"), "2");
}

/// Requests are not delayed, and lost spans are counted.
#[test]
fn an_unavailable_collector_delays_no_request() {
    let absent = ports::free();
    let mut site = Site::new(&format!("{{endpoint: 'http://127.0.0.1:{absent}', percent: 100}}"), "");
    for _ in 0..20 {
        assert!(header(&site.get("/", ""), "traceparent").is_some());
    }
    site.gateway.wait_for_log("cannot send spans");
    site.gateway.wait_for_metric("quadrille_spans_total", &["result=\"failed\""], |count| count >= 5.0);
}

#[test]
fn what_is_left_is_sent_when_the_gateway_ends() {
    let collector = Collector::grpc();
    // The gateway waits two seconds for the collector, which may not be enough on a busy machine.
    eventually("they are not sent", || {
        let mut site = Site::new(&format!("{{endpoint: 'http://{}', percent: 100}}", collector.address), "");
        let before = collector.spans().len();
        site.get("/", "");
        site.gateway.signal("TERM");
        assert!(site.gateway.wait(PATIENCE).is_some());
        collector.spans().len() == before + 5
    });
}

#[test]
fn without_tracing_headers_go_on_as_they_are() {
    let site = Site::new("off", "");
    let told = format!("00-{TRACE}-{SPAN}-01");
    assert_eq!(header(&site.get("/", &format!("traceparent: {told}\r\n")), "traceparent"), Some(told));
    assert_eq!(header(&site.get("/", ""), "traceparent"), None);
}

#[test]
fn an_invalid_endpoint_is_an_error_with_its_line() {
    let site = Site::new("off", "");
    let text = std::fs::read_to_string(site.file.path()).expect("a file");
    for (endpoint, expected) in [
        ("collector:4317", "is not an endpoint; write `http://` or `https://` with host and port"),
        ("http://collector", "is not an endpoint"),
        ("grpc://collector:4317", "is not an endpoint"),
        ("http://collector:4317/v1/traces", "gRPC has a fixed path; remove the path"),
        ("https://me:s3cr3t@collector:4317", "an endpoint cannot contain a password; write `headers`"),
    ] {
        site.file.replace(&text.replace("tracing: off", &format!("tracing: '{endpoint}'")));
        let (good, said) = output(quadrille("check").arg(site.file.path()));
        assert!(!good && said.contains(expected) && said.contains(".yaml:"), "{said}");
        assert!(!said.contains("s3cr3t"), "passwords are private: {said}");
    }
}

/// Export over TLS with an API key, as for hosted collectors.
#[test]
fn spans_are_sent_over_tls_with_secret_headers() {
    let theirs = Certificates::new();
    let pair = theirs.ecdsa("P-256", &["localhost"]);
    for (collector, protocol) in [(Collector::grpc(), "grpc"), (Collector::http("/v1/traces"), "http")] {
        let collector = collector.behind_tls(&pair, None);
        let tracing = format!(
            "{{endpoint: 'https://localhost:{}', protocol: {protocol}, percent: 100, tls: {{ca: '{}'}}, \
             headers: {{Api-Key: s3cr3t}}}}",
            collector.address.port(),
            theirs.ca().display(),
        );
        let site = Site::new(&tracing, "");
        site.get("/", "");
        eventually("no spans", || collector.spans().len() >= 5);
        site.get("/", "");
        // The spans of a second connection's handshake and request.
        eventually("no more spans", || collector.spans().len() >= 7);
        assert!(collector.header("api-key").iter().all(|value| value == "s3cr3t"));
        assert!(!collector.header("api-key").is_empty());
        let shown = site.gateway.admin_page("/config");
        assert!(shown.contains("api-key") && shown.contains("[redacted]"), "{shown}");
        let (_, said) = output(quadrille("check").arg(site.file.path()));
        for text in [shown, said, site.gateway.log()] {
            assert!(!text.contains("s3cr3t"), "{text}");
        }
    }
}

#[test]
fn a_collector_of_another_ca_or_name_gets_nothing_and_one_that_asks_gets_a_certificate() {
    let theirs = Certificates::new();
    let client = theirs.ecdsa("P-256", &["gateway"]);
    let collector = Collector::grpc().behind_tls(&theirs.ecdsa("P-256", &["localhost"]), Some(&theirs.ca()));
    let (port, ca) = (collector.address.port(), theirs.ca());
    let stranger = Certificates::new();
    let shown =
        format!(", certificate: {{chain: '{}', key: '{}'}}", client.chain.display(), client.key.display());
    for (host, ca, certificate, comes) in [
        ("localhost", ca.clone(), shown.as_str(), true),
        ("localhost", stranger.ca(), shown.as_str(), false),
        ("127.0.0.1", ca.clone(), shown.as_str(), false),
        ("localhost", ca, "", false),
    ] {
        let before = collector.spans().len();
        let tls = format!("{{ca: '{}'{certificate}}}", ca.display());
        let mut site =
            Site::new(&format!("{{endpoint: 'https://{host}:{port}', percent: 100, tls: {tls}}}"), "");
        site.get("/", "");
        if comes {
            eventually("no spans", || collector.spans().len() >= before + 5);
        } else {
            site.gateway.wait_for_log("cannot send spans");
            site.gateway
                .wait_for_metric("quadrille_spans_total", &["result=\"failed\""], |count| count >= 5.0);
            assert_eq!(collector.spans().len(), before);
        }
    }
}

#[test]
fn what_is_wrong_with_tls_or_headers_is_a_mistake_with_its_line_and_without_the_secret() {
    let site = Site::new("off", "");
    let text = std::fs::read_to_string(site.file.path()).expect("a file");
    let https = "endpoint: 'https://localhost:4317'";
    for (tracing, expected) in [
        (format!("{{{https}, tls: {{ca: missing.pem}}}}"), "cannot read"),
        (
            "{endpoint: 'http://localhost:4317', tls: {min: 1.3}}".into(),
            "the endpoint is in plain text; write",
        ),
        (format!("{{{https}, ca: ca.pem}}"), "tracing.ca: unknown key here"),
        (format!("{{{https}, headers: s3cr3t}}"), "not a mapping of names to values; write"),
        (format!("{{{https}, headers: {{'no name': s3cr3t}}}}"), "not the name of a header; write"),
        (format!("{{{https}, headers: {{te: s3cr3t}}}}"), "the gateway sets it; remove it"),
        (format!("{{{https}, headers: {{api-key: \"s3cr3t\\n\"}}}}"), "not the value of a header; write"),
        (format!("{{{https}, headers: {{api-key: [s3cr3t]}}}}"), "found a list"),
    ] {
        site.file.replace(&text.replace("tracing: off", &format!("tracing: {tracing}")));
        let (good, said) = output(quadrille("check").arg(site.file.path()));
        assert!(!good && said.contains(expected) && said.contains(".yaml:"), "{tracing}: {said}");
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}

/// A TCP connection is one span, with its handshake and the connection to its server.
#[test]
fn a_connection_in_tcp_mode_is_traced() {
    let collector = Collector::grpc();
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let upstreams = format!(
        "echo: {{servers: [\"{}\"]}}, gone: {{servers: [\"127.0.0.1:{}\"], retries: 1}}",
        echo_server(),
        ports::free()
    );
    let listeners =
        ["echo", "gone"].map(|upstream| listener(&pair, &format!("mode: tcp, upstream: {upstream}")));
    let text = document(&listeners, &upstreams);
    let tracing = format!("tracing: {{endpoint: 'http://{}', percent: 100}}\n", collector.address);
    let file = Configuration::new(&format!("{text}{tracing}"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let client = Connector::new(&certificates);
    let mut tls = client.tls(gateway.address(0)).expect("a connection");
    tls.write_all(b"GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("writing");
    let (mut answer, mut more) = (Vec::new(), [0; 1024]);
    while !String::from_utf8_lossy(&answer).contains("/secret") {
        let count = tls.read(&mut more).expect("a response");
        answer.extend_from_slice(&more[..count]);
    }
    tls.shutdown().expect("an end");
    let _ = tls.read_to_end(&mut answer);
    drop(tls);
    eventually("no spans", || collector.spans().len() >= 5);
    let spans = collector.spans();
    assert_eq!(spans.len(), 5, "{spans:#?}");
    let connection = named(&spans, "tcp");
    assert!(connection.parent_span_id.is_empty() && connection.kind == SERVER, "{connection:#?}");
    for (key, expected) in [
        ("client.address", "127.0.0.1"),
        ("quadrille.upstream", "echo"),
        ("quadrille.end", "closed"),
        ("server.address", "localhost"),
        ("tls.protocol.version", "TLSv1.3"),
    ] {
        assert_eq!(attribute(connection, key), expected, "{key}");
    }
    for key in ["quadrille.bytes_received", "quadrille.bytes_sent"] {
        assert!(attribute(connection, key).parse::<u64>().expect("a number") > 10, "{connection:#?}");
    }
    let (connect, handshake) = (named(&spans, "connect"), named(&spans, "tls.handshake"));
    assert_eq!((connect.kind, &connect.parent_span_id), (CLIENT, &connection.span_id));
    assert_eq!(handshake.parent_span_id, connection.span_id);
    assert_eq!(handshake.start_time_unix_nano, connection.start_time_unix_nano);
    assert!(connect.end_time_unix_nano <= connection.end_time_unix_nano, "{spans:#?}");
    assert_eq!(named(&spans, "key.compute").parent_span_id, handshake.span_id);
    assert!(!format!("{spans:?}").contains("secret"), "bytes are private");

    // The server is unreachable: every attempt has a span.
    drop(client.tls(gateway.address(1)));
    eventually("no further spans", || {
        let spans = collector.spans();
        let failed = spans.iter().filter(|span| attribute(span, "error.type") == "no connection");
        spans.iter().any(|span| attribute(span, "quadrille.end") == "no connection")
            && failed.filter(|span| span.name == "connect").count() >= 2
    });
    let spans = collector.spans();
    let failed: Vec<_> =
        spans.iter().filter(|span| attribute(span, "error.type") == "no connection").collect();
    assert_eq!(failed.iter().filter(|span| span.name == "connect").count(), 2, "{failed:#?}");
}
