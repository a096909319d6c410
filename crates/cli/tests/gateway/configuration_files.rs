//! Configuration files: several files, variables, standard input, warnings, `check`, `schema` and `explain`.

use crate::support::{
    Certificates, Configuration, Gateway, configuration::replace, curl, document, eventually, listener,
    output, quadrille, serve, succeed,
};
use serde_json::Value;
use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// Runs a command; returns its exit status and both streams.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("quadrille");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A directory with `quadrille.yaml`, and the sites that it includes.
fn sites(main: &str, others: &[(&str, &str)]) -> Configuration {
    let file = Configuration::new(main);
    for (name, text) in others {
        let path = sibling(&file, name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("creating");
        fs::write(path, text).expect("writing");
    }
    file
}

fn sibling(file: &Configuration, name: &str) -> std::path::PathBuf {
    file.path().parent().expect("a directory").join(name)
}

const PLAIN: &str = "listeners: [{address: '127.0.0.1:1', tls: off, respond: hi}]\n";
const STICKY: &str = "listeners:\n  - address: 127.0.0.1:0\n    tls: off\n    routes:\n      - path: /\n        upstream: web\n        sticky: [client_ip]\nupstreams: {web: {servers: ['127.0.0.1:1']}}\nadmin: 127.0.0.1:0\nlame_duck: 0s\n";
const IGNORED: &str =
    ":7: listeners[0].routes[0].sticky: ignored: the upstream `web` does not have `balance: hash`";

#[test]
fn included_files_are_served_and_watched() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let site = |answer: &str| format!("listeners: [{}]\n", listener(&pair, &format!("respond: {answer}")));
    let main = "include: [sites/*.yaml]\nadmin: 127.0.0.1:0\nlame_duck: 0s\n";
    let file = sites(main, &[("sites/a.yaml", &site("first"))]);
    let mut gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "first");
    replace(&sibling(&file, "sites/a.yaml"), site("second").as_bytes());
    eventually("a change of an included file is not served", || {
        curl(&gateway, &certificates, &[], "/") == "second"
    });
    // A file that is added by name of the pattern, first with a mistake.
    let added = sibling(&file, "sites/b.yaml");
    replace(&added, b"upstreams: {web: {servrs: ['127.0.0.1:1']}}\n");
    gateway.wait_for_log("sites/b.yaml:1: upstreams.web.servrs: unknown key; did you mean `servers`?");
    replace(&added, b"upstreams: {web: {servers: ['127.0.0.1:1']}}\n");
    eventually("an added file is not used", || gateway.admin_page("/config").contains("\"web\""));
    fs::remove_file(&added).expect("removing");
    eventually("a removed file is still used", || !gateway.admin_page("/config").contains("\"web\""));
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "second");
}

#[test]
fn variables_and_files_give_values() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = document(&[listener(&pair, "respond: '${GREETING:-none} $file{name} $${X}'")], "");
    let file = sites(&text, &[("name", "world\n")]);
    let mut command = serve();
    command.arg(file.path()).env("GREETING", "hello");
    let gateway = Gateway::start(command, 1);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "hello world ${X}");
    replace(&sibling(&file, "name"), b"moon\n");
    eventually("a change of the file is not served", || {
        curl(&gateway, &certificates, &[], "/") == "hello moon ${X}"
    });
    let unset =
        Configuration::new("listeners:\n  - address: ${QUADRILLE_NO_SUCH}\n    tls: off\n    respond: a\n");
    let (status, _, said) = run(quadrille("check").arg(unset.path()));
    assert_eq!(status, Some(1));
    assert!(
        said.contains(":2: listeners[0].address: the environment variable `QUADRILLE_NO_SUCH` is not set"),
        "{said}"
    );
}

