//! TCP mode: bytes from TLS to a server, and back.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, Uninterrupted, curl, document, eventually,
    listener, ports, succeed,
};
use boring::ssl::SslStream;
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    thread,
};

/// Echoes the received bytes, and sends their number once the client has closed its half.
fn echo_server() -> SocketAddr {
    serve_each(|mut tcp| {
        let (mut buffer, mut total) = ([0; 16 * 1024], 0);
        loop {
            match tcp.read(&mut buffer).expect("reading") {
                0 => break,
                count => tcp.write_all(&buffer[..count]).expect("echoing"),
            }
            total += 1;
        }
        assert!(total > 0);
        tcp.write_all(b"goodbye").expect("writing");
    })
}

fn serve_each(serve: impl Fn(TcpStream) + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || serve(tcp));
        }
    });
    address
}

fn before(server: SocketAddr) -> (Certificates, Gateway) {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--mode", "tcp", "--upstream", &server.to_string()]);
    (certificates, gateway)
}

fn read_to_end(tls: &mut SslStream<Uninterrupted>) -> Vec<u8> {
    let mut rest = Vec::new();
    tls.read_to_end(&mut rest).expect("bytes, and a close_notify at their end");
    rest
}

#[test]
fn bytes_pass_in_both_directions_and_each_half_closes_by_itself() {
    let (certificates, gateway) = before(echo_server());
    let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a TLS connection");
    for size in [1, 100, 16 * 1024, 16 * 1024 + 1, 100_000] {
        let bytes: Vec<u8> = (0..size).map(|index: usize| index.to_le_bytes()[0] ^ 0x5a).collect();
        tls.write_all(&bytes).expect("writing");
        let mut back = vec![0; size];
        tls.read_exact(&mut back).expect("an echo");
        assert!(back == bytes, "{size}");
    }
    // The client closes its half, and still receives the end of the response.
    tls.shutdown().expect("close_notify");
    assert_eq!(read_to_end(&mut tls), b"goodbye");
}

#[test]
fn a_server_that_closes_first_still_hears_the_client() {
    let (sender, heard) = std::sync::mpsc::channel();
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a connection");
        tcp.write_all(b"greeting").expect("writing");
        tcp.shutdown(Shutdown::Write).expect("closing one half");
        let mut all = String::new();
        tcp.read_to_string(&mut all).expect("reading");
        sender.send(all).expect("telling");
    });
    let (certificates, gateway) = before(address);
    let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a TLS connection");
    assert_eq!(read_to_end(&mut tls), b"greeting");
    tls.write_all(b"still here").expect("writing");
    tls.shutdown().expect("close_notify");
    assert_eq!(heard.recv().expect("what the server heard"), "still here");
}

#[test]
fn http_passes_without_being_looked_at() {
    let nginx = Nginx::new("return 200 \"for=$http_x_forwarded_for $request_uri\";");
    let (certificates, gateway) = before(nginx.address());
    assert_eq!(curl(&gateway, &certificates, &[], "/a/../b"), "for= /b");
    assert_eq!(curl(&gateway, &certificates, &["--path-as-is"], "/a//b"), "for= /a//b");
}

#[test]
fn large_transfers_are_complete_in_both_directions() {
    let nginx = Nginx::new("dav_methods PUT;");
    let (certificates, gateway) = before(nginx.address());
    let file = certificates.path("file");
    let file_path = file.to_str().expect("a UTF-8 path");
    succeed(Command::new("openssl").args(["rand", "-out", file_path, &(64 << 20).to_string()]));
    curl(&gateway, &certificates, &["--upload-file", file_path], "/file");
    let copy = certificates.path("copy");
    curl(&gateway, &certificates, &["--output", copy.to_str().expect("a UTF-8 path")], "/file");
    succeed(Command::new("cmp").arg(&file).arg(&copy));
}

