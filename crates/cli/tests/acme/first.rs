//! The first certificate, with each type of challenge.

use crate::{
    authority::{Behaviour, PATIENCE, Pebble, leaf, secrets, shown, wait_for_certificate},
    support::{Gateway, eventually, logs, output, quadrille, succeed},
};
use std::{
    fs, io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

#[test]
fn both_types_of_key_by_tls_alpn_with_nothing_secret_in_sight() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let mut gateway =
        pebble.gateway("{ names: [a.example.com, b.example.com], key_types: [ecdsa-p256, rsa-2048] }");
    let root = pebble.root();
    let ecdsa = wait_for_certificate(&gateway, &root, "a.example.com", &["-sigalgs", "ECDSA+SHA256"]);
    assert!(ecdsa.contains("Peer signature type: ECDSA"), "{ecdsa}");
    let rsa = wait_for_certificate(&gateway, &root, "b.example.com", &["-sigalgs", "RSA-PSS+SHA256"]);
    assert!(rsa.contains("Peer signature type: RSA-PSS"), "{rsa}");
    gateway.wait_for_log("a certificate authority has validated a name");
    gateway.wait_for_metric("quadrille_acme_orders_total", &["issued"], |value| value == 2.0);
    gateway.wait_for_metric("quadrille_acme_certificates", &["current"], |value| value == 2.0);
    assert_eq!(gateway.metric("quadrille_acme_certificates", &["missing"]), 0.0);

    let secrets = secrets(&pebble.state());
    assert_eq!(secrets.len(), 3, "an account, and two certificates");
    let pages = ["/metrics", "/status", "/config", "/stats"].map(|page| {
        succeed(Command::new("curl").args(["-sS", "--globoff", "--max-time", "300", &gateway.admin(page)]))
    });
    let seen = [pages.concat(), gateway.log(), pebble.cert(&["list"])].concat();
    assert!(!secrets.iter().any(|secret| seen.contains(secret)), "{seen}");
    let files = fs::read_dir(pebble.state().join("certificates")).expect("certificates");
    for file in files.map(|file| file.expect("a file").path()) {
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600, "{file:?}");
    }

    // After the validation, an `acme-tls/1` client is not served, neither for validation nor for anything else.
    let stranger = shown(gateway.address(0), &root, "a.example.com", &["-alpn", "acme-tls/1"]).unwrap_err();
    assert!(stranger.contains("unrecognized name"), "{stranger}");
    let reason = ["reason=\"unknown_name\""];
    gateway.wait_for_metric("quadrille_handshake_failures_total", &reason, |count| count >= 1.0);
}

#[test]
fn a_private_authority_issues_for_names_of_one_label() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let gateway = pebble.gateway_with_flags(&["localhost", "printer"]);
    wait_for_certificate(&gateway, &pebble.root(), "printer", &[]);
    wait_for_certificate(&gateway, &pebble.root(), "localhost", &[]);
    let mut public = quadrille("serve");
    public.args(["--listen", "127.0.0.1:0", "--respond", "hello", "--acme", "ops@example.com"]);
    let (good, said) = output(public.arg("--state").arg(pebble.state()).args(["--domain", "printer"]));
    assert!(!good && said.contains("`printer` is not a public name, and letsencrypt.org issues"), "{said}");
}

/// Other clients can connect while a name is validated, and offer tickets, which authorities do not.
#[test]
fn a_validating_client_may_resume_or_not() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let file = pebble.configuration("{ names: [slow.example.com] }", "");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace(&format!(":{}\n", pebble.tls_port), ":0\n")).expect("writing");
    let gateway = Gateway::with_config(&file, 1);
    let root = pebble.root();
    // The authority cannot validate the name before these clients have connected.
    let barrier = hold_back(pebble.tls_port, gateway.address(0));
    for version in ["-tls1_2", "-tls1_3"] {
        let seen = || {
            let mut client = Command::new("openssl");
            client.args(["s_client", "-alpn", "acme-tls/1", "-servername", "slow.example.com", version]);
            client.args(["-connect", &gateway.address(0).to_string()]).stdin(Stdio::null());
            let output = client.output().expect("openssl");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        eventually("the name is not validated", || seen().contains("ALPN protocol: acme-tls/1"));
    }
    barrier.store(true, Ordering::Relaxed);
    wait_for_certificate(&gateway, &root, "slow.example.com", &[]);
}

