//! `pkcs11:` URIs of private keys in tokens (RFC 7512).

use crate::{
    model::{PinSource, Pkcs11Key, Pkcs11Token, Problem, Source},
    values,
};
use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

/// Scheme of the URIs.
const SCHEME: &str = "pkcs11:";

/// Returns whether a text is a URI of this scheme.
pub fn is_uri(text: &str) -> bool {
    text.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// Parses a URI (RFC 7512 section 2.3). Attributes without an effect are refused, because a key could be taken for
/// another one.
///
/// # Errors
/// The mistake, with its remedy.
pub fn parse(text: &str) -> Result<Pkcs11Key, Problem> {
    let body = text.get(SCHEME.len()..).filter(|_| is_uri(text));
    let body = body.ok_or_else(|| Problem::new("not a PKCS#11 URI", format!("write {EXAMPLE}")))?;
    let (path, query) = body.split_once('?').unwrap_or((body, ""));
    let mut draft = Draft::default();
    for attribute in path.split(';').filter(|attribute| !attribute.is_empty()) {
        let (name, value) = attribute_of(attribute)?;
        draft.set(name, value)?;
    }
    for attribute in query.split('&').filter(|attribute| !attribute.is_empty()) {
        let (name, value) = attribute_of(attribute)?;
        draft.set_query(name, value)?;
    }
    draft.key()
}

const EXAMPLE: &str = "pkcs11:token=keys;object=shop?module-path=/usr/lib/softhsm/libsofthsm2.so&\
                       pin-source=file:/etc/quadrille/keys.pin";

/// Number of sessions by default: HSMs in the network need several operations in flight.
const SESSIONS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
const MOST_SESSIONS: usize = 1024;

/// Timeout by default: shorter than that of gateways, which then have time for another key server.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Draft {
    module: Option<PathBuf>,
    label: Option<String>,
    manufacturer: Option<String>,
    model: Option<String>,
    serial: Option<String>,
    slot: Option<u64>,
    object: Option<String>,
    id: Option<Vec<u8>>,
    kind: Option<String>,
    pin: Option<PinSource>,
    sessions: Option<NonZeroUsize>,
    timeout: Option<Duration>,
}

impl Draft {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "token" => once(&mut self.label, name, text(name, value)?),
            "manufacturer" => once(&mut self.manufacturer, name, text(name, value)?),
            "model" => once(&mut self.model, name, text(name, value)?),
            "serial" => once(&mut self.serial, name, text(name, value)?),
            "object" => once(&mut self.object, name, text(name, value)?),
            "id" => once(&mut self.id, name, identifier(value)?),
            "slot-id" => once(&mut self.slot, name, slot(value)?),
            "type" if value == "private" => once(&mut self.kind, name, value.to_owned()),
            "type" => Err(Problem::new(
                format!("`type={}` is not a private key", value.escape_debug()),
                "write `type=private`, or remove it",
            )),
            _ => Err(Problem::new(
                format!("unknown attribute `{}`", name.escape_debug()),
                "the attributes are token, manufacturer, model, serial, slot-id, object, id and type",
            )),
        }
    }

    fn set_query(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "module-path" => once(&mut self.module, name, path(name, &text(name, value)?)?),
            "pin-source" => once(&mut self.pin, name, pin_source(&text(name, value)?)?),
            "pin-value" => Err(Problem::new(
                "a PIN in the URI would be shown in logs",
                "write it to a file that only this user may read, and use pin-source=file:/path",
            )),
            "x-sessions" => {
                let count = values::count(value)?;
                if count.get() > MOST_SESSIONS {
                    return Err(Problem::new(format!("more than {MOST_SESSIONS} sessions"), "use fewer"));
                }
                once(&mut self.sessions, name, count)
            }
            "x-timeout" => once(&mut self.timeout, name, values::timeout(value)?),
            _ => Err(Problem::new(
                format!("unknown attribute `{}` after the question mark", name.escape_debug()),
                "the attributes are module-path, pin-source, x-sessions and x-timeout",
            )),
        }
    }

    fn key(self) -> Result<Pkcs11Key, Problem> {
        let missing = || {
            let remedy = "add ?module-path= with the library of the token's vendor, such as \
                          module-path=/usr/lib/softhsm/libsofthsm2.so";
            Problem::new("`module-path` is missing", remedy)
        };
        let named = [&self.label, &self.serial].into_iter().any(Option::is_some) || self.slot.is_some();
        if !named {
            return Err(Problem::new("the URI names no token", "add token=, serial= or slot-id="));
        }
        let token = Pkcs11Token {
            module: self.module.ok_or_else(missing)?,
            label: self.label,
            manufacturer: self.manufacturer,
            model: self.model,
            serial: self.serial,
            slot: self.slot,
            pin: self.pin,
            sessions: self.sessions.unwrap_or(SESSIONS),
            timeout: self.timeout.unwrap_or(TIMEOUT),
        };
        Ok(Pkcs11Key { token, object: self.object, id: self.id })
    }
}

fn attribute_of(attribute: &str) -> Result<(&str, &str), Problem> {
    attribute.split_once('=').ok_or_else(|| {
        Problem::new(format!("`{}` has no value", attribute.escape_debug()), "write name=value")
    })
}

fn once<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), Problem> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::new(format!("`{name}` is given twice"), "remove one")),
    }
}

fn text(name: &str, value: &str) -> Result<String, Problem> {
    let bytes = decoded(value)?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.is_empty() && !text.contains('\0'));
    text.ok_or_else(|| {
        Problem::new(
            format!("`{name}` is empty or not text in UTF-8"),
            "write the value, or remove the attribute",
        )
    })
}

