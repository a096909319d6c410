//! Users with the hashes of their passwords.

use super::credentials::Credentials;
use argon2::{Argon2, PasswordVerifier};
use base64ct::{Base64, Encoding};
use quadrille_config::{
    Diagnostic,
    model::{BasicAuth, PasswordHashes, Problem},
};
use ring::digest;
use sha_crypt::ShaCrypt;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// Users with the hashes of their passwords.
pub(super) struct Users {
    hashes: HashMap<Arc<str>, Hash>,
    /// The costliest hash, which is computed for unknown users and after a wrong password with a cheaper hash: the
    /// time of a response does not tell whether a user exists.
    costliest: Hash,
}

/// The hash of a password.
#[derive(Clone)]
enum Hash {
    Bcrypt(String),
    ShaCrypt(String),
    Argon2(String),
    Sha1([u8; 20]),
}

/// Maximum bcrypt cost, SHA-crypt rounds, and Argon2 memory (in KiB) and passes: about a second of CPU.
const BCRYPT_COST: u32 = 14;
const SHA_ROUNDS: u32 = 5_000_000;
const ARGON2_MEMORY: u32 = 256 * 1024;
const ARGON2_PASSES: u32 = 20;

impl Users {
    /// Parses the user file.
    pub(super) fn read(model: &BasicAuth) -> Result<Self, Diagnostic> {
        let fail = |problem: Problem| Diagnostic::new(&model.users_place, problem);
        let bytes = model.users.read().map_err(|error| {
            let remedy = "create it with `htpasswd -B -c FILE NAME`, readable by the gateway";
            fail(Problem::new(format!("cannot read the users in {}: {error}", model.users), remedy))
        })?;
        let text = str::from_utf8(&bytes)
            .map_err(|_| fail(Problem::new(format!("{} is not UTF-8", model.users), "encode it as UTF-8")))?;
        let mut hashes = HashMap::new();
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |problem: Problem| {
                let message = format!("line {number} of {}: {}", model.users, problem.message);
                fail(Problem { message, ..problem })
            };
            let (name, hash) = user(line, model.hashes).map_err(at)?;
            match hashes.entry(Arc::from(name)) {
                Entry::Vacant(entry) => _ = entry.insert(hash),
                Entry::Occupied(_) => {
                    return Err(at(Problem::new(format!("`{name}` is listed twice"), "remove one")));
                }
            }
        }
        let Some(costliest) = hashes.values().max_by_key(|hash| hash.cost()).cloned() else {
            let remedy = "add one with `htpasswd -B FILE NAME`";
            return Err(fail(Problem::new(format!("{} has no users", model.users), remedy)));
        };
        Ok(Self { hashes, costliest })
    }

    /// Returns the user with this name.
    pub(super) fn name(&self, name: &str) -> Option<Arc<str>> {
        self.hashes.get_key_value(name).map(|(name, _)| Arc::clone(name))
    }

    /// Returns the user if the password is right. Takes long.
    pub(super) fn verify(&self, said: &Credentials) -> Option<Arc<str>> {
        let known = self.hashes.get_key_value(&*said.user);
        if let Some((name, hash)) = known
            && hash.is_of(&said.password)
        {
            return Some(Arc::clone(name));
        }
        if known.is_none_or(|(_, hash)| hash.cost() < self.costliest.cost()) {
            self.costliest.is_of(&said.password);
        }
        None
    }
}

impl Hash {
    /// Returns the approximate time to compute it, in microseconds.
    fn cost(&self) -> u64 {
        match self {
            Self::Bcrypt(hash) => 45 << bcrypt_cost(hash).unwrap_or_default().min(BCRYPT_COST),
            Self::ShaCrypt(hash) => u64::from(sha_rounds(hash).unwrap_or_default()) / 2,
            Self::Argon2(hash) => {
                let (memory, passes) = argon2_cost(hash).unwrap_or_default();
                u64::from(memory) * u64::from(passes) / 2
            }
            Self::Sha1(_) => 0,
        }
    }

    /// Compares in time that does not depend on how much of the password is right.
    fn is_of(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::ShaCrypt(hash) => ShaCrypt::default().verify_password(password, hash.as_str()).is_ok(),
            Self::Argon2(hash) => Argon2::default().verify_password(password, hash.as_str()).is_ok(),
            Self::Sha1(hash) => {
                let computed = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password);
                boring::memcmp::eq(computed.as_ref(), hash)
            }
        }
    }
}

/// Parses a line into a user name and a hash. The text after another colon is a comment.
fn user(line: &str, accepted: PasswordHashes) -> Result<(&str, Hash), Problem> {
    let (name, rest) = line
        .split_once(':')
        .filter(|(name, _)| !name.is_empty() && !name.chars().any(char::is_control))
        .ok_or_else(|| Problem::new("there is no name", "write a name, a colon and a hash"))?;
    let hash = rest.split(':').next().unwrap_or_default();
    let hash = match accepted {
        PasswordHashes::Slow => slow(name, hash),
        PasswordHashes::Sha1 => sha1(name, hash),
    };
    hash.map(|hash| (name, hash))
}

