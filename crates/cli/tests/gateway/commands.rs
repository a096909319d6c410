//! The other commands: check and demo.

use crate::support::{Certificates, Configuration, Pair, document, listener, output, quadrille, succeed};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

#[test]
fn check_accepts_what_can_be_served() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = document(&[listener(&pair, "upstream: web")], "web: {servers: [\"127.0.0.1:8080\"]}");
    let file = Configuration::new(&text);
    let said = succeed(quadrille("check").arg(file.path()));
    assert!(said.contains("quadrille.yaml: ok (1 listeners, 1 upstreams)"), "{said}");
}

#[test]
fn check_names_every_mistake_with_its_line() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let other = certificates.ecdsa("P-384", &["localhost"]);
    let mixed = Pair { chain: pair.chain.clone(), key: other.key };
    for (text, complaints) in [
        ("listeners: [{addres: 1}]\n".to_owned(), &["quadrille.yaml:1", "address"][..]),
        (document(&[listener(&mixed, "respond: ok")], ""), &["quadrille.yaml:4", "key"]),
        (document(&[listener(&pair, "upstream: web")], ""), &["quadrille.yaml:4", "web"]),
        (
            document(&[listener(&pair, "upstream: web")], "web: {servers: [\"nowhere.invalid:80\"]}"),
            &["quadrille.yaml:5", "cannot resolve nowhere.invalid"],
        ),
    ] {
        let file = Configuration::new(&text);
        let output = quadrille("check").arg(file.path()).output().expect("quadrille");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {said}");
        assert!(complaints.iter().all(|complaint| said.contains(complaint)), "{text}: {said}");
    }
    let (ok, said) = output(quadrille("check").arg("no-such-file.yaml"));
    assert!(!ok && said.contains("no-such-file.yaml"), "{said}");
}

#[test]
fn demo_serves_and_the_commands_that_it_prints_work() {
    let mut demo = Running(
        quadrille("demo")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("quadrille"),
    );
    let lines = BufReader::new(demo.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let said: Vec<_> = lines.take_while(|line| !line.starts_with("Stop it")).collect();
    let commands: Vec<_> = said.iter().filter_map(|line| line.strip_prefix("    curl ")).collect();
    assert_eq!(commands.len(), 3, "{said:?}");
    for command in commands {
        let answer = succeed(Command::new("curl").args(["-sS", "--max-time", "30"]).args(command.split(' ')));
        let expected =
            if command.ends_with("/hello") { "Hello from Quadrille." } else { "quadrille_handshakes_total" };
        assert!(answer.contains(expected), "{command}: {answer}");
    }
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