fn identifier(value: &str) -> Result<Vec<u8>, Problem> {
    let bytes = decoded(value)?;
    if bytes.is_empty() {
        return Err(Problem::new(
            "`id` is empty",
            "write it percent-encoded, such as id=%01%a2, or remove it",
        ));
    }
    Ok(bytes)
}

fn slot(value: &str) -> Result<u64, Problem> {
    value.parse().map_err(|_| {
        Problem::new(
            format!("`slot-id={}` is not a number", value.escape_debug()),
            "write it in decimal digits",
        )
    })
}

fn path(name: &str, text: &str) -> Result<PathBuf, Problem> {
    let path = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
    if path.starts_with('/') {
        return Ok(PathBuf::from(path));
    }
    Err(Problem::new(format!("`{name}={}` is not an absolute path", text.escape_debug()), "begin it with /"))
}

/// Parses the source of a PIN: a path, a `file:` URI, or `env:` with the name of a variable.
fn pin_source(text: &str) -> Result<PinSource, Problem> {
    if text.starts_with('|') {
        let problem = "a command as the source of a PIN is not supported";
        return Err(Problem::new(problem, "use pin-source=file:/path, or pin-source=env:NAME"));
    }
    match text.strip_prefix("env:") {
        Some("") => Err(Problem::new("the name of the variable is missing", "write pin-source=env:NAME")),
        Some(name) => Ok(PinSource::Environment(name.to_owned())),
        None => path("pin-source", text).map(|path| PinSource::File(Source::File(path))),
    }
}

/// Decodes percent-encoding (RFC 3986 section 2.1).
fn decoded(text: &str) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let pair = rest.split_at_checked(2).filter(|(pair, _)| pair.iter().all(u8::is_ascii_hexdigit));
        let pair = pair.and_then(|(pair, after)| Some((std::str::from_utf8(pair).ok()?, after)));
        let (pair, after) = pair.ok_or_else(|| {
            Problem::new(
                format!("`{}` is not percent-encoded", text.escape_debug()),
                "write two hexadecimal digits after each %, and %25 for a percent sign",
            )
        })?;
        bytes.push(u8::from_str_radix(pair, 16).unwrap_or_default());
        rest = after;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::model::{PinSource, Source};
    use std::time::Duration;

    const MODULE: &str = "module-path=/usr/lib/softhsm/libsofthsm2.so";

    #[test]
    fn all_attributes() {
        let text = format!(
            "pkcs11:token=The%20keys;manufacturer=M;model=v2;serial=0a;slot-id=7;object=shop%3b1;id=%01%a2;type=private\
             ?{MODULE}&pin-source=file:/etc/pin&x-sessions=4&x-timeout=500ms"
        );
        let key = parse(&text).unwrap();
        assert_eq!((key.object.as_deref(), key.id.as_deref()), (Some("shop;1"), Some(&[1, 0xa2][..])));
        let token = &key.token;
        assert_eq!((token.label.as_deref(), token.slot), (Some("The keys"), Some(7)));
        assert_eq!((token.sessions.get(), token.timeout), (4, Duration::from_millis(500)));
        assert_eq!(token.pin, Some(PinSource::File(Source::File("/etc/pin".into()))));
        let shown =
            "pkcs11:token=The%20keys;manufacturer=M;model=v2;serial=0a;slot-id=7;object=shop%3B1;id=%01%a2";
        assert_eq!(key.to_string(), shown);
        assert_eq!(parse(&format!("{shown}?{MODULE}")).unwrap().id, key.id, "it can be read again");
    }

    #[test]
    fn sources_of_the_pin() {
        let pin = |source: &str| {
            parse(&format!("pkcs11:token=a?{MODULE}&pin-source={source}")).map(|key| key.token.pin)
        };
        let file = Some(PinSource::File(Source::File("/a/b".into())));
        for text in ["/a/b", "file:/a/b", "file:///a/b", "file%3A%2Fa%2Fb"] {
            assert_eq!(pin(text).unwrap(), file, "{text}");
        }
        assert_eq!(pin("env:PIN").unwrap(), Some(PinSource::Environment("PIN".into())));
        for text in ["|cat%20/a", "b", "env:", ""] {
            assert!(pin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mistakes_have_remedies() {
        for (text, part) in [
            ("pkcs12:token=a", "not a PKCS#11 URI"),
            ("pkcs11:token=a;object=b", "`module-path` is missing"),
            ("pkcs11:object=b?module-path=/a", "names no token"),
            ("pkcs11:token=a;token=b?module-path=/a", "given twice"),
            ("pkcs11:token=a;colour=b?module-path=/a", "unknown attribute `colour`"),
            ("pkcs11:token=a;type=cert?module-path=/a", "not a private key"),
            ("pkcs11:token=a%2?module-path=/a", "not percent-encoded"),
            ("pkcs11:token=a%ff?module-path=/a", "UTF-8"),
            ("pkcs11:token=a;slot-id=x?module-path=/a", "not a number"),
            ("pkcs11:token=a?module-path=lib.so", "absolute"),
            ("pkcs11:token=a?module-path=/a&pin-value=1234", "shown in logs"),
            ("pkcs11:token=a?module-path=/a&x-sessions=0", "0"),
            ("pkcs11:token=a?module-path=/a&x-sessions=5000", "more than 1024"),
            ("pkcs11:token", "has no value"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.to_string().contains(part), "{text}: {problem}");
            assert!(problem.remedy.is_some(), "{text}: {problem}");
            assert!(!problem.to_string().contains("1234"));
        }
    }
}