fn slow(name: &str, hash: &str) -> Result<Hash, Problem> {
    let again = || format!("hash it again: `htpasswd -B FILE {name}`");
    let weak = |how: &str| {
        let message =
            format!("the password of `{name}` is hashed with {how}, which allows many guesses per second");
        Err(Problem::new(message, again()))
    };
    let (read, dear): (Option<Hash>, bool) = match hash {
        hash if ["$2y$", "$2b$", "$2a$"].iter().any(|prefix| hash.starts_with(prefix)) => {
            let cost = bcrypt_cost(hash);
            (cost.map(|_| Hash::Bcrypt(hash.to_owned())), cost.is_some_and(|cost| cost > BCRYPT_COST))
        }
        hash if hash.starts_with("$5$") || hash.starts_with("$6$") => {
            let rounds = sha_rounds(hash);
            (
                rounds.map(|_| Hash::ShaCrypt(hash.to_owned())),
                rounds.is_some_and(|rounds| rounds > SHA_ROUNDS),
            )
        }
        hash if hash.starts_with("$argon2") => {
            let cost = argon2_cost(hash);
            let dear = |(memory, passes)| memory > ARGON2_MEMORY || passes > ARGON2_PASSES;
            (cost.map(|_| Hash::Argon2(hash.to_owned())), cost.is_some_and(dear))
        }
        hash if hash.starts_with("$apr1$") || hash.starts_with("$1$") => return weak("MD5"),
        hash if hash.starts_with("{SHA}") || hash.starts_with("{SSHA}") => return weak("SHA-1"),
        _ => {
            let message = format!("the text after `{name}:` is not a bcrypt, SHA-crypt or Argon2 hash");
            return Err(Problem::new(message, again()));
        }
    };
    match read {
        None => Err(Problem::new(format!("the hash of `{name}` is damaged"), again())),
        Some(_) if dear => {
            let message = format!("the hash of `{name}` takes seconds to compute, also for wrong passwords");
            Err(Problem::new(message, again()))
        }
        Some(hash) => Ok(hash),
    }
}

fn sha1(name: &str, hash: &str) -> Result<Hash, Problem> {
    let mut bytes = [0; 20];
    let encoded = hash.strip_prefix("{SHA}");
    match encoded.and_then(|encoded| Base64::decode(encoded, &mut bytes).ok()).map(<[u8]>::len) {
        Some(20) => Ok(Hash::Sha1(bytes)),
        _ => {
            let message = format!("the password of `{name}` is not an `{{SHA}}` hash, as Envoy requires");
            Err(Problem::new(message, format!("hash it again: `htpasswd -s FILE {name}`")))
        }
    }
}

/// Returns the cost of a well-formed hash: `$2y$`, two digits, `$`, 22 characters of salt and 31 of hash.
fn bcrypt_cost(hash: &str) -> Option<u32> {
    let (cost, rest) = hash.get(4..)?.split_once('$')?;
    let is_base64 = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'));
    (cost.len() == 2 && rest.len() == 53 && is_base64).then(|| cost.parse().ok()).flatten()
}

/// Returns the rounds of a well-formed hash: `$5$` or `$6$`, optionally `rounds=N$`, the salt, `$`, and the hash.
fn sha_rounds(hash: &str) -> Option<u32> {
    let length = if hash.starts_with("$5$") { 43 } else { 86 };
    let parts: Vec<_> = hash.get(3..)?.split('$').collect();
    let (rounds, hash) = match parts[..] {
        [_, hash] => (5000, hash),
        [rounds, _, hash] => (rounds.strip_prefix("rounds=")?.parse().ok()?, hash),
        _ => return None,
    };
    (hash.len() == length).then_some(rounds)
}

