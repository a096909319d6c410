//! The other commands: check, demo, and the files of a package.

use crate::support::{
    Certificates, Configuration, Pair, document, listener, logs, output, ports, quadrille, succeed,
};
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
    assert!(said.contains("quadrille.yaml: ok (1 listener, 1 upstream)"), "{said}");
}

#[test]
fn t_is_what_check_is_elsewhere() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "respond: ok")], ""));
    let said = succeed(quadrille("-t").arg(file.path()));
    assert!(said.contains("quadrille.yaml: ok"), "{said}");
}

#[test]
fn the_version_names_the_build_and_what_this_cpu_has() {
    let said = succeed(&mut quadrille("--version"));
    let [version, boringssl, lanes] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(version.starts_with(concat!("quadrille ", env!("CARGO_PKG_VERSION"), " (")), "{said}");
    assert!(boringssl.starts_with("BoringSSL of boring-sys ") && !boringssl.ends_with("unknown"), "{said}");
    let without = succeed(quadrille("--version").env("QUADRILLE_CPU", "portable"));
    assert!(
        lanes.starts_with("lanes of this CPU: ") && without.contains("one operation at a time"),
        "{without}"
    );
    let short = succeed(&mut quadrille("-V"));
    assert_eq!(short.lines().count(), 1, "{short}");
}

/// `-h` prints a summary, and `--help` includes examples.
#[test]
fn help_has_examples() {
    for (command, example) in [
        ("serve", "quadrille serve quadrille.yaml"),
        ("check", "`quadrille -t FILE` is equivalent"),
        ("keyserver", "quadrille keyserver --keys /etc/quadrille/keys"),
        ("demo", "https://localhost:8443"),
        ("bench", "quadrille bench https://example.com/ --rate 500"),
        ("completions", "quadrille completions bash >"),
    ] {
        let [long, short] = ["--help", "-h"].map(|flag| succeed(quadrille(command).arg(flag)));
        assert!(long.contains(example) && !short.contains(example), "{command}: {long}");
        // Both start with the text of the list of commands.
        let summary = short.lines().next().expect("a summary");
        let beginning: String = summary.chars().take(40).collect();
        assert!(long.starts_with(&beginning), "{command}: {long}");
        assert!(succeed(&mut quadrille("--help")).contains(&beginning), "{command}");
    }
}

#[test]
fn completions_are_scripts_that_their_shell_reads() {
    let script = tempfile::NamedTempFile::new().expect("a file");
    let complete = "COMP_WORDS=(quadrille keys); COMP_CWORD=1; _quadrille quadrille keys quadrille; echo ${COMPREPLY[*]}";
    // In a file: it is longer than an argument may be.
    let text = [&succeed(quadrille("completions").arg("bash")), complete].join("\n");
    std::fs::write(script.path(), text).expect("the script");
    let said = succeed(Command::new("bash").arg(script.path()));
    assert_eq!(said.trim(), "keyserver");
    for shell in ["zsh", "fish"] {
        assert!(succeed(quadrille("completions").arg(shell)).contains("keyserver"), "{shell}");
    }
}

