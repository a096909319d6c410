//! Definitions of the whole file, which its frontends refer to.

use super::section::{Line, Section};
use crate::{draft::Draft, ledger::Ledger, values};
use std::{cell::RefCell, collections::BTreeMap, path::Path};

/// Definitions of the file, and the configuration that is made.
pub(super) struct World<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) draft: &'a RefCell<Draft>,
    pub(super) directory: &'a Path,
    /// Sections `backend` and `listen` by name.
    pub(super) backends: BTreeMap<&'a str, &'a Section>,
    pub(super) users: BTreeMap<&'a str, &'a Section>,
    pub(super) global: Option<&'a Section>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        sections: &'a [Section],
        ledger: &'a Ledger,
        draft: &'a RefCell<Draft>,
        directory: &'a Path,
    ) -> Self {
        let of = |kinds: &[&str]| {
            let found = sections.iter().filter(|section| kinds.contains(&section.kind()));
            found.map(|section| (section.name(), section)).collect::<BTreeMap<_, _>>()
        };
        Self {
            ledger,
            draft,
            directory,
            backends: of(&["backend", "listen"]),
            users: of(&["userlist"]),
            global: sections.iter().find(|section| section.kind() == "global"),
        }
    }

    /// Returns the path of a file; `base` is the line of `global` with the directory of such files.
    pub(super) fn file(&self, path: &str, base: &str) -> String {
        let base = self.global.and_then(|global| global.last(&[base])).map(|line| line.word(1));
        let directory = base.map_or_else(|| self.directory.to_owned(), |base| self.directory.join(base));
        directory.join(path).display().to_string()
    }

    pub(super) fn converted(&self, line: &Line) {
        self.ledger.converted(line.id);
    }

    pub(super) fn refused(&self, line: &Line, remedy: impl Into<String>) {
        self.ledger.refused(line.id, remedy);
    }

    pub(super) fn differs(&self, line: &Line, difference: impl Into<String>) {
        self.ledger.differs(line.id, difference);
    }
}

/// Returns a time as a duration; HAProxy's unit is the millisecond.
pub(super) fn duration(text: &str) -> Option<String> {
    match text.parse::<u64>() {
        Ok(milliseconds) => values::shown(milliseconds),
        Err(_) => match text.strip_suffix("us") {
            Some(_) => values::shown(1),
            None => values::duration(text),
        },
    }
}

/// Lines that need no conversion, by their first words.
const UNNEEDED: &[&str] = &[
    "user",
    "group",
    "daemon",
    "chroot",
    "pidfile",
    "stats socket",
    "stats timeout",
    "tune.",
    "nbproc",
    "cpu-map",
    "ssl-dh-param-file",
    "ssl-default-server-",
    "ssl-server-verify",
    "ca-base",
    "crt-base",
    "log-send-hostname",
    "log-tag",
    "node",
    "description",
    "ulimit-n",
    "maxsslconn",
    "maxconnrate",
    "spread-checks",
    "master-worker",
    "unix-bind",
    "set-dumpable",
    "hard-stop-after",
    "localpeer",
    "insecure-fork-wanted",
    "lua-prepend-path",
    "h1-case-adjust",
    "option http-server-close",
    "option http-keep-alive",
    "option httpclose",
    "option forceclose",
    "option dontlognull",
    "option redispatch",
    "option forwardfor",
    "option tcp-smart-accept",
    "option tcp-smart-connect",
    "option tcpka",
    "option clitcpka",
    "option srvtcpka",
    "option splice-",
    "option http-no-delay",
    "option logasap",
    "option abortonclose",
    "option log-separate-errors",
    "option contstats",
    "option http-use-htx",
    "option prefer-last-server",
    "option allbackups",
    "option log-health-checks",
    "option h1-case-adjust",
    "option http-buffer-request",
    "option independent-streams",
    "no option",
    "timeout check",
    "timeout queue",
    "timeout tunnel",
    "timeout tarpit",
    "timeout server-fin",
    "timeout client-fin",
    "timeout connect",
    "timeout server",
    "timeout http-keep-alive",
    "mode",
    "http-reuse",
    "fullconn",
    "id",
    "backlog",
    "stick-table",
    "tcp-request inspect-delay",
    "unique-id-",
    "log-format",
    "error-log-format",
    "http-request normalize-uri",
    "http-request capture",
    "capture",
    "declare capture",
    "dispatch-log",
    "retry-on",
    "retries",
    "default-server",
    "external-check",
    "http-check",
    "option httpchk",
    "option tcp-check",
    "tcp-check",
    "option ssl-hello-chk",
    "hash-type",
    "balance",
    "cookie",
    "server",
    "acl",
    "load-server-state",
    "server-state",
    "presetenv",
    "setenv",
    "expose-fd",
    "bind-process",
    "ssl-mode-async",
    "ssl-load-extra-files",
    "log-stderr",
    "quiet",
    "debug",
    "zero-warning",
    "ssl-skip-self-issued-ca",
    "option h2-workaround",
];

/// Lines without an equivalent, by their first words, with a remedy.
const REFUSED: &[(&str, &str)] = &[
    ("stats", "metrics and a dashboard are at the `admin` address, on by default"),
    ("errorfile", "write `error_pages: [{ status: ..., file: ... }]` with a file that has only the body"),
    ("errorloc", "write `error_pages`, or a rule with `redirect`"),
    ("errorfiles", "write `error_pages`"),
    ("filter", "filters are not run: use `authorization`, `compression` or `tracing`"),
    ("lua-load", "scripts are not run: use `rules`, `authorization` or an application"),
    ("email-alert", "use the alerts of the metrics"),
    ("http-request cache-use", "responses are not cached: put a cache such as Varnish behind"),
    ("http-response cache-store", "responses are not cached: put a cache such as Varnish behind"),
    ("http-request set-var", "variables are not evaluated: write their values where they are used"),
    ("http-request use-service", "metrics are at the `admin` address, on by default"),
    ("monitor fail", "the health page of the process is `/ready` at the `admin` address"),
    ("tcp-request content set-", "variables are not evaluated"),
    ("source", "the kernel chooses the local address of connections to servers"),
    ("use-server", "write a route with an upstream of this server"),
    ("server-template", "name the servers, or one DNS name for all of them"),
    ("nameserver", "write `resolver: { servers: [...] }`"),
];

/// Notes lines without a conversion of their own.
pub(super) fn sort_out(section: &Section, world: &World<'_>) {
    for line in &section.lines {
        let text = line.words.join(" ");
        if let Some((_, remedy)) = REFUSED.iter().find(|(beginning, _)| text.starts_with(beginning)) {
            world.refused(line, *remedy);
        } else if UNNEEDED.iter().any(|beginning| text.starts_with(beginning)) {
            world.converted(line);
        }
    }
}
