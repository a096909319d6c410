//! Credentials that a browser attaches to requests by itself, by which a response may be personal.

use http::{HeaderMap, HeaderValue, header};

/// The credentials of a request as received.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// Whether the request had `Authorization`.
    pub(crate) password: bool,
    cookies: Vec<HeaderValue>,
}

impl Credentials {
    /// Returns the credentials of a request with these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let cookies = headers.get_all(header::COOKIE).iter().cloned().collect();
        Self { password: headers.contains_key(header::AUTHORIZATION), cookies }
    }

    /// Returns whether the request had one of these cookies, where a `*` at the end of a name stands for any characters;
    /// `None` stands for all cookies.
    pub(crate) fn have_cookie(&self, names: Option<&[String]>) -> bool {
        let Some(names) = names else { return !self.cookies.is_empty() };
        let pairs = self.cookies.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        let mut found =
            pairs.map(|pair| pair.split(|byte| *byte == b'=').next().unwrap_or(pair).trim_ascii());
        found.any(|found| names.iter().any(|name| matches(found, name.as_bytes())))
    }
}

/// Returns whether a cookie has this name. Servers that ignore case are taken into account.
fn matches(found: &[u8], name: &[u8]) -> bool {
    match name.strip_suffix(b"*") {
        Some(begin) => found.get(..begin.len()).is_some_and(|found| found.eq_ignore_ascii_case(begin)),
        None => found.eq_ignore_ascii_case(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_by_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let have = |lines: &[&'static str], wanted: Option<&[&str]>| {
            let field = |line: &&'static str| (header::COOKIE, HeaderValue::from_static(line));
            let credentials = Credentials::of(&lines.iter().map(field).collect());
            credentials.have_cookie(wanted.map(names).as_deref())
        };
        let session = Some(&["session", "login_*"][..]);
        for (lines, found) in [
            (&["theme=dark"][..], false),
            (&["theme=dark; session=1"], true),
            (&["theme=session=1"], false),
            (&["theme=dark", "a=b;SESSION =1"], true),
            (&["xsession=1; session2=1"], false),
            (&["login_4f2c=1"], true),
            (&["session"], true),
            (&[], false),
        ] {
            assert_eq!(have(lines, session), found, "{lines:?}");
            assert_eq!(have(lines, None), !lines.is_empty(), "{lines:?}");
            assert!(!have(lines, Some(&[])));
        }
    }
}
