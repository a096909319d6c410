//! Invalid input: each error ends the program with exit code 2 and a message that names the file and the flag, or the
//! line of the configuration. No message contains a byte of a key.

use crate::support::{
    Certificates, Connector, Gateway, Pair, curl, output, quadrille, refused, refused_file, secrets_of,
    serve, succeed,
};
use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns a command with one certificate, to which flags can be added.
fn command(pair: &Pair) -> Command {
    let mut command = serve();
    command.args(["--listen", "127.0.0.1:0", "--admin", "off", "--respond", "ok"]);
    command.arg("--cert").arg(&pair.chain).arg("--key").arg(&pair.key);
    command
}

/// Returns a configuration with one certificate, the key on line 5 and the chain on line 4; `rest` starts on line 6.
fn configuration(pair: &Pair, rest: &str) -> String {
    format!(
        "admin: off\nlisteners:\n  - certificates:\n      - chain: {}\n        key: {}\n{rest}    address: 127.0.0.1:0\n    respond: ok\n",
        pair.chain.display(),
        pair.key.display()
    )
}

/// Serves the certificate by flags and by a file; both must be rejected with all of `expected`, and with the flag or
/// the line of the error.
#[track_caller]
fn refused_both_ways(certificates: &Certificates, pair: &Pair, culprit: Culprit, expected: &[&str]) {
    let file = certificates.path("refused.yaml");
    let by_flags = refused(&mut command(pair));
    let by_file = refused_file(&file, &configuration(pair, ""));
    let (flag, line) = match culprit {
        Culprit::Chain => ("--cert: ", 4),
        Culprit::Key => ("--key: ", 5),
    };
    assert!(by_flags.contains(flag), "no {flag}: {by_flags}");
    assert!(by_file.contains(&format!("{}:{line}: ", file.display())), "no line {line}: {by_file}");
    for text in [by_flags, by_file] {
        for part in expected {
            assert!(text.contains(part), "no {part:?}: {text}");
        }
        for secret in pair.key.is_file().then(|| secrets_of(&pair.key)).into_iter().flatten() {
            assert!(!text.contains(&secret), "a line of the key: {text}");
        }
    }
}

