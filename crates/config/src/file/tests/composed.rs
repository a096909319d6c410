//! Documents of several files, merge keys and `x-` blocks, and warnings.

use super::{listener, mistakes, parsed};
use crate::{
    Diagnostics,
    file::{ConfigurationFile, Loaded},
};
use std::fs;

/// Files in a directory of their own, of which `main.yaml` is read.
fn read(files: &[(&str, &str)]) -> (Result<Loaded, Diagnostics>, Vec<String>, String) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let base = format!("{}/", directory.path().display());
    let file = ConfigurationFile::open(&directory.path().join("main.yaml"), None).unwrap();
    let read = file.read();
    let files = file.files().iter().map(|file| file.display().to_string().replace(&base, "")).collect();
    (read, files, base)
}

fn refused(files: &[(&str, &str)]) -> String {
    let (read, _, base) = read(files);
    read.expect_err("accepted").to_string().replace(&base, "")
}

fn warnings(text: &str) -> Vec<String> {
    let (read, _, base) = read(&[("main.yaml", text)]);
    let warnings = read.unwrap_or_else(|errors| panic!("{errors}")).warnings;
    warnings.iter().map(|warning| warning.to_string().replace(&base, "")).collect()
}

const SITE_A: &str =
    "listeners: [{address: '127.0.0.1:1', tls: off, upstream: a}]\nupstreams: {a: {servers: ['a:1']}}\n";
const SITE_B: &str = "listeners:\n  - address: 127.0.0.1:2\n    certificates: [{chain: c.pem, key: k.pem}]\n    upstream: b\nupstreams: {b: {servers: ['b:1']}}\n";

