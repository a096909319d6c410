//! nginx's module for asynchronous handshakes: its location, the lines that load it, and a check in nginx.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// `quadrille provider install nginx --async`.
#[derive(clap::Args)]
pub(super) struct NginxModule {
    /// nginx: load the module that lets workers serve other connections during a private-key operation.
    #[arg(long = "async")]
    pub(super) wanted: bool,
    /// nginx's module [default: ngx_quadrille_async_module.so beside this program, or in /usr/lib/quadrille].
    #[arg(long, value_name = "FILE", requires = "wanted")]
    nginx_module: Option<PathBuf>,
    /// Output file for nginx's lines [default: /etc/nginx/modules-enabled/60-quadrille-async.conf].
    #[arg(long, value_name = "FILE", requires = "wanted")]
    nginx_out: Option<PathBuf>,
}

const FILE_NAME: &str = "ngx_quadrille_async_module.so";

/// Debian's nginx.conf includes the files of this directory.
const USUAL_CONFIGURATION: &str = "/etc/nginx/modules-enabled/60-quadrille-async.conf";

impl NginxModule {
    /// Returns the output file of the lines.
    ///
    /// # Errors
    /// If no file was given and nginx lacks Debian's directory, so it would not read the default file.
    pub(super) fn file(&self) -> Result<PathBuf, String> {
        let usual = Path::new(USUAL_CONFIGURATION);
        match (&self.nginx_out, usual.parent()) {
            (Some(file), _) => Ok(file.clone()),
            (None, Some(directory)) if directory.is_dir() => Ok(usual.to_owned()),
            _ => Err(format!(
                "there is no directory for {USUAL_CONFIGURATION}; give another file with --nginx-out and include it in \
                 nginx.conf, outside of http"
            )),
        }
    }

    /// Returns the lines, for the main context, outside of `http` and `stream`.
    pub(super) fn lines(&self) -> Result<String, String> {
        // Without `env`, a new binary started by the old one (USR2) would lack the variable.
        Ok(format!("load_module {};\nenv OPENSSL_CONF;\n", self.find()?.display()))
    }

    /// Runs nginx's configuration test with the lines, with the provider in its OpenSSL.
    pub(super) fn check(&self, nginx: &Path, openssl_cnf: &str) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot make files for the check: {error}");
        let folder = tempfile::tempdir().map_err(cannot)?;
        let place = |name: &str| folder.path().join(name);
        fs::write(place("openssl.cnf"), openssl_cnf).map_err(cannot)?;
        let pid = place("nginx.pid");
        let configuration = format!("{}pid {};\nevents {{ }}\n", self.lines()?, pid.display());
        fs::write(place("nginx.conf"), configuration).map_err(cannot)?;
        let mut command = Command::new(nginx);
        command.args(["-t", "-e", "stderr", "-c"]).arg(place("nginx.conf")).arg("-p").arg(folder.path());
        let output = command.env("OPENSSL_CONF", place("openssl.cnf")).output();
        let output = output.map_err(|error| format!("cannot run {}: {error}", nginx.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{} does not accept the module: {}", nginx.display(), said.trim()))
    }

    fn find(&self) -> Result<PathBuf, String> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join(FILE_NAME));
        let usual = || Some(PathBuf::from("/usr/lib/quadrille").join(FILE_NAME));
        let found = match &self.nginx_module {
            Some(file) => Some(file.clone()),
            None => [beside(), usual()].into_iter().flatten().find(|file| file.exists()),
        };
        let missing = || {
            format!(
                "{FILE_NAME} is neither beside this program nor in /usr/lib/quadrille; `make nginx-module` builds it, \
                 and --nginx-module names it"
            )
        };
        let file = found.ok_or_else(missing)?;
        file.canonicalize().map_err(|error| format!("--nginx-module {}: {error}", file.display()))
    }
}