/// Relays connections on this port to a server once the flag is set. It ends with the test.
fn hold_back(port: u16, server: SocketAddr) -> Arc<AtomicBool> {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port of validations");
    let barrier = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&barrier);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            while !is_open.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
            }
            let Ok(server) = TcpStream::connect(server) else { continue };
            let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else {
                continue;
            };
            for (mut from, mut to) in [(from_client, server), (from_server, client)] {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    barrier
}

#[test]
fn with_flags_alone_and_kept_over_a_restart() {
    let Some(mut pebble) = Pebble::start(&Behaviour::default()) else { return };
    let gateway = pebble.gateway_with_flags(&["flags.example.com"]);
    let root = pebble.root();
    let first = wait_for_certificate(&gateway, &root, "flags.example.com", &[]);
    drop(gateway);
    // The authority is no longer needed.
    pebble.stop();
    let gateway = pebble.gateway_with_flags(&["flags.example.com"]);
    let again = shown(gateway.address(0), &root, "flags.example.com", &[]).expect("a certificate at once");
    assert_eq!(leaf(&first), leaf(&again));
}

#[test]
fn by_a_request_on_a_plain_listener() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let file = pebble.configuration(
        "{ names: [plain.example.com, 127.0.0.1] }",
        &format!(
            "  - address: 127.0.0.1:{}\n    tls: off\n    routes: [ {{ redirect: https }} ]\n",
            pebble.http_port
        ),
    );
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace("acme: { email", "acme: { challenges: [http-01], email")).expect("writing");
    let gateway = Gateway::with_config(&file, 2);
    let certificate = wait_for_certificate(&gateway, &pebble.root(), "plain.example.com", &[]);
    assert!(!gateway.log().contains("has validated a name"), "validated by a request, not by a handshake");
    let text = succeed(Command::new("sh").args([
        "-c",
        "printf '%s' \"$0\" | openssl x509 -noout -ext subjectAltName",
        &format!("{}-----END CERTIFICATE-----\n", leaf(&certificate)),
    ]));
    assert!(text.contains("IP Address:127.0.0.1"), "{text}");
    // Other requests below this path are routed as usual.
    let url = format!("http://{}/.well-known/acme-challenge/unknown", gateway.address(1));
    let status = succeed(Command::new("curl").args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &url]));
    assert_eq!(status, "301");
}

#[test]
fn a_wildcard_by_dns_with_a_command() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let order = "{ names: [wild.example.com, \"*.wild.example.com\"] }";
    let [hook, file] = pebble.configuration_with_hook(order, "tls-alpn-01, dns-01");
    let gateway = Gateway::with_config(&file, 1);
    let root = pebble.root();
    wait_for_certificate(&gateway, &root, "any.wild.example.com", &[]);
    let calls = fs::read_to_string(hook.with_extension("calls")).expect("the calls");
    let record = "_acme-challenge.wild.example.com";
    assert_eq!(calls, format!("present {record}\ncleanup {record}\n"));
}

/// A reload interrupts an order in any state.
#[test]
fn an_order_that_is_interrupted_leaves_no_records() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let [hook, file] = pebble.configuration_with_hook("{ names: [old.example.com] }", "dns-01");
    let of_hook = |ending: &str| std::path::PathBuf::from(format!("{}.{ending}", hook.display()));
    fs::write(of_hook("block-present"), "").expect("writing");
    let gateway = Gateway::with_config(&file, 1);
    eventually("the hook runs", || of_hook("blocked").exists());
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace("old.example.com", "new.example.com")).expect("writing");
    gateway.signal("HUP");
    wait_for_certificate(&gateway, &pebble.root(), "new.example.com", &[]);
    let calls = || fs::read_to_string(of_hook("calls")).expect("the calls");
    eventually("the record is removed", || calls().contains("cleanup _acme-challenge.old.example.com\n"));
}

