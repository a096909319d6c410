//! PEM files uploaded by other users: they do not give access to a key of this machine.

use crate::support::{Site, module, quadrille};
use base64ct::{Base64, Encoding};

/// Returns a block for a key.
fn block(uri: &str) -> String {
    let text = Base64::encode_string(uri.as_bytes());
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
    let lines: String = lines.collect();
    format!("-----BEGIN QUADRILLE KEY-----\n{lines}-----END QUADRILLE KEY-----\n")
}

/// Returns whether nginx's OpenSSL signs with the key of such a block, and its output.
fn load(site: &Site, uri: &str) -> (bool, String) {
    load_file(site, &block(uri))
}

fn load_file(site: &Site, text: &str) -> (bool, String) {
    site.write("uploaded.pem", text);
    let mut command = site.plain(&quadrille().display().to_string());
    command.args(["provider", "check", "nginx", "--key", "uploaded.pem", "--pem-keys", "."]);
    let output = command.arg("--module").arg(module()).output().expect("quadrille");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn byte_order_marks_are_skipped_and_damage_is_an_error() {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    let block = block(&format!("quadrille:file:{}", site.path_text("rsa.key")));
    for text in [format!("\u{feff}{block}"), format!("text\n\u{feff}{block}")] {
        let (signs, said) = load_file(&site, &text);
        assert!(signs, "{text}: {said}");
    }
    let cut = block.split("-----END").next().expect("the beginning");
    for damaged in [
        cut.to_owned(),
        block.replace("END QUADRILLE", "END OTHER"),
        block.replace("BEGIN QUADRILLE KEY-----\n", "BEGIN QUADRILLE KEY-----\n!"),
    ] {
        let (signs, said) = load_file(&site, &damaged);
        assert!(!signs && said.contains("QUADRILLE KEY block is damaged"), "{damaged}: {said}");
    }
}

#[test]
fn keys_that_are_not_listed_are_not_found_whether_they_exist_or_not() {
    let (site, elsewhere) = (Site::new(), Site::new());
    site.certificate("rsa", "rsa:2048");
    elsewhere.certificate("rsa", "rsa:2048");
    let (signs, said) = load(&site, &format!("quadrille:file:{}", site.path_text("rsa.key")));
    assert!(signs, "it is listed: {said}");
    let pipe = site.path_text("pipe");
    site.plain("mkfifo").arg(&pipe).status().expect("mkfifo");
    let (there, socket) = (elsewhere.path_text("rsa.key"), elsewhere.path_text("keys.sock"));
    let within = site.path_text("").trim_end_matches('/').to_owned();
    let refused = [
        format!("quadrille:file:{there}"),
        format!("quadrille:file:{there}.missing"),
        format!("quadrille:file:{within}/..{}", there.trim_start_matches("/tmp")),
        format!("quadrille:file:{pipe}"),
        format!("quadrille:file:{}", site.path_text("missing.key")),
        format!("quadrille:unix:{socket}?key={}", site.path_text("rsa.pem")),
        format!("quadrille:unix:{}?key={}", site.path_text("k.sock"), elsewhere.path_text("rsa.pem")),
        format!(
            "quadrille:unix:{}?key={}&fallback={there}",
            site.path_text("k.sock"),
            site.path_text("rsa.pem")
        ),
        "quadrille:nonsense".to_owned(),
    ];
    let mut said = refused.iter().map(|uri| {
        let (loaded, said) = load(&site, uri);
        assert!(!loaded && said.contains("pem-keys in openssl.cnf does not list"), "{uri}: {said}");
        said
    });
    let first = said.next().expect("one");
    assert!(said.all(|other| other == first), "{first:?}");
}
