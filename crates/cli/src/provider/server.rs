//! Supported servers and their configuration.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A server that uses OpenSSL 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Server {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Apache HTTP server.
    Apache,
    /// Node.js.
    Node,
}

impl Server {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Apache => "apache2",
            Self::Node => "node",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Apache => "Apache",
            Self::Node => "Node",
        }
    }

    /// Returns OpenSSL's configuration. The default provider is first, because without it only RSA and ECDSA keys
    /// would be available, and because it then takes precedence for algorithms that both implement.
    pub(super) fn openssl_cnf(self, module: &Path, pem_keys: &[String], key_exchange: bool) -> String {
        let section = match self {
            Self::Node => "nodejs_conf",
            _ => "openssl_conf",
        };
        let pem_keys = match pem_keys {
            [] => String::new(),
            paths => format!("pem-keys = {}\n", paths.join(", ")),
        };
        let (use_algorithms, algorithms) = match key_exchange {
            true => (
                "alg_section = algorithms\n",
                "\n# For the algorithms with this property (X25519) only.\n\
                 [algorithms]\ndefault_properties = ?quadrille.key_exchange=yes\n",
            ),
            false => ("", ""),
        };
        format!(
            "{section} = openssl_init\n\n\
             [openssl_init]\nproviders = providers\n{use_algorithms}\n\
             [providers]\ndefault = default_provider\nquadrille = quadrille_provider\n\n\
             [default_provider]\nactivate = 1\n\n\
             [quadrille_provider]\nmodule = {}\nactivate = 1\n{pem_keys}{algorithms}",
            module.display()
        )
    }

    /// Returns the changes to the server's own configuration. `asynchronous`: nginx loads Quadrille's module.
    pub(super) fn lines(self, openssl_cnf: &Path, asynchronous: bool) -> String {
        let path = std::path::absolute(openssl_cnf).unwrap_or_else(|_| openssl_cnf.to_owned());
        let variable = format!("OPENSSL_CONF={}", path.display());
        let unit = |service: &str| {
            format!(
                "# systemctl edit {service}\n[Service]\nEnvironment={variable}\n\n# then: systemctl restart {service}\n"
            )
        };
        match self {
            Self::Nginx if asynchronous => format!(
                "{}\n# The key files do not change. nginx.conf must include the lines that load the module, as Debian's does with\n\
                 # modules-enabled; `quadrille_async off` in a server block disables it there.\n",
                unit("nginx")
            ),
            Self::Nginx => format!(
                "{}\n# The key files do not change. nginx waits for each operation, so to batch operations, use the module that\n\
                 # `quadrille provider install nginx --async` loads, or a local key server, which batches the operations of all\n\
                 # workers: see `quadrille provider key --help`.\n",
                unit("nginx")
            ),
            Self::Haproxy => format!(
                "{}\n# haproxy.cfg: serve other connections while operations are computed.\nglobal\n    ssl-mode-async\n",
                unit("haproxy")
            ),
            Self::Apache => format!("{}\n# The key files do not change.\n", unit("apache2")),
            Self::Node => {
                format!(
                    "# In the environment of the program; its code does not change.\n{variable} node server.js\n"
                )
            }
        }
    }

    /// Returns the file that loads the server's OpenSSL: its program, or its TLS module.
    pub(super) fn program(self) -> Result<PathBuf, String> {
        let candidates: &[&str] = match self {
            Self::Nginx => &["/usr/sbin/nginx", "/usr/local/nginx/sbin/nginx", "/usr/local/sbin/nginx"],
            Self::Haproxy => &["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"],
            Self::Apache => &[
                "/usr/lib/apache2/modules/mod_ssl.so",
                "/usr/lib64/httpd/modules/mod_ssl.so",
                "/usr/local/apache2/modules/mod_ssl.so",
            ],
            Self::Node => &["/usr/bin/node", "/usr/local/bin/node"],
        };
        let known = candidates.iter().map(PathBuf::from).find(|file| file.exists());
        known.ok_or_else(|| {
            format!("{} was not found at {}; give --program", self.title(), candidates.join(", "))
        })
    }

    /// Returns the libcrypto that a program would load.
    pub(super) fn libcrypto(self, program: &Path) -> Result<PathBuf, String> {
        let listed =
            Command::new("ldd").arg(program).output().map_err(|error| format!("cannot run ldd: {error}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let line = listed.lines().find(|line| line.trim_start().starts_with("libcrypto.so"));
        let path =
            line.and_then(|line| line.split_once("=>")).and_then(|(_, path)| path.split_whitespace().next());
        path.map(PathBuf::from).ok_or_else(|| {
            format!("{} does not load libcrypto: its OpenSSL is static, or it has none", program.display())
        })
    }
}