#[test]
fn standard_input_is_a_configuration() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let directory = pair.chain.parent().expect("a directory");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let text = format!(
        "listeners: [{{address: '127.0.0.1:0', certificates: [{{chain: {}, key: {}}}], respond: hi}}]\n",
        name(&pair.chain),
        name(&pair.key)
    );
    let check = |text: &str| {
        let mut command = quadrille("check");
        command.args(["-", "--base-directory"]).arg(directory);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("quadrille");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("writing");
        let output = child.wait_with_output().expect("quadrille");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert_eq!(check(&text), "standard input: ok (1 listener, 0 upstreams)\n");
    let said = check(&text.replace("respond", "respnd"));
    assert!(said.contains("quadrille: standard input:1: listeners[0].respnd: unknown key"), "{said}");
}

#[test]
fn all_forms_of_the_command_line_name_a_file() {
    let file = Configuration::new(PLAIN);
    for arguments in [&["check"][..], &["check", "--config"], &["check", "-c"], &["-t"]] {
        let said = succeed(quadrille(arguments[0]).args(&arguments[1..]).arg(file.path()));
        assert!(said.contains("ok (1 listener, 0 upstreams)"), "{said}");
    }
    let said = succeed(quadrille("-c").arg(file.path()).args(["--mode", "validate"]));
    assert!(said.contains("ok (1 listener, 0 upstreams)"), "{said}");
    let served = Configuration::new(&format!("{}admin: 127.0.0.1:0\n", PLAIN.replace(":1'", ":0'")));
    for arguments in [&["serve"][..], &["serve", "--config"], &["serve", "-c"], &["-c"]] {
        let mut command = quadrille(arguments[0]);
        command.args(&arguments[1..]).arg(served.path());
        Gateway::start(command, 1);
    }
    let envoys = Configuration::new("static_resources: {listeners: []}\n");
    for command in ["serve", "check"] {
        let (status, _, said) = run(quadrille(command).arg(envoys.path()));
        assert_eq!(status, Some(if command == "check" { 1 } else { 2 }), "{said}");
        assert!(said.contains(":1: static_resources: this is an Envoy bootstrap; serve it by `quadrille serve --envoy-config"), "{said}");
    }
}

#[test]
fn warnings_are_shown_everywhere() {
    let file = Configuration::new(STICKY);
    let (status, said, warned) = run(quadrille("check").arg(file.path()));
    assert_eq!(status, Some(0), "{warned}");
    assert!(said.contains("ok (1 listener, 1 upstream)"), "{said}");
    assert!(warned.contains(&format!("warning: {}{IGNORED}", file.path().display())), "{warned}");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_log(IGNORED);
    let shown = |gateway: &Gateway, page: &str| {
        let page: Value = serde_json::from_str(&gateway.admin_page(page)).expect("JSON");
        page["warnings"].to_string()
    };
    for page in ["/config", "/status"] {
        assert!(shown(&gateway, page).contains(IGNORED), "{page}");
    }
    file.replace(&STICKY.replace("['127.0.0.1:1']", "['127.0.0.1:1'], balance: hash"));
    eventually("the warning stays", || shown(&gateway, "/config") == "null");
    assert_eq!(shown(&gateway, "/status"), "[]");
    let before = gateway.log().matches(IGNORED).count();
    file.replace(STICKY);
    eventually("a reload does not warn", || gateway.log().matches(IGNORED).count() > before);
}

#[test]
fn strict_refuses_warnings() {
    let file = Configuration::new(STICKY);
    let (status, _, said) = run(quadrille("check").arg("--strict").arg(file.path()));
    assert!(
        status == Some(1) && said.contains(&format!("quadrille: {}{IGNORED}", file.path().display())),
        "{said}"
    );
    let (status, _, said) = run(quadrille("serve").arg("--strict").arg(file.path()));
    assert!(status == Some(2) && said.contains(IGNORED), "{said}");
    let good = STICKY.replace("['127.0.0.1:1']", "['127.0.0.1:1'], balance: hash");
    file.replace(&good);
    let mut command = serve();
    command.arg("--strict").arg(file.path());
    let mut gateway = Gateway::start(command, 1);
    file.replace(STICKY);
    gateway.wait_for_log("the old configuration stays in service");
    let page = gateway.admin_page("/config");
    assert!(page.contains("\"balance\": \"hash\""), "{page}");
}