#[derive(Clone, Copy)]
enum Culprit {
    Chain,
    Key,
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

fn written(certificates: &Certificates, name: &str, content: &[u8]) -> PathBuf {
    let path = certificates.path(name);
    std::fs::write(&path, content).expect("writing a file");
    path
}

#[test]
fn keys_that_cannot_be_used() {
    let certificates = Certificates::new();
    let good = certificates.ecdsa("P-256", &["localhost"]);
    let with_key = |key: PathBuf| Pair { key, ..good.clone() };
    let check = |key: PathBuf, expected: &[&str]| {
        let expected = [expected, &[name(&key)]].concat();
        refused_both_ways(&certificates, &with_key(key.clone()), Culprit::Key, &expected);
    };
    let convert = |file: &str, arguments: &[&str]| {
        let path = certificates.path(file);
        succeed(Command::new("openssl").args(arguments).arg("-in").arg(&good.key).arg("-out").arg(&path));
        path
    };
    let other = certificates.ecdsa("P-256", &["other.test"]);
    check(other.key.clone(), &["does not match", name(&good.chain)]);
    check(certificates.rsa(2048, &["rsa.test"]).key, &["does not match"]);
    let pkcs8 = ["pkcs8", "-topk8", "-passout", "pass:secret"];
    check(convert("pkcs8.key", &pkcs8), &["is encrypted", "openssl pkey"]);
    check(convert("traditional.key", &["ec", "-aes128", "-passout", "pass:secret"]), &["is encrypted"]);
    check(certificates.path("absent.key"), &["cannot read", "No such file"]);
    check(certificates.path("."), &["cannot read", "directory"]);
    check(written(&certificates, "empty.key", b" \n"), &["is empty"]);
    check(written(&certificates, "garbage.key", &[0xff, 0, 0x80, b'\n']), &["no private key"]);
    check(good.chain.clone(), &["no private key"]);
    let pem = std::fs::read_to_string(&good.key).expect("a key");
    let cut: String =
        pem.lines().filter(|line| !line.starts_with("-----END")).map(|line| format!("{line}\n")).collect();
    check(written(&certificates, "cut.key", cut.as_bytes()), &["malformed"]);
    let body = secrets_of(&good.key).concat();
    let swapped = pem.replace(&secrets_of(&good.key)[0], &body.chars().rev().take(64).collect::<String>());
    check(written(&certificates, "swapped.key", swapped.as_bytes()), &["malformed"]);
    let koblitz = certificates.path("koblitz.key");
    let genpkey = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1", "-out"];
    succeed(Command::new("openssl").args(genpkey).arg(&koblitz));
    check(koblitz, &["unsupported private key type"]);
}

#[test]
fn byte_order_marks_are_skipped() {
    let certificates = Certificates::new();
    let good = certificates.ecdsa("P-256", &["localhost"]);
    let read = |file: &Path| std::fs::read_to_string(file).expect("reading");
    let marked = format!("\u{feff}{}\u{feff}{}", read(&good.chain), read(&certificates.ca()));
    let chain = written(&certificates, "marked.pem", marked.as_bytes());
    let key = written(&certificates, "marked.key", format!("\u{feff}{}", read(&good.key)).as_bytes());
    let gateway = Gateway::with_flags(&Pair { chain, key }, &["--respond", "ok"]);
    let tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a handshake");
    let sent = tls.ssl().peer_cert_chain().expect("a chain").len();
    assert_eq!(sent, 2, "the leaf, and the certificate behind the second mark");
}

#[test]
fn chains_that_cannot_be_used() {
    let certificates = Certificates::new();
    let good = certificates.ecdsa("P-256", &["localhost"]);
    let check = |chain: PathBuf, expected: &[&str]| {
        let expected = [expected, &[name(&chain)]].concat();
        refused_both_ways(
            &certificates,
            &Pair { chain: chain.clone(), ..good.clone() },
            Culprit::Chain,
            &expected,
        );
    };
    check(certificates.path("absent.pem"), &["cannot read", "No such file"]);
    check(written(&certificates, "empty.pem", b""), &["is empty"]);
    check(written(&certificates, "garbage.pem", b"\x00\x01\xfe garbage"), &["no certificate"]);
    check(good.key.clone(), &["no certificate"]);
    let pem = std::fs::read_to_string(&good.chain).expect("a certificate");
    let half = pem.lines().take(4).collect::<Vec<_>>().join("\n");
    check(written(&certificates, "half.pem", half.as_bytes()), &["damaged"]);
    let broken = pem.replacen("MII", "AAA", 1);
    check(written(&certificates, "broken.pem", broken.as_bytes()), &["damaged"]);
    // Behind a certificate that is not damaged, too.
    let lines = pem.lines().count();
    for (file, behind) in [
        ("second-half.pem", half.as_str()),
        ("second-broken.pem", &broken),
        ("second-begin.pem", "-----BEGIN CERTIFICATE-----\n"),
        ("second-joined.pem", &format!("text {pem}")),
    ] {
        let line = format!("line {}:", lines + 1);
        check(written(&certificates, file, format!("{pem}{behind}").as_bytes()), &["damaged", &line]);
    }
    check(written(&certificates, "joined.pem", format!("{}{pem}", pem.trim_end()).as_bytes()), &["damaged"]);
    let leaf_last = [std::fs::read_to_string(certificates.ca()).expect("the CA"), pem].concat();
    let path = written(&certificates, "leaf-last.pem", leaf_last.as_bytes());
    let pair = Pair { chain: path.clone(), ..good.clone() };
    refused_both_ways(
        &certificates,
        &pair,
        Culprit::Key,
        &["does not match", name(&path), "first certificate"],
    );
}

#[test]
fn weak_rsa_keys_need_a_flag() {
    let certificates = Certificates::new();
    let weak = certificates.rsa(1024, &["localhost"]);
    refused_both_ways(
        &certificates,
        &weak,
        Culprit::Key,
        &["1024 bits", "weak", "allow_weak_keys", name(&weak.key)],
    );
    let gateway = Gateway::with_flags(&weak, &["--respond", "ok", "--allow-weak-keys"]);
    assert_eq!(curl(&gateway, &certificates, &["--insecure", "--ciphers", "DEFAULT:@SECLEVEL=0"], "/"), "ok");
    let file = certificates.path("weak.yaml");
    let allowed =
        configuration(&weak, "    tls: {allow_weak_keys: on}\n").replace("admin: off", "admin: 127.0.0.1:0");
    std::fs::write(&file, allowed).expect("a configuration");
    drop(Gateway::with_config(&file, 1));
    let tiny = certificates.rsa(512, &["localhost"]);
    let text = refused(command(&tiny).arg("--allow-weak-keys"));
    assert!(text.contains("512 bits"), "{text}");
}

/// The second certificate would seem to be in use, but no client would ever receive it.
#[test]
fn a_certificate_that_another_one_hides_is_refused() {
    let certificates = Certificates::new();
    let first = certificates.rsa(2048, &["localhost", "www.example.test"]);
    let hidden = certificates.rsa(2048, &["localhost"]);
    let more = |pair: &Pair| {
        format!("      - chain: {}\n        key: {}\n", pair.chain.display(), pair.key.display())
    };
    let file = certificates.path("hidden.yaml");
    let by_file = refused_file(&file, &configuration(&first, &more(&hidden)));
    let by_flags = refused(command(&first).arg("--cert").arg(&hidden.chain).arg("--key").arg(&hidden.key));
    assert!(by_file.contains(&format!("{}:6: ", file.display())), "no line 6: {by_file}");
    for text in [by_file, by_flags] {
        for part in [name(&hidden.chain), name(&first.chain), "no client would get", "rsa2048"] {
            assert!(text.contains(part), "no {part:?}: {text}");
        }
    }
    let (other_type, new_name) =
        (certificates.ecdsa("P-256", &["localhost"]), certificates.rsa(2048, &["localhost", "new.test"]));
    for useful in [&other_type, &new_name] {
        let text = configuration(&first, &more(useful)).replace("admin: off", "admin: 127.0.0.1:0");
        std::fs::write(&file, text).expect("a configuration");
        drop(Gateway::with_config(&file, 1));
    }
}

#[test]
fn an_expired_certificate_is_served_with_a_warning() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    certificates.sign(&pair.key, &pair.chain, &["localhost"], -1);
    let mut gateway = Gateway::with_flags(&pair, &["--respond", "ok"]);
    gateway.wait_for_log("has expired");
    assert!(gateway.log().contains(name(&pair.chain)), "{}", gateway.log());
    assert_eq!(curl(&gateway, &certificates, &["--insecure"], "/"), "ok");
    let later = certificates.path("check.yaml");
    std::fs::write(&later, configuration(&pair, "")).expect("a configuration");
    let checked = Command::new(env!("CARGO_BIN_EXE_quadrille"))
        .arg("check")
        .arg(&later)
        .output()
        .expect("quadrille check");
    let text = [checked.stdout, checked.stderr].concat();
    assert!(String::from_utf8_lossy(&text).contains("has expired"), "quadrille check reports it too");
    assert!(checked.status.success());
}