#[test]
fn a_name_without_a_certificate_gets_none_and_others_are_served() {
    let Some(mut pebble) = Pebble::prepare() else { return };
    let own = crate::support::Certificates::new();
    let pair = own.rsa(2048, &["here.example.com"]);
    let file = pebble.configuration("{ names: [there.example.com] }", "");
    let text = fs::read_to_string(&file).expect("the configuration");
    let both =
        format!("certificates: [ {{ chain: {}, key: {} }}, {{", pair.chain.display(), pair.key.display());
    fs::write(&file, text.replace("certificates: [ {", &both)).expect("writing");
    let mut gateway = Gateway::with_config(&file, 1);
    gateway.wait_for_log("no certificate could be ordered");
    let address = gateway.address(0);
    let refused = shown(address, &own.ca(), "there.example.com", &[]).unwrap_err();
    assert!(refused.contains("unrecognized name"), "{refused}");
    shown(address, &own.ca(), "here.example.com", &[]).expect("an existing certificate");
    assert_eq!(gateway.metric("quadrille_acme_certificates", &["missing"]), 1.0);
    assert!(gateway.admin_page("/status").contains("there.example.com (ecdsa-p256)"));
    // Once the authority is up, the certificate is issued.
    let behaviour = Behaviour::default();
    pebble.configure(&behaviour);
    pebble.run(&behaviour);
    wait_for_certificate(&gateway, &pebble.root(), "there.example.com", &[]);
}

#[test]
fn the_demo_can_have_its_certificate_ordered() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let mut demo = quadrille("demo");
    demo.args(["--listen", &format!("127.0.0.1:{}", pebble.tls_port), "--admin", "127.0.0.1:0"]);
    demo.args(["--acme-directory", &pebble.url(), "--domain", "demo.example.com", "--acme-ca"]);
    demo.arg(pebble.ca())
        .arg("--state")
        .arg(pebble.state())
        .stdout(Stdio::null())
        .stderr(logs::create("quadrille-demo"));
    let mut running = demo.spawn().expect("quadrille");
    let root = pebble.root();
    let resolve = format!("demo.example.com:{}:127.0.0.1", pebble.tls_port);
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", "--max-time", "300", "--resolve", &resolve, "--cacert"]).arg(&root);
    curl.arg(format!("https://demo.example.com:{}/hello", pebble.tls_port));
    let end = Instant::now() + PATIENCE;
    let mut answer = output(&mut curl);
    while !answer.0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
        answer = output(&mut curl);
    }
    running.kill().and_then(|()| running.wait()).expect("its end");
    assert_eq!(answer, (true, "Hello from Quadrille.\n".to_owned()));
}

#[test]
fn a_profile_is_ordered_and_one_that_there_is_not_is_refused() {
    let behaviour = Behaviour { short_lived: Some("shortlived"), ..Behaviour::default() };
    let Some(pebble) = Pebble::start(&behaviour) else { return };
    let mut unknown = pebble.gateway("{ names: [six.example.com], profile: eternal }");
    unknown.wait_for_log("the certificate authority rejects the request");
    assert!(unknown.log().contains("eternal"), "the authority's error is logged: {}", unknown.log());
    unknown.wait_for_metric("quadrille_acme_orders_total", &["failed"], |value| value == 1.0);
    drop(unknown);
    fs::remove_file(pebble.state().join("progress.json")).expect("removing");
    let gateway = pebble.gateway("{ names: [six.example.com], profile: shortlived }");
    wait_for_certificate(&gateway, &pebble.root(), "six.example.com", &[]);
    let listed = pebble.cert(&["list"]);
    assert!(listed.contains("six.example.com (ecdsa-p256): 5 days left"), "{listed}");
}
