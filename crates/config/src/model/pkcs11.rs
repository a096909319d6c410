//! Private keys in PKCS#11 tokens.

use super::Source;
use std::{fmt, num::NonZeroUsize, path::PathBuf, time::Duration};

/// A private key in a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pkcs11Key {
    /// The token.
    pub token: Pkcs11Token,
    /// Label of the key (`CKA_LABEL`).
    pub object: Option<String>,
    /// Identifier of the key (`CKA_ID`).
    pub id: Option<Vec<u8>>,
}

/// A token, and the settings of its sessions. Keys with equal tokens share the sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pkcs11Token {
    /// The library of the token's vendor.
    pub module: PathBuf,
    /// Label of the token.
    pub label: Option<String>,
    /// Manufacturer of the token.
    pub manufacturer: Option<String>,
    /// Model of the token.
    pub model: Option<String>,
    /// Serial number of the token.
    pub serial: Option<String>,
    /// Number of the slot.
    pub slot: Option<u64>,
    /// Source of the user's PIN; `None` for tokens that require no login.
    pub pin: Option<PinSource>,
    /// Largest number of sessions, each with one operation at a time.
    pub sessions: NonZeroUsize,
    /// Time after which an operation without a result fails.
    pub timeout: Duration,
}

/// Source of a PIN. A PIN in the URI itself is refused: URIs are logged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PinSource {
    /// A file, without its last line break.
    File(Source),
    /// An environment variable.
    Environment(String),
}

impl Pkcs11Key {
    /// Returns the files that the URI names, except for the module.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.token.pin.iter().filter_map(|pin| match pin {
            PinSource::File(source) => Some(source),
            PinSource::Environment(_) => None,
        })
    }
}

/// Shows the attributes that name the key, as a URI.
impl fmt::Display for Pkcs11Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.token.fmt(f)?;
        self.object.iter().try_for_each(|object| write!(f, ";object={}", encoded(object)))?;
        let id = |id: &Vec<u8>| id.iter().map(|byte| format!("%{byte:02x}")).collect::<String>();
        self.id.iter().try_for_each(|bytes| write!(f, ";id={}", id(bytes)))
    }
}

/// Shows the attributes that name the token, as a URI.
impl fmt::Display for Pkcs11Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = [
            ("token", &self.label),
            ("manufacturer", &self.manufacturer),
            ("model", &self.model),
            ("serial", &self.serial),
        ];
        let texts =
            texts.into_iter().filter_map(|(name, text)| Some(format!("{name}={}", encoded(text.as_ref()?))));
        let named: Vec<String> = texts.chain(self.slot.map(|slot| format!("slot-id={slot}"))).collect();
        write!(f, "pkcs11:{}", named.join(";"))
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
