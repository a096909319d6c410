//! Redirects, path rewrites, and direct responses.

use crate::{
    common::{data_source, expression},
    reader::{Field, ReadMessage},
    schema,
    values::{enumeration, number},
};
use bytes::Bytes;
use quadrille_config::{
    Problem,
    model::{PathMatch, PathRewrite, PathRule, Redirect, Respond, Template, compiled},
};

pub(super) fn redirect(field: &Field<'_>, path: &PathMatch) -> Option<Redirect> {
    const STATUSES: &[(&str, u32, u16)] = &[
        ("MOVED_PERMANENTLY", 0, 301),
        ("FOUND", 1, 302),
        ("SEE_OTHER", 2, 303),
        ("TEMPORARY_REDIRECT", 3, 307),
        ("PERMANENT_REDIRECT", 4, 308),
    ];
    let message = field.message(&schema::REDIRECT)?;
    let scheme = match message.one_of(&["https_redirect", "scheme_redirect"]) {
        Some(("https_redirect", _)) => message.flag("https_redirect").then(|| "https".to_owned()),
        Some((_, scheme)) => match scheme.text()? {
            "https" => Some("https".to_owned()),
            "http" => Some("http".to_owned()),
            _ => return scheme.fail("must be `https` or `http`"),
        },
        None => None,
    };
    let rewrite = match message.one_of(&["path_redirect", "prefix_rewrite", "regex_rewrite"]) {
        Some(("path_redirect", full)) => Some(PathRewrite::Full(full.text()?.to_owned())),
        Some(("prefix_rewrite", prefix)) => Some(prefix_rewrite(&prefix, path)?),
        Some((_, regex)) => Some(regex_rewrite(&regex)?),
        None => None,
    };
    let port = match message.get("port_redirect") {
        Some(field) => Some(field.parse(|text| {
            let port = number(text)?;
            u16::try_from(port)
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| format!("{port} is not a port").into())
        })?),
        None => None,
    };
    Some(Redirect {
        scheme,
        host: message.get("host_redirect").and_then(|host| host.text()).map(Template::literal),
        port,
        path: rewrite,
        status: match message.get("response_code") {
            Some(code) => code.parse(enumeration(STATUSES))?,
            None => 301,
        },
        strip_query: message.flag("strip_query"),
    })
}

/// Reads a rewrite of the part of a path that the route matched.
pub(super) fn prefix_rewrite(field: &Field<'_>, path: &PathMatch) -> Option<PathRewrite> {
    let text = field.text()?.to_owned();
    // As in Envoy: a regular expression matches the whole path.
    Some(if matches!(path.rule, PathRule::Regex(_)) {
        PathRewrite::Full(text)
    } else {
        PathRewrite::Prefix(text)
    })
}

pub(super) fn regex_rewrite(field: &Field<'_>) -> Option<PathRewrite> {
    let message = field.message(&schema::REGEX_REWRITE)?;
    let pattern = message.require("pattern")?.message(&schema::REGEX_MATCHER)?;
    let regex = expression(&pattern.require("regex")?, compiled)?;
    Some(PathRewrite::Regex(regex, substitution(&message.string("substitution"))))
}

/// Converts a substitution: `\1` becomes `${1}`, `\\` a backslash, and `$` stays literal.
fn substitution(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '$' => written.push_str("$$"),
            '\\' => match letters.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    written.push_str("${");
                    written.push(digit);
                    written.push('}');
                }
                Some(other) => written.push(other),
                None => {}
            },
            _ => written.push(letter),
        }
    }
    written
}

pub(super) fn direct_response(field: &Field<'_>, largest: usize) -> Option<Respond> {
    let message = field.message(&schema::DIRECT_RESPONSE)?;
    let status = message.require("status")?.parse(|text| {
        let status = number(text)?;
        let status = u16::try_from(status).ok().filter(|status| (200..=599).contains(status));
        status.ok_or_else(|| Problem::new("not a response status", "use 200 to 599"))
    })?;
    let body = match message.get("body") {
        Some(body) => read_body(&body, largest)?,
        None => Bytes::new(),
    };
    Some(Respond { status, content_type: "text/plain".into(), body })
}

fn read_body(field: &Field<'_>, largest: usize) -> Option<Bytes> {
    let source = data_source(field)?;
    match source.read() {
        Ok(bytes) if bytes.len() > largest => field.fail(format!(
            "the body has {} bytes, and `max_direct_response_body_size_bytes` is {largest}",
            bytes.len()
        )),
        Ok(bytes) => {
            let taken = field.allowance().map_or(Ok(()), |allowance| allowance.take_body(bytes.len()));
            taken.map_err(|problem| field.error(problem)).ok()?;
            Some(Bytes::copy_from_slice(&bytes))
        }
        Err(error) => field.fail(format!("cannot read {source}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::substitution;

    #[test]
    fn groups_are_written_as_the_crate_wants_them() {
        assert_eq!(substitution(r"/\1/$x\\\2y"), r"/${1}/$$x\${2}y");
    }
}
