//! A recipe of the cookbook, in a directory of its own.

use super::PAGES;
use crate::support::{Certificates, Gateway, output, ports, quadrille, serve};
use std::{
    fs,
    ops::RangeBounds,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The names of the sites.
const NAMES: &[&str] = &[
    "example.com",
    "www.example.com",
    "auth.example.com",
    "shop.example.com",
    "blog.example.com",
    "localhost",
];

/// Keys that a test adds to a configuration.
const ADDED: &str = "admin: 127.0.0.1:0\nlame_duck: 0s\n";

/// A recipe: its files, and the commands with their output.
pub(super) struct Recipe {
    pub(super) certificates: Certificates,
    directory: TempDir,
    /// The ports in place of 443 and 80.
    ports: [u16; 2],
    /// Number of addresses that the configuration listens on.
    addresses: usize,
    /// Commands, each with the output that the page shows.
    commands: Vec<(String, String)>,
}

impl Recipe {
    /// Reads a recipe of a page, and writes its files with these texts replaced; each must be present.
    pub(super) fn new(page: &str, title: &str, replaced: &[(&str, &str)]) -> Self {
        let (_, text) = PAGES.iter().find(|(name, _)| *name == page).expect("a page");
        let section = section(text, title);
        let certificates = Certificates::new();
        let directory = tempfile::tempdir().expect("a directory");
        let ports = [ports::free(), ports::free()];
        let mut files = files(section);
        for (from, to) in replaced {
            assert!(files.iter().any(|(_, text)| text.contains(from)), "{from} is not in the recipe");
            files.iter_mut().for_each(|(_, text)| *text = text.replace(from, to));
        }
        let addresses = [("\"[::]:443\"", ports[0]), ("\"[::]:80\"", ports[1])];
        let used = |(address, _): &&(&str, u16)| files.iter().any(|(_, text)| text.contains(address));
        let count = addresses.iter().filter(used).count().max(1);
        for (name, text) in files {
            let text = addresses
                .iter()
                .fold(text, |text, (address, port)| text.replace(address, &format!("\"127.0.0.1:{port}\"")));
            let text = text.replace("listen 443", &format!("listen 127.0.0.1:{}", ports[0]));
            let added = if name == "quadrille.yaml" { ADDED } else { "" };
            let file = directory.path().join(name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, text + added).expect("writing");
        }
        let commands = commands(section);
        let recipe = Self { certificates, directory, ports, addresses: count, commands };
        recipe.furnish();
        recipe
    }

    /// Writes the files that recipes name, and curl's configuration, by which the commands of a page reach the gateway.
    fn furnish(&self) {
        let copy = |from: &Path, to: &str| _ = fs::copy(from, self.path(to)).expect("copying");
        let (site, shop) = (
            self.certificates.ecdsa("P-256", NAMES),
            self.certificates.ecdsa("P-256", &["acme.shops.example"]),
        );
        for (pair, chain, key) in [(site, "chain.pem", "key.pem"), (shop, "shop.pem", "shop.key")] {
            copy(&pair.chain, chain);
            copy(&pair.key, key);
        }
        copy(&self.certificates.ca(), "clients-ca.pem");
        fs::write(self.path("maintenance.html"), "<p>Back soon.</p>\n").expect("writing");
        fs::write(self.path("metrics-token"), "b1946ac92492d234\n").expect("writing");
        let [https, http] = self.ports;
        let settings = format!(
            "cacert = \"{}\"\nconnect-to = \":443:127.0.0.1:{https}\"\nconnect-to = \":80:127.0.0.1:{http}\"\nmax-time = 180\n",
            self.certificates.ca().display()
        );
        fs::write(self.path(".curlrc"), settings).expect("writing");
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds a test's keys to a configuration that a command has written.
    pub(super) fn complete(&self) {
        let text = fs::read_to_string(self.path("quadrille.yaml")).expect("a configuration");
        fs::write(self.path("quadrille.yaml"), text + ADDED).expect("writing");
    }

    /// Serves `quadrille.yaml`.
    pub(super) fn serve(&self) -> Gateway {
        self.serve_with(|command| command.arg("quadrille.yaml"))
    }

    /// Serves with these arguments and variables of the environment.
    pub(super) fn serve_with(&self, with: impl FnOnce(&mut Command) -> &mut Command) -> Gateway {
        let mut command = serve();
        command.current_dir(self.directory.path());
        with(&mut command);
        Gateway::start(command, self.addresses)
    }

    /// Runs these commands of the page; each must print what the page shows.
    pub(super) fn run(&self, which: impl RangeBounds<usize>) {
        for (_, (command, expected)) in
            self.commands.iter().enumerate().filter(|(index, _)| which.contains(index))
        {
            let printed = self.shell(command);
            assert_eq!(printed.trim_end(), expected.trim_end(), "$ {command}");
        }
    }

    /// Runs curl with these arguments; returns its output on both streams.
    pub(super) fn curl(&self, arguments: &[&str]) -> String {
        let quoted: Vec<_> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        self.shell(&format!("curl -s {}", quoted.join(" ")))
    }

    /// Returns the status that a request with these arguments of curl receives.
    pub(super) fn status(&self, arguments: &[&str]) -> String {
        self.curl(&[&["-o", "/dev/null", "-w", "%{http_code}"], arguments].concat())
    }

    fn shell(&self, command: &str) -> String {
        let binary = quadrille("").get_program().to_owned();
        let folder = Path::new(&binary).parent().expect("a directory");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).current_dir(self.directory.path());
        shell.env("PATH", path).env("CURL_HOME", self.directory.path()).env_remove("APP_SERVER");
        output(&mut shell).1.replace('\r', "")
    }
}

/// Returns the section of a page with this title.
pub(super) fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {title}\n")).expect("a recipe");
    rest.split("\n## ").next().expect("a section")
}

/// Returns the configurations of a recipe, with the names of their files: that of the first line, or the usual one.
fn files(section: &str) -> Vec<(String, String)> {
    let blocks = |language: &str| {
        let begin = format!("```{language}\n");
        let text = section.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
        text.map(str::to_owned).collect::<Vec<_>>()
    };
    let named = |text: String| {
        let first = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let name = first.filter(|name| name.ends_with(".yaml")).unwrap_or("quadrille.yaml");
        (name.to_owned(), text)
    };
    let nginx = blocks("nginx").into_iter().map(|text| ("nginx.conf".to_owned(), text));
    blocks("yaml").into_iter().map(named).chain(nginx).collect()
}

/// Returns the commands of a recipe, with the output that follows them.
fn commands(section: &str) -> Vec<(String, String)> {
    let blocks = section.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, expected))) => *expected += &format!("{line}\n"),
            (None, None) => panic!("output before the first command: {line}"),
        }
    }
    commands
}