#[test]
fn a_server_is_reached_by_tls_and_its_certificate_is_checked() {
    let certificates = Certificates::new();
    let stranger = Certificates::new();
    let origin = certificates.ecdsa("P-384", &["origin.example"]);
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; return 200 $ssl_server_name;",
            origin.chain.display(),
            origin.key.display()
        ),
    );
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstream = |name: &str, tls: &str| {
        format!("{name}: {{servers: [\"{}\"], tls: {{server_name: origin.example, {tls}}}}}", nginx.address())
    };
    let upstreams = [
        upstream("good", &format!("ca: {}", certificates.ca().display())),
        upstream("bad", &format!("ca: {}", stranger.ca().display())),
        upstream("unchecked", "verify: off"),
    ];
    let listeners = ["good", "bad", "unchecked"]
        .map(|name| listener(&pair, &format!("mode: tcp, tls: {{alpn: [http/1.1]}}, upstream: {name}")));
    let file = Configuration::new(&document(&listeners, &upstreams.join(", ")));
    let gateway = Gateway::with_config(&file.path(), 3);
    let connector = Connector::new(&certificates);
    let status = |index: usize| {
        let mut client = connector.http(gateway.address(index)).expect("a TLS connection");
        client.get("/").map(|response| response.text())
    };
    assert_eq!(status(0).expect("a response"), "origin.example");
    assert!(status(1).is_err());
    assert_eq!(status(2).expect("a response"), "origin.example");
}

#[test]
fn dead_servers_are_skipped_and_without_a_live_one_the_connection_is_closed() {
    let nginx = Nginx::new("return 200 alive;");
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let dead = ports::free();
    let upstreams = format!(
        "some: {{servers: [\"127.0.0.1:{dead}\", \"{}\"]}}, none: {{servers: [\"127.0.0.1:{dead}\"]}}",
        nginx.address()
    );
    let listeners = ["some", "none"].map(|name| listener(&pair, &format!("mode: tcp, upstream: {name}")));
    let file = Configuration::new(&document(&listeners, &upstreams));
    let mut gateway = Gateway::with_config(&file.path(), 2);
    for _ in 0..6 {
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "alive");
    }
    let mut client = Connector::new(&certificates).http(gateway.address(1)).expect("a TLS connection");
    assert!(client.is_closed());
    gateway.wait_for_log("cannot reach the upstream");
}

#[test]
fn a_connection_on_which_nothing_moves_is_closed() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("echo: {{servers: [\"{}\"]}}", echo_server());
    let keys = "mode: tcp, upstream: echo, timeouts: {idle: 1s}";
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    // On a busy machine, the connection may be idle for too long before the client sends.
    eventually("nothing is returned", || {
        let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a TLS connection");
        let _ = tls.write_all(b"hello");
        let mut back = Vec::new();
        if let Err(error) = tls.read_to_end(&mut back) {
            assert!(!is_timeout(&error), "it stays open: {error}");
        }
        back == b"hello"
    });
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[test]
fn a_client_that_does_not_read_is_dropped_though_it_goes_on_talking() {
    let flooding = serve_each(|tcp| {
        let mut hears = tcp.try_clone().expect("a clone");
        thread::spawn(move || while hears.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {});
        let mut floods = tcp;
        while floods.write_all(&[0; 64 * 1024]).is_ok() {}
    });
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("flood: {{servers: [\"{flooding}\"]}}");
    let keys = "mode: tcp, upstream: flood, timeouts: {idle: 1s}";
    let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a TLS connection");
    eventually("it is not dropped", || {
        tls.write_all(b"still here").is_err_and(|error| {
            assert!(!is_timeout(&error), "its data is not read: {error}");
            true
        })
    });
}

#[test]
fn connections_to_a_server_resume_the_sessions_of_earlier_ones() {
    let certificates = Certificates::new();
    let origin = certificates.rsa(2048, &["origin.example"]);
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    for version in ["TLSv1.2", "TLSv1.3"] {
        let nginx = Nginx::listening(
            "ssl",
            &format!(
                "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols {version};
                 return 200 \"$ssl_protocol $ssl_session_reused\";",
                origin.chain.display(),
                origin.key.display()
            ),
        );
        let tls = format!("tls: {{server_name: origin.example, ca: {}}}", certificates.ca().display());
        let upstreams = format!("web: {{servers: [\"{}\"], {tls}}}", nginx.address());
        let keys = "mode: tcp, tls: {alpn: [http/1.1]}, upstream: web";
        let file = Configuration::new(&document(&[listener(&pair, keys)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        let ask = || {
            let mut client =
                Connector::new(&certificates).http(gateway.address(0)).expect("a TLS connection");
            client.get("/").expect("a response").text()
        };
        assert_eq!(ask(), format!("{version} ."), "the first handshake is full");
        for _ in 0..5 {
            assert_eq!(ask(), format!("{version} r"), "{}", gateway.log());
        }
    }
}
