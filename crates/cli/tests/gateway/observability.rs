//! Observability: health pages, the active configuration, the access log. Handshake metrics are tested with the
//! handshakes, in `tls` and `resumption`.

use crate::support::{
    Certificates, Configuration, Gateway, Nginx, curl, document, eventually, listener, output, s_client,
    secrets_of, serve, succeed,
};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Command,
    thread,
    time::Instant,
};

/// Waits until the access log has this many lines, and returns them.
fn lines(log: &Path, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    eventually("the access log has fewer lines", || {
        lines = std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect();
        lines.len() >= count
    });
    lines
}

#[test]
fn admin_pages_tell_the_state_and_no_secrets() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let indented = |path: &Path| {
        let pem = std::fs::read_to_string(path).expect("a PEM file");
        pem.lines().map(|line| format!("          {line}\n")).collect::<String>()
    };
    let file = certificates.path("inline.yaml");
    let content = format!(
        "admin: 127.0.0.1:0\nlisteners:\n  - address: 127.0.0.1:0\n    respond: ok\n    certificates:\n      - chain: |\n{}        key: |\n{}",
        indented(&pair.chain),
        indented(&pair.key)
    );
    std::fs::write(&file, content).expect("a configuration");
    let began = Instant::now();
    let gateway = Gateway::with_config(&file, 1);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
    assert_eq!(gateway.admin_page("/healthz"), "ok\n");
    assert_eq!(gateway.admin_page("/ready"), "ready\n");
    let configuration = gateway.admin_page("/config");
    let shown: Value = serde_json::from_str(&configuration).expect("JSON");
    assert_eq!(shown["listeners"][0]["certificates"][0]["key"], "(inline)", "{configuration}");
    assert_eq!(shown["listeners"][0]["tls"]["min"], "1.2", "{configuration}");
    let status = gateway.admin_page("/status");
    let shown: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(shown["certificates"][0]["names"][0], "localhost", "{status}");
    assert_eq!(shown["certificates"][0]["key_type"], "ecdsa-p256", "{status}");
    let seconds = |what: &str| shown["certificates"][0][what].as_i64().expect("a time");
    assert_eq!(seconds("not_after") - seconds("not_before"), 30 * 24 * 3600, "{status}");
    let most = began.elapsed().as_secs_f64();
    assert!(
        shown["uptime_seconds"].as_f64().is_some_and(|uptime| (0.0..=most).contains(&uptime)),
        "{status}"
    );
    let expiry = gateway.metric("quadrille_certificate_not_after_seconds", &["localhost"]);
    assert_eq!(expiry, seconds("not_after") as f64, "{status}");
    let everything = [configuration, status, gateway.admin_page("/metrics"), gateway.log()].concat();
    for secret in secrets_of(&pair.key) {
        assert!(!everything.contains(&secret), "a line of the key: {everything}");
    }
    let (found, text) = output(Command::new("curl").args(["-sS", "--fail", &gateway.admin("/nothing")]));
    assert!(!found && text.contains("404"), "{text}");
}

/// Pages of the dashboard, and the Content-Security-Policy that restricts them.
#[test]
fn the_dashboard_is_closed_to_the_outside() {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(&certificates.ecdsa("P-256", &["localhost"]), &["--respond", "ok"]);
    let html = gateway.admin_page("/");
    assert_eq!(html, gateway.admin_page("/dashboard"));
    let linked = |text: &str, before: &str| -> Vec<String> {
        let after = text.split(before).skip(1);
        after.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    for file in ["src=\"", "href=\""].into_iter().flat_map(|before| linked(&html, before)) {
        let text = gateway.admin_page(&format!("/{file}"));
        for module in linked(&text, "from \"./").iter().filter(|_| file.ends_with(".js")) {
            gateway.admin_page(&format!("/dashboard/{module}"));
        }
        assert!(
            !file.starts_with("dashboard/") || file.ends_with(".svg") || !text.contains("http"),
            "{file} references an external resource"
        );
    }
    let headers = succeed(Command::new("curl").args(["-sS", "-I", "-X", "GET", &gateway.admin("/")]));
    let policy = "content-security-policy: default-src 'none'; script-src 'self'";
    assert!(headers.to_lowercase().contains(policy), "{headers}");
    assert!(!headers.contains("unsafe"), "{headers}");
}

#[test]
fn the_access_log_says_what_the_handshake_took() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let session = certificates.path("session.pem");
    let session = session.to_str().expect("UTF-8");
    for format in ["text", "json"] {
        let log = certificates.path(&format!("access.{format}"));
        let flags = ["--respond", "ok", "--log-format", format, "--access-log", log.to_str().expect("UTF-8")];
        let gateway = Gateway::with_flags(&pair, &flags);
        let ca = certificates.ca();
        let first = ["-tls1_3", "-servername", "localhost", "-sess_out", session];
        s_client(gateway.address(0), &ca, &first).expect("a full handshake");
        let again = ["-tls1_3", "-servername", "localhost", "-sess_in", session];
        assert!(s_client(gateway.address(0), &ca, &again).expect("a resumed one").resumed());
        assert_eq!(curl(&gateway, &certificates, &["--http2", "--tls-max", "1.2"], "/path?secret=1"), "ok");
        let lines = lines(&log, 3);
        assert_eq!(lines.len(), 3, "{lines:?}");
        match format {
            "text" => check_text(&lines),
            _ => check_json(&lines),
        }
    }
}

