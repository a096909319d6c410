//! Checks of the files that the settings of an account name.

use crate::{
    AcmeError,
    account::{credentials, external_key},
    dns_hook, files,
};
use quadrille_config::{
    Diagnostic,
    model::{Acme, Place},
};
use quadrille_pem::read_certificates;
use std::path::{Path, PathBuf};

/// Reads the files that the settings name, as orders do, and returns the problems that would make orders fail.
pub fn check(acme: &Acme) -> Vec<Diagnostic> {
    let asked = acme.on_demand.as_ref().and_then(|on_demand| on_demand.ca_file.as_ref());
    let checks = [
        problem(acme.ca_file.as_ref(), |file| read_certificates(file).map(drop)),
        problem(asked, |file| read_certificates(file).map(drop)),
        problem(acme.dns_hook.as_ref(), dns_hook::check),
        account(acme),
    ];
    checks.into_iter().flatten().collect()
}

fn problem(
    named: Option<&(PathBuf, Place)>,
    check: impl FnOnce(&Path) -> Result<(), String>,
) -> Option<Diagnostic> {
    let (file, place) = named?;
    Some(Diagnostic::new(place, check(file).err()?))
}

/// Checks the stored account, or else the key with which it will be created. The state directory may belong to
/// another user.
fn account(acme: &Acme) -> Option<Diagnostic> {
    let file = acme.state.join(files::account(acme));
    match credentials(&file) {
        Ok(Some(_)) => None,
        Err(AcmeError::File(_)) if !is_readable(&file) => None,
        Err(error) => Some(Diagnostic::new(&acme.place, error.to_string())),
        Ok(None) => {
            let external = acme.external_account.as_ref()?;
            Some(Diagnostic::new(&external.key_file.1, external_key(external).err()?))
        }
    }
}

fn is_readable(file: &Path) -> bool {
    std::fs::File::open(file).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::{AcmeOnDemand, ExternalAccount, Origin};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    fn place(key: &str) -> Place {
        Place::field(&Origin::file("q.yaml"), 3, key)
    }

    #[test]
    fn the_files_are_those_of_orders() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, text: &str, mode: u32| {
            fs::write(path(name), text).unwrap();
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
            path(name)
        };
        let named = |file: &PathBuf, key: &str| Some((file.clone(), place(key)));
        let (gone, text) = (path("gone"), write("text", "not base64url, not PEM", 0o600));
        let script = write("script", "#!/bin/sh\n", 0o755);
        let stray = write("stray", "#!/nowhere/sh -e\n", 0o755);
        let mut acme = Acme::new(path("state"), place("acme"));
        assert_eq!(check(&acme).len(), 0);
        let account = |file: &PathBuf| {
            Some(ExternalAccount {
                id: "id".into(),
                key_file: (file.clone(), place("acme.external_account.key_file")),
            })
        };
        for (file, hook, expected) in [
            (&gone, &gone, ["No such file", "No such file", "No such file", "does not exist"]),
            (&text, &text, ["no PEM", "no PEM", "not executable", "not a base64url-encoded key"]),
            (
                &text,
                &stray,
                ["no PEM", "no PEM", "its interpreter /nowhere/sh", "not a base64url-encoded key"],
            ),
        ] {
            acme.ca_file = named(file, "acme.ca_file");
            acme.dns_hook = named(hook, "acme.dns_hook");
            acme.on_demand = Some(AcmeOnDemand {
                ca_file: named(file, "acme.on_demand.ca_file"),
                ..AcmeOnDemand::new("https://ask.example/".into())
            });
            acme.external_account = account(file);
            let found: Vec<String> = check(&acme).iter().map(ToString::to_string).collect();
            let keys = ["ca_file", "on_demand.ca_file", "dns_hook", "external_account.key_file"];
            assert_eq!(found.len(), keys.len(), "{found:?}");
            for ((line, key), expected) in found.iter().zip(keys).zip(expected) {
                assert!(
                    line.starts_with(&format!("q.yaml:3: acme.{key}: /")) && line.contains(expected),
                    "{line}"
                );
            }
        }
        let mac = write("mac", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wE=\n", 0o600);
        acme = Acme::new(path("state"), place("acme"));
        (acme.dns_hook, acme.external_account) = (named(&script, "acme.dns_hook"), account(&mac));
        assert_eq!(check(&acme).len(), 0);
        // The key is needed only to create an account, and a damaged account is not replaced.
        fs::create_dir(path("state")).unwrap();
        fs::write(path("state").join(files::account(&acme)), "{").unwrap();
        let found = check(&acme);
        assert!(found[0].to_string().contains("is not a valid account; move it away"), "{found:?}");
    }
}