/// Returns the memory and the passes of a well-formed hash.
fn argon2_cost(hash: &str) -> Option<(u32, u32)> {
    let hash = argon2::PasswordHash::new(hash).ok()?;
    let params = argon2::Params::try_from(&hash).ok()?;
    hash.hash.is_some().then(|| (params.m_cost(), params.t_cost()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::{Place, Source};
    use zeroize::Zeroizing;

    /// Created with `htpasswd -B`, `openssl passwd -5` and `-6`, Python's `crypt`, and `argon2`.
    const LINES: &str = "# All users have the same password.

ada:$2y$05$DdtPXFFCcdaikKOAhelah.ig4957ecLHk7CcmHEhDzxwEVL6SC1Ci
bob:$5$saltsalt$yrhPKxCqiWcCE9h0g86j6Ugz7SDFdFm.BjU.d8RaQnC:with a comment
eve:$6$saltsalt$e/5XKibXPLqVcfjpD.ouauaJrAOL5V0uo80Lt7n7EbRdRiCx3HbQ90yjOHr.G0T.mx79PEMRy8nmtr0qSYhQp1
few:$6$rounds=1000$salt$c/rx876elUtSjHtqzbR4t4bBD/c0LZyMkaP8WcR76l0qH4uuR/u2OObFJW77Apnmy6G3yYLi4kU2yXpy3CXj60
zoë:$argon2id$v=19$m=1024,t=2,p=1$c2FsdHNhbHRzYWx0$0iePWWZuL+UGVOmRxFk7m0gJMioww6rULm+/nzPSM4Q
";

    fn read(text: &str, hashes: PasswordHashes) -> Result<Users, String> {
        let model = BasicAuth {
            users: Source::inline(text),
            users_place: Place::flag("test"),
            hashes,
            realm: String::new(),
            forwards: false,
            user_header: None,
            guesses: None,
        };
        Users::read(&model).map_err(|problem| problem.to_string())
    }

    fn accepts(users: &Users, user: &str, password: &str) -> bool {
        let password = Zeroizing::new(password.as_bytes().to_vec());
        users.verify(&Credentials { user: user.into(), password }).is_some()
    }

    #[test]
    fn hashes_that_others_have_made() {
        let users = read(LINES, PasswordHashes::Slow).expect("users");
        for user in ["ada", "bob", "eve", "few", "zoë"] {
            assert!(accepts(&users, user, "open sesame"), "{user}");
            assert!(!accepts(&users, user, "open sesamE"), "{user}");
            assert!(!accepts(&users, user, ""), "{user}");
        }
        assert!(!accepts(&users, "mallory", "open sesame"), "no user has another's password");
        let users = read("bob:{SHA}W8r/fyL/UzygmbNAjq2HbA67qac=", PasswordHashes::Sha1).expect("users");
        assert!(accepts(&users, "bob", "open sesame") && !accepts(&users, "bob", "x"));
    }

    #[test]
    fn unknown_users_take_the_time_of_the_costliest_hash() {
        let lines: Vec<_> = LINES.lines().skip(2).collect();
        let costliest = |lines: &[&str]| {
            let users = read(&lines.join("\n"), PasswordHashes::Slow).expect("users");
            let is_it = |(_, hash): &(&Arc<str>, &Hash)| hash.cost() == users.costliest.cost();
            users.hashes.iter().find(is_it).map(|(name, _)| name.to_string())
        };
        assert_eq!(costliest(&[lines[1], lines[3]]).as_deref(), Some("bob"), "5,000 rounds, the default");
        assert_eq!(costliest(&lines[3..]).as_deref(), Some("zoë"), "1 MiB twice");
        let dear = format!("dear:$2y$12${}", "a".repeat(53));
        assert_eq!(costliest(&[&lines[..], &[&*dear]].concat()).as_deref(), Some("dear"));
        let users = read(LINES, PasswordHashes::Slow).expect("users");
        assert!(users.hashes.values().all(|hash| hash.cost() <= users.costliest.cost()));
    }

    /// None of the messages contains a hash, because messages are logged.
    #[test]
    fn lines_that_are_not_users() {
        let first = LINES.lines().nth(2).expect("a line");
        let ada = &first["ada:".len()..];
        for (lines, expected) in [
            ("ada", "test: line 1 of (inline): there is no name; write a name, a colon and a hash".to_owned()),
            (":x", "test: line 1 of (inline): there is no name; write a name, a colon and a hash".to_owned()),
            (
                "ada:open sesame",
                "test: line 1 of (inline): the text after `ada:` is not a bcrypt, SHA-crypt or Argon2 hash; \
                 hash it again: `htpasswd -B FILE ada`"
                    .to_owned(),
            ),
            (
                "\nbob:$apr1$7D5ALhiV$2RnQKzs.wB8.uhFjQoGrx.",
                "test: line 2 of (inline): the password of `bob` is hashed with MD5, which allows many \
                 guesses per second; hash it again: `htpasswd -B FILE bob`"
                    .to_owned(),
            ),
            (
                "bob:{SHA}W8r/fyL/UzygmbNAjq2HbA67qac=",
                "test: line 1 of (inline): the password of `bob` is hashed with SHA-1, which allows many \
                 guesses per second; hash it again: `htpasswd -B FILE bob`"
                    .to_owned(),
            ),
            (
                &first[..first.len() - 1],
                "test: line 1 of (inline): the hash of `ada` is damaged; hash it again: `htpasswd -B FILE ada`".to_owned(),
            ),
            (
                &format!("ada:{}", ada.replace("$05$", "$15$")),
                "test: line 1 of (inline): the hash of `ada` takes seconds to compute, also for wrong \
                 passwords; hash it again: `htpasswd -B FILE ada`"
                    .to_owned(),
            ),
            (
                &format!("{first}\n{first}"),
                "test: line 2 of (inline): `ada` is listed twice; remove one".to_owned(),
            ),
            ("# no users", "test: (inline) has no users; add one with `htpasswd -B FILE NAME`".to_owned()),
        ] {
            assert_eq!(read(lines, PasswordHashes::Slow).err().as_deref(), Some(&*expected), "{lines}");
        }
        assert!(read(LINES, PasswordHashes::Sha1).is_err());
    }
}