#[test]
fn the_access_log_follows_its_setting() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = document(&[listener(&pair, "respond: ok")], "");
    let file = Configuration::new(&text);
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let logs = ["one.log", "two.log"].map(|name| certificates.path(name));
    for log in &logs {
        file.replace(&format!("{text}access_log: {}\n", log.display()));
        // The first line may come from a request before the change.
        let logged = || std::fs::read_to_string(log).is_ok_and(|text| text.contains("path=\"/\""));
        eventually("nothing is logged", || {
            curl(&gateway, &certificates, &[], "/");
            logged()
        });
    }
    let before = std::fs::read_to_string(&logs[0]).expect("a log");
    curl(&gateway, &certificates, &[], "/later");
    let is_logged = || std::fs::read_to_string(&logs[1]).expect("a log").contains("path=\"/later\"");
    eventually("nothing is logged", is_logged);
    assert_eq!(std::fs::read_to_string(&logs[0]).expect("a log"), before, "it is not written any more");
    file.replace(&format!("{text}access_log: /nonexistent/access.log\n"));
    gateway.wait_for_log("cannot open the access log /nonexistent/access.log");
    assert!(!gateway.log().contains("takes effect at the next start"), "{}", gateway.log());
}

/// A FIFO without a reader blocks the process that opens it.
#[test]
fn a_fifo_is_a_log_once_it_has_a_reader() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let fifo = certificates.path("access.fifo");
    succeed(Command::new("mkfifo").arg(&fifo));
    let text = document(&[listener(&pair, "respond: ok")], "");
    let file = Configuration::new(&text);
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let with_log = format!("{text}access_log: {}\n", fifo.display());
    file.replace(&with_log);
    gateway.wait_for_log("it is a FIFO without a reader");
    // A reader that waits in `open` counts as one, and goes on when the gateway has opened its end.
    let reader = thread::spawn(move || std::fs::File::open(fifo));
    let mut reloads = 0;
    eventually("the gateway does not open the FIFO", || {
        reloads += 1;
        file.replace(&format!("# {reloads}\n{with_log}"));
        reader.is_finished()
    });
    let mut lines = BufReader::new(reader.join().expect("a thread").expect("the FIFO")).lines();
    curl(&gateway, &certificates, &[], "/one");
    let line = lines.next().expect("a line").expect("text");
    assert!(line.contains("path=\"/one\""), "{line}");
}

/// Log rotation as by logrotate: the file is renamed, and a signal is sent.
#[test]
fn a_log_that_was_moved_away_is_opened_anew() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let log = certificates.path("access.log");
    let flags = ["--respond", "ok", "--access-log", log.to_str().expect("UTF-8"), "--log-level", "debug"];
    let gateway = Gateway::with_flags(&pair, &flags);
    // The new file exists a moment before lines are written to it.
    let reopened = |times: usize| {
        eventually("it is not reopened", || gateway.log().matches("log files reopened").count() >= times);
    };
    for (round, signal) in ["USR1", "HUP", "USR1"].into_iter().enumerate() {
        curl(&gateway, &certificates, &[], &format!("/before{round}"));
        lines(&log, 1);
        let moved = certificates.path(&format!("access.log.{round}"));
        std::fs::rename(&log, &moved).expect("renaming");
        gateway.signal(signal);
        reopened(2 * round + 1);
        curl(&gateway, &certificates, &[], &format!("/after{round}"));
        assert!(lines(&log, 1)[0].contains(&format!("/after{round}")));
        let moved = std::fs::read_to_string(moved).expect("the old file");
        assert!(
            moved.contains(&format!("/before{round}")) && !moved.contains(&format!("/after{round}")),
            "{moved}"
        );
        std::fs::remove_file(&log).expect("removing");
        gateway.signal("USR1");
        reopened(2 * round + 2);
    }
}

