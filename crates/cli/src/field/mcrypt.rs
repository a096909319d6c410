//! The settings file of `--mcrypt`: the parameters that an application used with PHP's mcrypt extension.

use base64ct::{Base64, Encoding};
use quadrille_field::{Mcrypt, McryptEncoding, McryptForm, McryptMode, McryptPadding, McryptVector};
use std::{collections::HashMap, fs, os::unix::fs::MetadataExt, path::Path};
use zeroize::Zeroizing;

/// Reads the file, with lines such as `cipher: rijndael-256`. Errors contain no part of a key.
pub(super) fn load(file: &Path) -> Result<Mcrypt, String> {
    let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
    if metadata.mode() & 0o077 != 0 {
        return Err("other users can read the key; restrict it with chmod 600".to_owned());
    }
    let text = Zeroizing::new(fs::read_to_string(file).map_err(|error| error.to_string())?);
    parse(&text)
}

fn parse(text: &str) -> Result<Mcrypt, String> {
    let mut settings = Settings::of(text)?;
    let form = McryptForm {
        block: settings.choice(
            "cipher",
            None,
            &[("rijndael-128", 16), ("rijndael-192", 24), ("rijndael-256", 32)],
        )?,
        mode: settings.choice("mode", None, MODES)?,
        padding: settings.choice("padding", Some("zero"), PADDINGS)?,
        encoding: settings.choice("encoding", Some("base64"), ENCODINGS)?,
        is_binary: settings.choice("content", Some("text"), &[("text", false), ("binary", true)])?,
    };
    let vector = match settings.take("vector").unwrap_or("front") {
        "front" => McryptVector::Front,
        "zero" => McryptVector::Fixed(Vec::new()),
        fixed => McryptVector::Fixed(bytes("vector", fixed)?.to_vec()),
    };
    let key = bytes("key", settings.take("key").ok_or("the line `key: ...` is missing")?)?;
    settings.expect_no_more()?;
    Mcrypt::new(&key, form, vector).map_err(|error| error.to_string())
}

const MODES: &[(&str, McryptMode)] = &[
    ("ecb", McryptMode::Ecb),
    ("cbc", McryptMode::Cbc),
    ("cfb", McryptMode::Cfb),
    ("ncfb", McryptMode::Ncfb),
];
const PADDINGS: &[(&str, McryptPadding)] = &[("zero", McryptPadding::Zero), ("pkcs7", McryptPadding::Pkcs7)];
const ENCODINGS: &[(&str, McryptEncoding)] =
    &[("base64", McryptEncoding::Base64), ("hex", McryptEncoding::Hex), ("raw", McryptEncoding::Raw)];

/// `text:...`, `hex:...` or `base64:...`.
fn bytes(name: &str, value: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let bytes = match value.split_once(':') {
        Some(("text", text)) => Some(text.as_bytes().to_vec()),
        Some(("hex", text)) => from_hex(text),
        Some(("base64", text)) => Base64::decode_vec(text).ok(),
        _ => None,
    };
    let bytes = bytes.ok_or_else(|| format!("{name}: expected text:..., hex:... or base64:..."))?;
    Ok(Zeroizing::new(bytes))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

struct Settings<'a>(HashMap<&'a str, &'a str>);

impl<'a> Settings<'a> {
    fn of(text: &'a str) -> Result<Self, String> {
        let mut settings = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let problem = || format!("line {}: expected a unique setting, such as `mode: cbc`", number + 1);
            let (name, value) = line.split_once(": ").ok_or_else(problem)?;
            if settings.insert(name, value).is_some() {
                return Err(problem());
            }
        }
        Ok(Self(settings))
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        self.0.remove(name)
    }

    fn choice<T: Copy>(
        &mut self,
        name: &str,
        default: Option<&'a str>,
        choices: &[(&str, T)],
    ) -> Result<T, String> {
        let value = self.take(name).or(default);
        let found = choices.iter().find(|(choice, _)| Some(*choice) == value);
        let names = || choices.iter().map(|(choice, _)| *choice).collect::<Vec<_>>().join(", ");
        found.map(|&(_, choice)| choice).ok_or_else(|| format!("{name}: expected one of {}", names()))
    }

    fn expect_no_more(&self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(name) => Err(format!("unknown setting `{name}`")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ciphertext was generated with libmcrypt.
    #[test]
    fn settings_are_read() {
        let text = "# users.email\ncipher: rijndael-128\nmode: ecb\nencoding: hex\n\
                    key: hex:030a11181f262d343b424950575e656c\n";
        let mcrypt = parse(text).expect("settings");
        let plain = mcrypt.decrypt(b"6351bf544ac447de31d5e6270c9f37e9").expect("reads");
        assert_eq!(plain, b"+49 30 1234567");
    }

    #[test]
    fn errors_do_not_contain_the_key() {
        let good = "cipher: rijndael-256\nmode: cbc\nkey: text:geheim\n";
        assert!(parse(good).is_ok());
        for (text, expected) in [
            (good.replace("cbc", "gcm"), "mode: expected one of ecb, cbc, cfb, ncfb"),
            (good.replace("mode: cbc", "mode=cbc"), "line 2: "),
            (good.replace("text:geheim", "geheim"), "key: expected text:"),
            (good.replace("key", "kye"), "the line `key: ...` is missing"),
            (format!("{good}vector: hex:00\n"), "an initialisation vector 16, 24 or 32"),
            (format!("{good}salt: 1\n"), "unknown setting `salt`"),
            (format!("{good}mode: cbc\n"), "line 4: "),
        ] {
            let problem = parse(&text).err().expect("a problem");
            assert!(problem.contains(expected), "{problem}");
            assert!(!problem.contains("geheim"), "{problem}");
        }
    }
}