#[test]
fn every_command_that_a_manual_page_names_has_its_page() {
    let directory = tempfile::tempdir().expect("a directory");
    succeed(quadrille("man").arg(directory.path()));
    for name in ["quadrille.yaml.5", "quadrille-key-policy.yaml.5"] {
        let page = std::fs::read_to_string(directory.path().join(name)).expect(name);
        assert!(page.contains(".SH DESCRIPTION"), "{name}");
    }
    let mut named = vec!["quadrille".to_owned()];
    let mut read = 0;
    while let Some(name) = named.pop() {
        let page = std::fs::read_to_string(directory.path().join(format!("{name}.1"))).expect(&name);
        let page = page.replace("\\-", "-");
        let below = page.split_whitespace().filter_map(|word| word.strip_suffix("(1)"));
        named.extend(below.filter(|below| below.starts_with(&format!("{name}-"))).map(str::to_owned));
        read += 1;
    }
    assert!(read > 25, "only {read} pages");
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
    ] {
        let file = Configuration::new(&text);
        let output = quadrille("check").arg(file.path()).output().expect("quadrille");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}: {said}");
        assert!(complaints.iter().all(|complaint| said.contains(complaint)), "{text}: {said}");
    }
    let unresolved =
        document(&[listener(&pair, "upstream: web")], "web: {servers: [\"nowhere.invalid:80\"]}");
    let (ok, said) = output(quadrille("check").arg(Configuration::new(&unresolved).path()));
    let warned = said.contains("quadrille.yaml:5") && said.contains("cannot resolve nowhere.invalid");
    assert!(ok && warned, "a name may resolve later: {said}");
    let (ok, said) = output(quadrille("check").arg("no-such-file.yaml"));
    assert!(!ok && said.contains("no-such-file.yaml"), "{said}");
}

#[test]
fn demo_serves_and_the_commands_that_it_prints_work() {
    let mut demo = Running(
        quadrille("demo")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(logs::create("quadrille-demo"))
            .spawn()
            .expect("quadrille"),
    );
    let lines = BufReader::new(demo.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let said: Vec<_> = lines.take_while(|line| !line.starts_with("Stop it")).collect();
    let commands: Vec<_> = said.iter().filter_map(|line| line.strip_prefix("    curl ")).collect();
    assert_eq!(commands.len(), 3, "{said:?}");
    for command in commands {
        let answer =
            succeed(Command::new("curl").args(["-sS", "--max-time", "600"]).args(command.split(' ')));
        let expected =
            if command.ends_with("/hello") { "Hello from Quadrille." } else { "quadrille_handshakes_total" };
        assert!(answer.contains(expected), "{command}: {answer}");
    }
}

#[test]
fn demo_runs_built_in_clients_and_prints_the_savings() {
    let mut demo = Running(
        quadrille("demo")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--load", "2s"])
            .stdout(Stdio::piped())
            .stderr(logs::create("quadrille-demo"))
            .spawn()
            .expect("quadrille"),
    );
    let mut lines = BufReader::new(demo.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut line = |start: &str| lines.find(|line| line.starts_with(start)).expect(start);
    let dashboard = line("The dashboard: ").replace("The dashboard: ", "");
    let made = line("Clients completed ");
    assert!(
        made.ends_with("; 0 failed.") && !made.contains(" 0 full") && !made.contains(" 0 resumed"),
        "{made}"
    );
    assert!(line("").contains("private-key operations took"), "result of the load");
    let metrics =
        succeed(Command::new("curl").args(["-sS", "--max-time", "600", &format!("{dashboard}metrics")]));
    for key_type in ["rsa2048", "ecdsa-p256"] {
        let counted = format!("quadrille_key_operations_total{{key_type=\"{key_type}\"");
        assert!(metrics.contains(&counted), "both certificates are used: {metrics}");
    }
    succeed(Command::new("kill").args(["-INT", &demo.0.id().to_string()]));
    assert!(line("").contains("private-key operations took"), "on exit");
}

#[test]
fn the_demo_page_links_the_dashboard() {
    let admin = format!("127.0.0.1:{}", ports::free());
    let link = format!("<a href=\"http://{admin}/\">");
    for (admin, expected) in [("off", "the dashboard is disabled"), (&admin, &link)] {
        let mut demo = Running(
            quadrille("demo")
                .args(["--listen", "127.0.0.1:0", "--admin", admin])
                .stdout(Stdio::piped())
                .stderr(logs::create("quadrille-demo"))
                .spawn()
                .expect("quadrille"),
        );
        let mut lines = BufReader::new(demo.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let first = lines.next().expect("the served URL");
        let url = first.split(' ').find(|word| word.starts_with("https://")).expect("a URL");
        let page = succeed(Command::new("curl").args(["-skS", "--max-time", "600", url]));
        assert!(page.contains(expected), "{page}");
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