#[test]
fn the_access_log_tells_what_it_is_asked_for_and_requests_have_names() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("location / { return 200 $http_x_request_id; }");
    let log = certificates.path("access.log");
    let text = |more: &str, keys: &str| {
        let upstream = format!("web: {{servers: [\"{}\"]}}", nginx.address());
        let listener = listener(&pair, &format!("upstream: web, {keys}"));
        format!("{}access_log: {}\n{more}", document(&[listener], &upstream), log.display())
    };
    let trusting = "trusted_proxies: [127.0.0.1]";
    let file = Configuration::new(&text("request_ids: on\n", ""));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let asked = ["-A", "teapot", "-H", "x-request-id: of-the-client"];
    let ask = |gateway: &Gateway| curl(gateway, &certificates, &asked, "/path?secret=1");

    let id = ask(&gateway);
    assert!(id.len() == 36 && id != ask(&gateway), "a generated id: {id}");
    let line = lines(&log, 2)[0].clone();
    let server = format!("upstream_server={}", nginx.address());
    for part in
        [&format!("request_id=\"{id}\""), &server, "upstream_us=", "path=\"/path\"", "client=127.0.0.1"]
    {
        assert!(line.contains(part), "no {part}: {line}");
    }
    assert!(!line.contains("secret") && !line.contains("teapot"), "{line}");

    let change = |gateway: &mut Gateway, text: &str| {
        std::fs::write(&log, "").expect("emptying");
        let reloads = gateway.metric("quadrille_reloads_total", &["\"ok\""]);
        file.replace(text);
        gateway.wait_for_metric("quadrille_reloads_total", &["\"ok\""], |now| now > reloads);
    };
    let more = "request_ids: on\naccess_log_fields: [query, user_agent, request_id]\n";
    change(&mut gateway, &text(more, trusting));
    assert_eq!(ask(&gateway), "of-the-client", "a trusted proxy's");
    let line = lines(&log, 1)[0].clone();
    let told = "query=\"secret=1\" user_agent=\"teapot\" request_id=\"of-the-client\"";
    assert!(line.ends_with(told), "{line}");

    change(&mut gateway, &text("", trusting));
    assert_eq!(ask(&gateway), "of-the-client", "headers are not changed unless configured");
}

#[test]
fn lines_in_json_name_no_sources_and_plain_text_is_called_so() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let plain = "{address: \"127.0.0.1:0\", tls: off, respond: ok}".to_owned();
    let file = Configuration::new(&document(&[plain, listener(&pair, "respond: ok")], ""));
    let mut command = serve();
    command.args(["--log-format", "json", "--config"]).arg(file.path());
    let gateway = Gateway::start(command, 2);
    let log = gateway.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().all(|line| line.get("target").is_none() && line.get("filename").is_none()), "{log}");
    let said = |index: usize| {
        let address = gateway.address(index).to_string();
        let line = lines.iter().find(|line| line["address"] == address.as_str());
        line.and_then(|line| line["message"].as_str()).unwrap_or_default().to_owned()
    };
    assert_eq!((said(0), said(1)), ("serving plain text".to_owned(), "serving HTTPS".to_owned()), "{log}");
}

fn check_text(lines: &[String]) {
    for (line, fields) in lines.iter().zip([
        &[
            "tls_version=\"TLSv1.3\"",
            "cipher=\"TLS_AES_",
            "resumed=false",
            "handshake_us=",
            "key_us=",
            "batch=1",
        ][..],
        &["tls_version=\"TLSv1.3\"", "resumed=true", "handshake_us=", "status=200"],
        &[
            "tls_version=\"TLSv1.2\"",
            "resumed=false",
            "path=\"/path\"",
            "protocol=\"HTTP/2\"",
            "sni=\"localhost\"",
        ],
    ]) {
        for field in fields {
            assert!(line.contains(field), "no {field}: {line}");
        }
    }
    assert!(!lines[1].contains("key_us") && !lines[1].contains("batch"), "no key operation: {}", lines[1]);
    assert!(!lines[2].contains("secret"), "queries may hold secrets: {}", lines[2]);
}

fn check_json(lines: &[String]) {
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [full, resumed, old] = &lines[..] else { panic!("three lines: {lines:?}") };
    for (line, version) in [(full, "TLSv1.3"), (resumed, "TLSv1.3"), (old, "TLSv1.2")] {
        assert_eq!(line["tls_version"], version, "{line}");
        assert!(line["cipher"].as_str().is_some_and(|cipher| cipher.starts_with("TLS_")), "{line}");
        assert!(line["handshake_us"].as_u64().is_some_and(|time| time > 0), "{line}");
        assert_eq!(line["status"], 200, "{line}");
        assert_eq!(line["sni"], "localhost", "{line}");
        assert_eq!(line["bytes"], 2, "{line}");
    }
    for line in [full, old] {
        assert_eq!(line["resumed"], false, "{line}");
        assert_eq!(line["batch"], 1, "{line}");
        let key = line["key_us"].as_u64().expect("a time");
        assert!(key > 0 && key <= line["handshake_us"].as_u64().expect("a time"), "{line}");
    }
    assert_eq!(resumed["resumed"], true, "{resumed}");
    assert_eq!(resumed.get("key_us"), None, "{resumed}");
}
