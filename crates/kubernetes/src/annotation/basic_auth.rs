//! HTTP Basic authentication: `auth-type`, `auth-secret`, `auth-secret-type` and `auth-realm`.

use super::Annotations;
use quadrille_draft::{draft::Route, yaml::Map};

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
    let (secret, name) = annotations.secret(name)?;
    let lines: Vec<String> = match annotations.value("auth-secret-type").unwrap_or("auth-file") {
        "auth-file" => {
            let text = secret.text("auth").map_err(|problem| format!("Secret {name}: {problem}"))?;
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
        line.split_once(':').is_some_and(|(user, hash)| {
            !user.is_empty() && is_accepted(hash.split(':').next().unwrap_or_default())
        })
    };
    let (usable, weak): (Vec<_>, Vec<_>) = lines.iter().partition(is_slow);
    let names: Vec<_> = weak.iter().map(|line| line.split(':').next().unwrap_or_default()).collect();
    if usable.is_empty() {
        return Err(format!(
            "no user of the Secret {name} has a hash of bcrypt, SHA-crypt or Argon2: make them again with `htpasswd -B`"
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

/// Returns whether the gateway accepts a hash: bcrypt, SHA-crypt or Argon2, well-formed, and computed in less than seconds.
fn is_accepted(hash: &str) -> bool {
    let parts: Vec<_> = hash.split('$').collect();
    match parts[..] {
        ["", "2a" | "2b" | "2y", cost, rest] => {
            rest.len() == 53 && cost.len() == 2 && cost.parse::<u32>().is_ok_and(|cost| cost <= BCRYPT_COST)
        }
        ["", "5", _, rest] => rest.len() == 43,
        ["", "6", _, rest] => rest.len() == 86,
        ["", kind @ ("5" | "6"), rounds, _, rest] => {
            let rounds = rounds.strip_prefix("rounds=").and_then(|rounds| rounds.parse::<u32>().ok());
            let length = if kind == "5" { 43 } else { 86 };
            rest.len() == length && rounds.is_some_and(|rounds| rounds <= SHA_ROUNDS)
        }
        ["", "argon2id" | "argon2i" | "argon2d", _, _, salt, rest] => !salt.is_empty() && !rest.is_empty(),
        _ => false,
    }
}

/// Costs above these take seconds, and the gateway refuses them.
const BCRYPT_COST: u32 = 14;
const SHA_ROUNDS: u32 = 5_000_000;