#[test]
fn suites_that_no_certificate_can_use_have_a_warning() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let with = |suites: &str| {
        let keys = format!("respond: ok, tls: {{cipher_suites: [{suites}]}}");
        let file = Configuration::new(&document(&[listener(&pair, &keys)], ""));
        let (ok, said) = output(quadrille("check").arg(file.path()));
        assert!(ok, "{said}");
        said
    };
    let said = with("ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256");
    assert!(said.contains("no certificate can use ECDHE-RSA-AES128-GCM-SHA256 in `cipher_suites`"), "{said}");
    let said = with("ECDHE-ECDSA-AES128-GCM-SHA256");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn check_finds_an_access_log_that_cannot_be_opened() {
    let file = sites("", &[("log/there", "")]);
    let with = |log: &str| {
        file.replace(&format!("{PLAIN}access_log: {log}\n"));
        run(quadrille("check").arg(file.path()))
    };
    for log in ["missing/access.log", "log"] {
        let (status, _, said) = with(log);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("quadrille.yaml:2: access_log: cannot open the access log"), "{said}");
    }
    let (status, _, said) = with("log/new");
    assert_eq!(status, Some(0), "{said}");
    assert!(!sibling(&file, "log/new").exists(), "a check creates no file");
    file.replace(&format!("{PLAIN}access_log: missing/access.log\n"));
    let (status, _, said) = run(quadrille("check").arg("--offline").arg(file.path()));
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn an_offline_check_reads_the_configuration_alone() {
    let text = "listeners: [{address: '127.0.0.1:1', certificates: [{chain: no.pem, key: no.key}], upstream: web}]\nupstreams: {web: {servers: ['nowhere.invalid:80']}}\n";
    let file = Configuration::new(text);
    let (status, said, warned) = run(quadrille("check").arg("--offline").arg(file.path()));
    assert_eq!((status, &*warned), (Some(0), ""), "{said}");
    assert_eq!(run(quadrille("check").arg(file.path())).0, Some(1));
    file.replace(&text.replace("upstream: web", "upstream: wbe"));
    let (status, _, said) = run(quadrille("check").arg("--offline").arg(file.path()));
    assert!(status == Some(1) && said.contains("did you mean `web`?"), "{said}");
    assert_eq!(run(quadrille("check").args(["--offline", "--no-such-flag"])).0, Some(2));
}

#[test]
fn findings_are_printed_as_json() {
    let file = Configuration::new(STICKY);
    let list = |arguments: &[&str]| {
        let (status, said, _) = run(quadrille("check").arg("--json").args(arguments).arg(file.path()));
        (status, serde_json::from_str::<Value>(&said).expect("JSON"))
    };
    let (status, found) = list(&[]);
    assert_eq!(status, Some(0));
    let warning = &found[0];
    assert_eq!(warning["file"], file.path().display().to_string());
    assert_eq!(
        (&warning["line"], &warning["column"], &warning["level"], &warning["key"]),
        (&7.into(), &9.into(), &"warning".into(), &"listeners[0].routes[0].sticky".into())
    );
    assert!(warning["message"].as_str().is_some_and(|text| text.starts_with("ignored: the upstream `web`")));
    let (status, found) = list(&["--strict"]);
    assert_eq!((status, &found[0]["level"]), (Some(1), &"error".into()));
    file.replace("listeners: [\n");
    let (status, found) = list(&["--offline"]);
    assert_eq!((status, &found[0]["level"]), (Some(1), &"error".into()));
    file.replace(PLAIN);
    assert_eq!(list(&[]), (Some(0), Value::Array(Vec::new())));
}

