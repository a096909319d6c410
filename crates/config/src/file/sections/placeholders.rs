//! Placeholders in braces: parts of a request in paths, hosts and headers.

use crate::{
    Problem,
    model::{Expression, RequestPart, Template, TemplatePart},
    quote, values,
};

/// A part of a text with placeholders.
pub(super) enum Piece<'a> {
    Literal(String),
    /// The text between braces.
    Name(&'a str),
}

/// Splits a text at its placeholders. `{{` is a literal brace.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Problem> {
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        literal.push_str(before);
        if let Some(after) = after.strip_prefix('{') {
            literal.push('{');
            rest = after;
            continue;
        }
        let Some((name, after)) = after.split_once('}') else {
            return Err(Problem::new(
                format!("unclosed brace in {}", quote(text)),
                "write `{{` for a literal brace",
            ));
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Name(name));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// Parses the name of a part of a request; `None` for other names. `path` is the route's `path_regex`.
///
/// # Errors
/// If the expression does not have such a group.
pub(super) fn request_part(name: &str, path: Option<&Expression>) -> Result<Option<RequestPart>, Problem> {
    let numbered = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    match (name, path) {
        ("host", _) => Ok(Some(RequestPart::Host)),
        ("path", _) => Ok(Some(RequestPart::Path)),
        ("query", _) => Ok(Some(RequestPart::Query)),
        (_, None) if numbered => Err(Problem::new(
            format!("`{{{name}}}` is a group of `path_regex`, which is not set here"),
            "write `path_regex` with a group in parentheses, such as `/old/(.*)`",
        )),
        (_, None) => Ok(None),
        (_, Some(path)) => {
            let groups = path.captures_len();
            let by_name = || path.capture_names().position(|group| group == Some(name));
            let group = if numbered { name.parse().ok() } else { by_name() };
            match group {
                Some(group) if (1..groups).contains(&group) => {
                    Ok(Some(RequestPart::Capture(path.clone(), group)))
                }
                None if !numbered => Ok(None),
                _ => Err(Problem::new(
                    format!("`path_regex` has no group `{{{name}}}`: it has {}", groups - 1),
                    "groups are in parentheses, and counted from 1",
                )),
            }
        }
    }
}

/// Parses the path of a redirect or a rewrite, which may have placeholders. `path` is the route's `path_regex`.
pub(super) fn path(text: &str, path: Option<&Expression>) -> Result<Template, Problem> {
    let template = template(text, path, &["host", "path", "query"])?;
    match (&template.0[..], template.as_literal()) {
        (_, Some(literal)) => return values::path(literal).map(Template::literal),
        ([TemplatePart::Literal(first), ..], _) => values::path(first.split('?').next().unwrap_or_default())?,
        ([TemplatePart::Request(RequestPart::Path), ..], _) => String::new(),
        _ => {
            let message = format!("{} does not begin with a slash", quote(text));
            return Err(Problem::new(message, format!("write `/{text}`")));
        }
    };
    for pair in template.0.windows(2) {
        if let [TemplatePart::Literal(before), TemplatePart::Request(RequestPart::Path)] = pair
            && before.ends_with('/')
        {
            let message = "`{path}` begins with a slash, so that two would follow each other";
            return Err(Problem::new(message, "remove the slash before `{path}`"));
        }
    }
    let sendable = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    let bad = template.0.iter().any(|part| match part {
        TemplatePart::Literal(text) => !text.bytes().all(sendable),
        TemplatePart::Request(_) => false,
    });
    if bad {
        let message = format!("{} has a character that a URL must percent-encode", quote(text));
        return Err(Problem::new(message, "write it as `%` and two hexadecimal digits"));
    }
    Ok(template)
}

/// Parses the host of a redirect, which may contain the request's. A group of a path could name any other host.
pub(super) fn host(text: &str) -> Result<Template, Problem> {
    let numbered = |piece: &Piece<'_>| matches!(piece, Piece::Name(name) if name.parse::<usize>().is_ok());
    if pieces(text)?.iter().any(numbered) {
        let message = "a group of the path must not choose the host, since it could name another site";
        return Err(Problem::new(message, "write the host, or `{host}`"));
    }
    let template = template(text, None, &["host"])?;
    values::host(&text.replace("{host}", "host.example"))?;
    Ok(template)
}

fn template(text: &str, path: Option<&Expression>, known: &[&str]) -> Result<Template, Problem> {
    let part = |piece| match piece {
        Piece::Literal(text) => Ok(TemplatePart::Literal(text)),
        Piece::Name(name) => {
            let part = request_part(name, path)?.filter(|part| match part {
                RequestPart::Capture(..) => true,
                _ => known.contains(&name),
            });
            part.map(TemplatePart::Request).ok_or_else(|| unknown(name, known))
        }
    };
    pieces(text)?.into_iter().map(part).collect::<Result<_, _>>().map(Template)
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let known: Vec<_> = known.iter().map(|name| format!("`{{{name}}}`")).collect();
    let groups = if known.len() > 1 { " and, with `path_regex`, its groups: `{1}` or `{name}`" } else { "" };
    Problem::new(
        format!("unknown placeholder `{{{name}}}`"),
        format!("known are {}{groups}", known.join(", ")),
    )
}

/// Shows a text with placeholders.
pub(super) fn show(template: &Template) -> String {
    let part = |part: &TemplatePart| match part {
        TemplatePart::Literal(text) => text.replace('{', "{{"),
        TemplatePart::Request(part) => show_part(part),
    };
    template.0.iter().map(part).collect()
}

/// Shows a placeholder.
pub(super) fn show_part(part: &RequestPart) -> String {
    match part {
        RequestPart::Host => "{host}".to_owned(),
        RequestPart::Path => "{path}".to_owned(),
        RequestPart::Query => "{query}".to_owned(),
        RequestPart::Capture(_, group) => format!("{{{group}}}"),
    }
}
