//! Tokens of SoftHSM, and a module around it that hangs, fails, and counts logins on request.

use super::{Certificates, Pair, succeed};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A token in a directory of its own.
pub struct SoftHsm {
    directory: PathBuf,
    module: PathBuf,
}

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "1234";

impl SoftHsm {
    /// Creates a token with the label `keys`, and the module around SoftHSM.
    pub fn new(certificates: &Certificates, name: &str) -> Self {
        let directory = certificates.path(name);
        fs::create_dir_all(directory.join("tokens")).expect("a directory");
        let settings = format!("directories.tokendir = {}\n", directory.join("tokens").display());
        fs::write(directory.join("softhsm2.conf"), settings).expect("writing");
        let [source, module] = ["token_module.c", "token_module.so"].map(|file| directory.join(file));
        fs::write(&source, include_str!("token_module.c")).expect("writing");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]);
        succeed(compiler.arg(&module).arg(&source));
        let this = Self { directory, module };
        this.initialize();
        this.set_pin(PIN);
        this
    }

    fn initialize(&self) {
        let mut util = self.util();
        succeed(util.args(["--init-token", "--free", "--label", "keys", "--so-pin", "5678", "--pin", PIN]));
    }

    /// Deletes all keys.
    pub fn delete_keys(&self) {
        let listed = |folder: &Path| -> Vec<PathBuf> {
            fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path()).collect()
        };
        for token in listed(&self.directory.join("tokens")) {
            let is_key = |file: &PathBuf| {
                file.extension().is_some_and(|kind| kind == "object") && !file.ends_with("token.object")
            };
            listed(&token)
                .into_iter()
                .filter(is_key)
                .for_each(|file| fs::remove_file(file).expect("removing"));
        }
    }

    /// Writes the PIN that processes read.
    pub fn set_pin(&self, pin: &str) {
        fs::write(self.pin_file(), format!("{pin}\n")).expect("writing");
        fs::set_permissions(self.pin_file(), fs::Permissions::from_mode(0o600)).expect("permissions");
    }

    /// Writes the correct PIN.
    pub fn correct_pin(&self) {
        self.set_pin(PIN);
    }

    pub fn pin_file(&self) -> PathBuf {
        self.directory.join("pin")
    }

    /// Imports the key of a pair.
    pub fn import(&self, pair: &Pair, label: &str, id: &str) {
        let mut util = self.util();
        util.args(["--import"]).arg(&pair.key);
        succeed(util.args(["--token", "keys", "--label", label, "--id", id, "--pin", PIN]));
    }

    fn util(&self) -> Command {
        let mut command = Command::new("softhsm2-util");
        self.provide(&mut command);
        command
    }

    /// Sets the environment of a process that uses the token.
    pub fn provide(&self, command: &mut Command) {
        command.env("SOFTHSM2_CONF", self.directory.join("softhsm2.conf"));
        command.env("QUADRILLE_TEST_TOKEN", &self.directory).env("QUADRILLE_TEST_MODULE", MODULE);
    }

    /// Returns a URI with these attributes, through the module around SoftHSM; `settings` begin with `&`.
    pub fn uri(&self, attributes: &str, settings: &str) -> String {
        let (module, pin) = (self.module.display(), self.pin_file());
        let pin = pin.display();
        format!("pkcs11:token=keys{attributes}?module-path={module}&pin-source=file:{pin}{settings}")
    }

    /// Begins a fault of the module: `hang`, `removed` or `wrong`; or `reset`, which ends by itself.
    pub fn begin(&self, fault: &str) {
        fs::write(self.directory.join(fault), "").expect("writing");
    }

    /// Ends a fault.
    pub fn end(&self, fault: &str) {
        fs::remove_file(self.directory.join(fault)).expect("removing");
    }

    /// Returns the number of logins that were attempted.
    pub fn logins(&self) -> usize {
        count(&self.directory.join("logins"))
    }

    /// Returns the number of signatures that wait in the module.
    pub fn hanging(&self) -> usize {
        count(&self.directory.join("hanging"))
    }
}

/// Returns the number of bytes in a file; the module appends one for each event.
fn count(file: &Path) -> usize {
    fs::read(file).map_or(0, |bytes| bytes.len())
}