#[test]
fn findings_are_printed_as_sarif() {
    let file = Configuration::new(STICKY);
    let report = |arguments: &[&str]| {
        let (status, said, _) = run(quadrille("check").arg("--sarif").args(arguments).arg(file.path()));
        (status, serde_json::from_str::<Value>(&said).expect("JSON"))
    };
    let (status, report_of_one) = report(&[]);
    assert_eq!((status, &report_of_one["version"]), (Some(0), &"2.1.0".into()));
    let run_of_one = &report_of_one["runs"][0];
    let result = &run_of_one["results"][0];
    assert_eq!(
        (&result["level"], &result["ruleId"]),
        (&"warning".into(), &"suspicious-configuration".into())
    );
    let rules = run_of_one["tool"]["driver"]["rules"].as_array().expect("a list");
    assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{rules:?}");
    let location = &result["locations"][0];
    let region = &location["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&7.into(), &9.into()));
    let uri = location["physicalLocation"]["artifactLocation"]["uri"].as_str().expect("a URI");
    assert_eq!(uri, format!("file://{}", file.path().display()));
    assert_eq!(location["logicalLocations"][0]["fullyQualifiedName"], "listeners[0].routes[0].sticky");
    file.replace("listeners: [\n");
    let (status, failed) = report(&["--offline"]);
    assert_eq!((status, &failed["runs"][0]["results"][0]["level"]), (Some(1), &"error".into()));
    file.replace(PLAIN);
    assert_eq!(report(&[]).1["runs"][0]["results"], Value::Array(Vec::new()));
    let (status, _, said) = run(quadrille("check").args(["--json", "--sarif"]).arg(file.path()));
    assert_eq!(status, Some(2), "{said}");
}

#[test]
fn files_are_formatted() {
    use std::os::unix::fs::PermissionsExt;
    let wide =
        "# A site.\nlisteners:\n- address: 127.0.0.1:1   # Here.\n  tls: off\n  respond:\n      body: hi\n";
    let formatted = "# A site.\nlisteners:\n  - address: 127.0.0.1:1   # Here.\n    tls: off\n    respond:\n      body: hi\n";
    let file = sites(wide, &[("bad.yaml", "listeners: [\n")]);
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).expect("its mode");
    let (status, _, said) = run(quadrille("fmt").arg("--check").arg(file.path()));
    assert!(status == Some(1) && said.contains("is not formatted; run `quadrille fmt "), "{said}");
    assert_eq!(fs::read_to_string(file.path()).expect("the file"), wide, "a check changes nothing");
    assert_eq!(run(quadrille("fmt").arg(file.path())).0, Some(0));
    assert_eq!(fs::read_to_string(file.path()).expect("the file"), formatted);
    assert_eq!(fs::metadata(file.path()).expect("the file").permissions().mode() & 0o777, 0o640);
    assert_eq!(run(quadrille("fmt").arg("--check").arg(file.path())).0, Some(0));
    let said = succeed(quadrille("fmt").arg("-").stdin(fs::File::open(file.path()).expect("the file")));
    assert_eq!(said, formatted);
    let bad = sibling(&file, "bad.yaml");
    let (status, _, said) = run(quadrille("fmt").args([&bad, &file.path()]));
    assert!(status == Some(1) && said.contains("bad.yaml:"), "{said}");
    assert_eq!(fs::read_to_string(&bad).expect("the file"), "listeners: [\n");
}

#[test]
fn the_schema_and_the_reference_are_printed() {
    let schema: Value = serde_json::from_str(&succeed(&mut quadrille("schema"))).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["listeners"]["description"].is_string());
    let said = succeed(quadrille("explain").arg("listeners.routes.retry"));
    assert!(
        said.starts_with("listeners.routes.retry: mapping\n") && said.contains("\n  on: list of "),
        "{said}"
    );
    assert!(succeed(&mut quadrille("explain")).contains("  listeners: list of listeners"));
    let (ok, said) = output(quadrille("explain").arg("listeners.adress"));
    assert!(!ok && said.contains("did you mean `listeners.address`?"), "{said}");
}
