//! HTTP Basic authentication: `auth-type`, `auth-secret`, `auth-secret-type` and `auth-realm`.

use super::Annotations;
use quadrille_draft::{draft::Route, yaml::Map};

/// Hashes of passwords that the gateway accepts.
const HASHES: [&str; 6] = ["$2a$", "$2b$", "$2y$", "$5$", "$6$", "$argon2"];

/// Requires a password on a route; closes it if the users cannot be read.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let Some(kind) = annotations.value("auth-type") else { return };
    if kind != "basic" {
        annotations.refuse(
            "auth-type",
            format!(
                "`{kind}` is not supported: use \"basic\" over TLS; its paths respond with 503 meanwhile"
            ),
        );
        route.close(503, &format!("{}: `{kind}` is not supported", annotations.shown("auth-type")));
        return;
    }
    match users(annotations) {
        Ok(users) => {
            let mut auth = Map::of("users", format!("{}\n", users.join("\n")));
            if let Some(realm) = annotations.value("auth-realm") {
                auth.set("realm", realm);
            }
            route.keys.set("basic_auth", auth);
        }
        Err(problem) => {
            annotations.refuse("auth-secret", format!("{problem}; its paths respond with 503 meanwhile"));
            route.close(503, &format!("{}: {problem}", annotations.shown("auth-secret")));
        }
    }
}

/// Returns the lines of users. Passwords with hashes that are broken quickly are left out.
fn users(annotations: &Annotations<'_, '_>) -> Result<Vec<String>, String> {
    let name = annotations.value("auth-secret").ok_or("add `auth-secret`")?;
    let (namespace, name) = name.split_once('/').unwrap_or((&annotations.meta.namespace, name));
    let secret = annotations
        .world
        .objects
        .secret(namespace, name)
        .ok_or_else(|| format!("the Secret {namespace}/{name} is not in the input: add it"))?;
    let lines: Vec<String> = match annotations.value("auth-secret-type").unwrap_or("auth-file") {
        "auth-file" => {
            let text =
                secret.text("auth").map_err(|problem| format!("Secret {namespace}/{name}: {problem}"))?;
            text.lines().map(|line| line.trim().to_owned()).collect()
        }
        "auth-map" => {
            let line = |(user, hash): (&str, &Result<_, String>)| {
                hash.as_ref().ok().map(|hash: &zeroize::Zeroizing<String>| format!("{user}:{}", hash.trim()))
            };
            secret.texts().filter_map(line).collect()
        }
        other => return Err(format!("auth-secret-type `{other}` is not \"auth-file\" or \"auth-map\"")),
    };
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let is_slow = |line: &&String| {
        line.split_once(':')
            .is_some_and(|(user, hash)| !user.is_empty() && HASHES.iter().any(|kind| hash.starts_with(kind)))
    };
    let (usable, weak): (Vec<_>, Vec<_>) = lines.iter().partition(is_slow);
    let names: Vec<_> = weak.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
    if usable.is_empty() {
        return Err(format!(
            "no user of the Secret {namespace}/{name} has a hash of bcrypt, SHA-crypt or Argon2: make them again with `htpasswd -B`"
        ));
    }
    if !names.is_empty() {
        annotations.refuse(
            "auth-secret",
            format!(
                "passwords hashed by MD5, SHA-1 or DES are not accepted: {} cannot log in; make their lines again with `htpasswd -B`",
                names.join(", ")
            ),
        );
    }
    Ok(usable.into_iter().cloned().collect())
}