#[test]
fn lists_are_appended_and_mappings_merged() {
    let main = "include: [sites/*.yaml]\nlisteners: [{address: '127.0.0.1:3', tls: off, respond: hi}]\n";
    let (read, files, base) = read(&[
        ("main.yaml", main),
        ("sites/b.yaml", SITE_B),
        ("sites/a.yaml", SITE_A),
        ("sites/c.txt", "x"),
    ]);
    let gateway = read.unwrap_or_else(|errors| panic!("{errors}")).gateway;
    let ports: Vec<_> = gateway.listeners.iter().map(|listener| listener.address.port()).collect();
    assert_eq!(ports, [3, 1, 2], "the file's own come first, then the others in alphabetical order");
    assert_eq!(gateway.upstreams.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(files, ["sites", "sites/a.yaml", "sites/b.yaml"]);
    let tls = gateway.listeners[2].chains[0].tls.as_ref().unwrap();
    let chain = tls.certificates[0].chain.path().unwrap().display().to_string();
    assert_eq!(chain, format!("{base}sites/c.pem"), "paths are relative to the file that names them");
}

#[test]
fn mistakes_name_the_included_file() {
    let main = "include: [sites/*.yaml]\nthreads: 2\n";
    let wrong = "listeners:\n  - address: 127.0.0.1:1\n    tls: off\n    respnd: hi\n";
    assert_eq!(
        refused(&[("main.yaml", main), ("sites/a.yaml", wrong)]).lines().next(),
        Some(
            "sites/a.yaml:2: listeners[0]: no destination for connections; add `upstream`, `respond` or `routes`"
        )
    );
    assert!(
        refused(&[("main.yaml", main), ("sites/a.yaml", wrong)])
            .contains("sites/a.yaml:4: listeners[0].respnd: unknown key; did you mean `respond`?")
    );
    let twice = refused(&[("main.yaml", main), ("sites/a.yaml", SITE_A), ("sites/b.yaml", "threads: 3\n")]);
    assert_eq!(twice, "sites/b.yaml:1: threads: already set at main.yaml:2; remove one");
    let twice = refused(&[("main.yaml", main), ("sites/a.yaml", SITE_A), ("sites/b.yaml", SITE_A)]);
    assert!(
        twice.contains("sites/b.yaml:2: upstreams.a: already set at sites/a.yaml:2; remove one")
            && twice.contains("sites/b.yaml:1: listeners[1].address: the listener on sites/a.yaml:1 already uses 127.0.0.1:1"),
        "{twice}"
    );
    let syntax = refused(&[("main.yaml", main), ("sites/a.yaml", "threads: 2\nlisteners: [")]);
    assert!(syntax.starts_with("sites/a.yaml:") && syntax.contains(": not valid YAML"), "{syntax}");
    let missing = refused(&[("main.yaml", "include: [a.yaml]\n")]);
    assert!(
        missing.starts_with("main.yaml:1: include[0]: ") && missing.contains("cannot be read"),
        "{missing}"
    );
    let (_, files, _) = read(&[("main.yaml", "include: [a.yaml]\n")]);
    assert_eq!(files, ["a.yaml"], "a missing file is watched, too");
    let cycle = refused(&[("main.yaml", "include: [a.yaml]"), ("a.yaml", "include: [main.yaml]")]);
    assert!(cycle.starts_with("a.yaml:1: include[0]: ") && cycle.contains("includes itself"), "{cycle}");
}

#[test]
fn variables_are_replaced() {
    let text = "x-common: &common {tls: off}\nlisteners:\n  - <<: *common\n    address: ${QUADRILLE_NO_SUCH:-127.0.0.1:7}\n    respond: $file{body.txt}\n  - {<<: *common, address: '127.0.0.1:8', respond: '$${A}'}\n";
    let (loaded, files, _) = read(&[("main.yaml", text), ("body.txt", "hello\n")]);
    let gateway = loaded.unwrap_or_else(|errors| panic!("{errors}")).gateway;
    assert_eq!(gateway.listeners[0].address.port(), 7);
    let shown = crate::show(&gateway);
    assert_eq!(shown["listeners"][0]["routes"][0]["respond"]["body"], "hello");
    assert_eq!(shown["listeners"][1]["routes"][0]["respond"]["body"], "$${A}", "as it would be written");
    assert!(files.ends_with(&["body.txt".to_owned()]), "{files:?}");
    let unset = "listeners:\n  - address: ${QUADRILLE_NO_SUCH}\n    tls: off\n    respond: hi\n";
    let said = mistakes(unset);
    assert!(
        said.starts_with(
            "q.yaml:2: listeners[0].address: the environment variable `QUADRILLE_NO_SUCH` is not set; set it"
        ),
        "{said}"
    );
}

#[test]
fn merge_keys_yield_to_what_is_written() {
    let text = "x-a: &a {tls: off, respond: a}\nx-b: &b {respond: b, mode: http}\nlisteners: [{<<: [*a, *b], address: '127.0.0.1:1'}, {<<: *b, <<: *a, address: '127.0.0.1:2', respond: c}]";
    let shown = crate::show(&parsed(text));
    assert_eq!(shown["listeners"][0]["routes"][0]["respond"]["body"], "a");
    assert_eq!(shown["listeners"][1]["routes"][0]["respond"]["body"], "c");
    assert_eq!(
        mistakes("listeners: [{<<: 1, address: '127.0.0.1:1', tls: off, respond: a}]"),
        "q.yaml:1: listeners[0].<<: not a mapping; name mappings only: `<<: *name`"
    );
}

#[test]
fn envoys_form_is_recognized() {
    let said = mistakes("static_resources: {listeners: []}");
    assert!(said.starts_with("q.yaml:1: static_resources: this is an Envoy bootstrap; serve it by `quadrille serve --envoy-config q.yaml`"), "{said}");
    assert!(mistakes("admin: {address: {socket_address: {}}}\nlisteners: []").contains("an Envoy bootstrap"));
}

#[test]
fn settings_without_effect_have_warnings() {
    let plain = "listeners: [{address: '127.0.0.1:1', tls: off, ROUTES}]\nupstreams: {web: {servers: ['a:1']}, hashed: {servers: ['a:1'], balance: hash}}";
    let with = |routes: &str| warnings(&plain.replace("ROUTES", routes));
    assert_eq!(with("routes: [{upstream: hashed, sticky: [client_ip]}]"), [""; 0]);
    assert_eq!(
        with("routes: [{upstream: web, sticky: [client_ip]}]"),
        [
            "main.yaml:1: listeners[0].routes[0].sticky: ignored: the upstream `web` does not have `balance: hash`; add \
          `balance: hash` to the upstream, or remove `sticky`"
        ]
    );
    assert_eq!(
        with("routes: [{split: [{upstream: web}, {upstream: hashed}], sticky: [client_ip]}]").len(),
        1
    );
    assert_eq!(
        with("upstream: web, basic_auth: users"),
        ["main.yaml:1: listeners[0].basic_auth: clients send their passwords in plain text: `tls` is `off`"]
    );
    let open =
        with("upstream: web").len() + warnings(&format!("admin: 9901\n{}", listener("respond: hi"))).len();
    assert_eq!(open, 0, "a port alone is loopback");
    let open = warnings(&format!("admin: {{address: '0.0.0.0:9901'}}\n{}", listener("respond: hi")));
    assert!(open.len() == 1 && open[0].starts_with("main.yaml:1: admin.address: the dashboard"), "{open:?}");
    let named = listener("respond: hi");
    assert_eq!(
        warnings(&format!("admin: {{address: '0.0.0.0:9901', hosts: [a.internal]}}\n{named}")),
        [""; 0]
    );
    let empty = warnings(&format!("include: [none/*.yaml]\n{}", listener("respond: hi")));
    assert_eq!(empty, ["main.yaml:1: include[0]: no file matches `none/*.yaml`; remove it, or add a file"]);
}

#[test]
fn clients_of_a_neighbour_have_a_warning() {
    let text = "listeners:\n  - {address: '127.0.0.1:1', certificates: [{chain: c, key: k}], respond: a, match: {server_names: [a.example]}, clients: {deny: [10.0.0.0/8]}}\n  - {address: '127.0.0.1:1', certificates: [{chain: c, key: k}], respond: b, match: {server_names: [NAME], application_protocols: [h2]}}\n";
    let found = warnings(&text.replace("NAME", "A.example"));
    assert!(
        found.len() == 1
            && found[0].starts_with(
                "main.yaml:2: listeners[0].clients: the listener on line 3 has the same address and names"
            ),
        "{found:?}"
    );
    assert_eq!(warnings(&text.replace("NAME", "b.example")), [""; 0]);
}

#[test]
fn a_redirect_to_itself_is_refused() {
    let message = "listeners[0].routes[0].redirect: a loop: requests of this listener already use HTTPS; write this route in \
                   a listener with `tls: off`, or add `host` or `path`";
    for redirect in ["https", "{scheme: https}", "{scheme: https, status: 308}"] {
        let said = mistakes(&listener(&format!("respond: hi, routes: [{{path: /a, redirect: {redirect}}}]")));
        assert_eq!(said, format!("q.yaml:1: {message}"), "{redirect}");
    }
    for route in [
        "redirect: {scheme: https, host: a.example}",
        "redirect: {scheme: https, path: /b}",
        "headers: [{name: x-forwarded-proto, exact: http}], redirect: https",
    ] {
        parsed(&listener(&format!("respond: hi, routes: [{{path: /a, {route}}}]")));
    }
    parsed("listeners: [{address: '127.0.0.1:1', tls: off, routes: [{redirect: https}]}]");
}

#[test]
fn common_slips_have_remedies() {
    let said = mistakes(
        "listeners: [{address: '127.0.0.1:1', tls: off, routes: [{host: *.example.com, respond: a}]}]",
    );
    assert!(said.contains("a value that begins with `*` needs quotes: \"*.example.com\""), "{said}");
    let said = mistakes("listeners: [{address: ${A}, tls: off, respond: a}]");
    assert!(said.contains("a value with `${...}` needs quotes"), "{said}");
    for (size, meant) in [("10m", "10MiB"), ("1G", "1GiB"), ("64kb", "64KiB"), ("5 MB", "5MiB")] {
        let said = mistakes(&listener(&format!("respond: a, limits: {{body: {size}}}")));
        assert!(said.contains(&format!("is not a size; write `{meant}`")), "{said}");
    }
    for (key, remedy) in [("root", "files are not served"), ("cache", "responses are not cached")] {
        let said = mistakes(&listener(&format!("respond: a, {key}: x")));
        assert!(said.contains(remedy) && !said.contains("did you mean"), "{said}");
    }
}