#[test]
fn ports_that_are_taken() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = certificates.path("taken.yaml");
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    let quadrille = Gateway::with_flags(&pair, &["--respond", "ok"]);
    for taken in [stranger.local_addr().expect("an address"), quadrille.address(0)] {
        let taken = taken.to_string();
        let text = refused(command(&pair).args(["--listen", &taken]));
        assert!(text.contains("--listen: ") && text.contains(&taken) && text.contains("ss -ltnp"), "{text}");
        let content = configuration(&pair, "").replace("address: 127.0.0.1:0", &format!("address: {taken}"));
        let text = refused_file(&file, &content);
        assert!(text.contains(&format!("{}:6: ", file.display())) && text.contains(&taken), "{text}");
        let content = configuration(&pair, "").replace("admin: off", &format!("admin: {taken}"));
        let text = refused_file(&file, &content);
        assert!(text.contains(&format!("{}:1: ", file.display())) && text.contains(&taken), "{text}");
        let text = refused(
            serve()
                .args(["--listen", "127.0.0.1:0", "--respond", "ok", "--admin", &taken, "--cert"])
                .arg(&pair.chain)
                .arg("--key")
                .arg(&pair.key),
        );
        assert!(text.contains("--admin: ") && text.contains(&taken), "{text}");
    }
    assert_eq!(curl(&quadrille, &certificates, &[], "/"), "ok", "the first process keeps serving");
}

/// A name without addresses is a warning, since DNS may have them later.
#[test]
fn names_that_do_not_resolve_are_named() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = certificates.path("names.yaml");
    let upstream = "    upstream: app\nupstreams: {app: {servers: [\"quadrille-test.invalid:80\"]}}\n";
    let content = configuration(&pair, "").replace("    respond: ok\n", upstream);
    std::fs::write(&file, content).expect("a file");
    let (good, said) = output(quadrille("check").arg(&file));
    let place = format!("{}:8: ", file.display());
    assert!(good && said.contains("quadrille-test.invalid") && said.contains(&place), "{said}");
    let mut gateway = Gateway::with_config(&file, 1);
    gateway.wait_for_log("quadrille-test.invalid");
    let mut by_flags = serve();
    by_flags.args(["--listen", "127.0.0.1:0", "--admin", "off", "--upstream", "quadrille-test.invalid:80"]);
    by_flags.arg("--cert").arg(&pair.chain).arg("--key").arg(&pair.key);
    let mut gateway = Gateway::start(by_flags, 1);
    gateway.wait_for_log("--upstream: ");
}

#[test]
fn settings_that_mean_nothing() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = certificates.path("settings.yaml");
    let text = refused_file(&file, &configuration(&pair, "    tls: {minn: 1.2}\n"));
    assert!(
        text.contains(&format!("{}:6", file.display())) && text.contains("minn") && text.contains("`min`"),
        "{text}"
    );
    let text = refused_file(
        &file,
        &configuration(&pair, "    tls: {client_auth: {mode: required, ca: absent.pem}}\n"),
    );
    assert!(text.contains(&format!("{}:6", file.display())) && text.contains("absent.pem"), "{text}");
    let text = refused(command(&pair).args(["--client-ca", "absent.pem"]));
    assert!(text.contains("--client-ca: ") && text.contains("absent.pem"), "{text}");
    let text = refused_file(
        &file,
        &configuration(&pair, "").replace("        key: ", "        ocsp: absent.der\n        key: "),
    );
    assert!(text.contains(&format!("{}:5", file.display())) && text.contains("absent.der"), "{text}");
    let text = refused(serve().args(["--config", "absent.yaml"]));
    assert!(text.contains("absent.yaml"), "{text}");
    for flags in
        [&["--tls-min", "1.4"][..], &["--tls-min", "1.3", "--tls-max", "1.2"], &["--groups", "P-257"]]
    {
        let text = refused(command(&pair).args(flags));
        assert!(text.contains(flags[0]), "{text}");
    }
    let text = refused(serve().args(["--listen", "127.0.0.1:0"]));
    assert!(
        text.contains("--cert is missing") && text.contains("--upstream"),
        "every problem at once: {text}"
    );
}
