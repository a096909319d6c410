//! Text format of access log lines: nginx's variables in a text.

use crate::{
    model::{LogFormat, LogLayout, LogPart, LogTemplate, LogVariable, Problem},
    suggest::{nearest, quote},
};
use http::HeaderName;

/// Names of variables, which are nginx's where it has them. `$http_NAME`, a request header, is not among them.
const VARIABLES: &[(&str, LogVariable)] = &[
    ("remote_addr", LogVariable::RemoteAddr),
    ("remote_port", LogVariable::RemotePort),
    ("remote_user", LogVariable::RemoteUser),
    ("time_local", LogVariable::TimeLocal),
    ("time_iso8601", LogVariable::TimeIso8601),
    ("msec", LogVariable::Msec),
    ("request", LogVariable::Request),
    ("request_method", LogVariable::RequestMethod),
    ("request_uri", LogVariable::RequestUri),
    ("uri", LogVariable::Uri),
    ("args", LogVariable::Args),
    ("query_string", LogVariable::Args),
    ("scheme", LogVariable::Scheme),
    ("host", LogVariable::Host),
    ("server_protocol", LogVariable::ServerProtocol),
    ("server_addr", LogVariable::ServerAddr),
    ("server_port", LogVariable::ServerPort),
    ("status", LogVariable::Status),
    ("body_bytes_sent", LogVariable::BodyBytesSent),
    ("bytes_sent", LogVariable::BodyBytesSent),
    ("bytes_received", LogVariable::BytesReceived),
    ("request_time", LogVariable::RequestTime),
    ("session_time", LogVariable::RequestTime),
    ("upstream_name", LogVariable::UpstreamName),
    ("upstream_addr", LogVariable::UpstreamAddr),
    ("upstream_header_time", LogVariable::UpstreamHeaderTime),
    ("upstream_response_time", LogVariable::UpstreamResponseTime),
    ("request_id", LogVariable::RequestId),
    ("error", LogVariable::Error),
    ("ssl_protocol", LogVariable::SslProtocol),
    ("ssl_cipher", LogVariable::SslCipher),
    ("ssl_server_name", LogVariable::SslServerName),
    ("ssl_session_reused", LogVariable::SslSessionReused),
    ("handshake_time", LogVariable::HandshakeTime),
    ("key_wait_time", LogVariable::KeyWaitTime),
    ("key_time", LogVariable::KeyTime),
    ("key_batch", LogVariable::KeyBatch),
    ("pid", LogVariable::Pid),
];

/// Formats with names, in nginx's and Apache's terms.
const NAMED: [(&str, &str); 2] = [
    (
        "combined",
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \
         \"$http_user_agent\"",
    ),
    ("common", "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent"),
];

/// Prefix of variables for request headers.
const HEADER: &str = "http_";

/// Parses the format of a line of text: `combined`, `common`, or a text with variables.
pub fn text(text: &str) -> Result<LogFormat, Problem> {
    let named = NAMED.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
    let mut headers = Vec::new();
    let mut template = template(named.unwrap_or(text), &mut headers)?;
    if !template.parts.iter().any(|part| matches!(part, LogPart::Variable(_))) {
        let remedy = match nearest(text, NAMED.iter().map(|(name, _)| *name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "write `combined`, `common`, or a text such as `$remote_addr \"$request\" $status`".to_owned()
            }
        };
        return Err(Problem::new(
            format!("{} has no variables: every line would be equal", quote(text)),
            remedy,
        ));
    }
    text.clone_into(&mut template.text);
    Ok(LogFormat { layout: LogLayout::Text(template), headers })
}

/// Parses a text with variables, and adds the request headers that it has to `headers`.
pub fn template(text: &str, headers: &mut Vec<HeaderName>) -> Result<LogTemplate, Problem> {
    if text.contains(['\n', '\r']) {
        return Err(Problem::new("the format has several lines", "write it on one line"));
    }
    let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        literal.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            literal.push('$');
            rest = after;
            continue;
        }
        let (name, after) = name(after, text)?;
        if !literal.is_empty() {
            parts.push(LogPart::Literal(std::mem::take(&mut literal)));
        }
        parts.push(LogPart::Variable(variable(name, headers)?));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(LogPart::Literal(literal));
    }
    Ok(LogTemplate { text: text.to_owned(), parts })
}

/// Splits the name of a variable, which may be in braces, from the text after it.
fn name<'a>(text: &'a str, whole: &str) -> Result<(&'a str, &'a str), Problem> {
    if let Some(inside) = text.strip_prefix('{') {
        let unclosed = || Problem::new(format!("unclosed brace in {}", quote(whole)), "write `$${name}`");
        return inside.split_once('}').ok_or_else(unclosed);
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if end == 0 {
        let message = format!("`$` without the name of a variable in {}", quote(whole));
        return Err(Problem::new(message, "write `$$` for a dollar sign"));
    }
    Ok(text.split_at(end))
}

fn variable(name: &str, headers: &mut Vec<HeaderName>) -> Result<LogVariable, Problem> {
    if let Some((_, variable)) = VARIABLES.iter().find(|(known, _)| *known == name) {
        return Ok(*variable);
    }
    let header = name.strip_prefix(HEADER).filter(|header| !header.is_empty());
    if let Some(header) = header.and_then(|header| header.replace('_', "-").parse().ok()) {
        let index = headers.iter().position(|known| *known == header).unwrap_or_else(|| {
            headers.push(header);
            headers.len() - 1
        });
        return Ok(LogVariable::RequestHeader(index));
    }
    let message = format!("unknown variable `${}`", name.escape_debug());
    let remedy = match nearest(name, VARIABLES.iter().map(|(known, _)| *known)) {
        Some(near) => format!("did you mean `${near}`?"),
        None if name.starts_with("sent_http_") || name.starts_with("upstream_http_") => {
            "headers of responses are not logged; headers of requests are `$http_NAME`".to_owned()
        }
        None => "the reference of `access_log.format` lists all".to_owned(),
    };
    Err(Problem::new(message, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<LogPart> {
        template(text, &mut Vec::new()).expect("a template").parts
    }

    #[test]
    fn variables_have_names_with_and_without_braces() {
        let literal = |text: &str| LogPart::Literal(text.to_owned());
        let variable = LogPart::Variable;
        let expected = vec![
            literal("a "),
            variable(LogVariable::Host),
            literal("$"),
            variable(LogVariable::Status),
            literal("b;"),
            variable(LogVariable::RequestHeader(0)),
            variable(LogVariable::RequestHeader(0)),
        ];
        assert_eq!(parts("a $host$$${status}b;$http_x_a$http_x_a"), expected);
    }

    #[test]
    fn headers_are_read_once() {
        let format = text("combined").expect("a format");
        assert_eq!(format.headers, ["referer", "user-agent"]);
        let LogLayout::Text(template) = format.layout else { panic!("not text") };
        assert_eq!((template.text.as_str(), template.parts.len()), ("combined", 16));
    }

    #[test]
    fn mistakes_have_a_remedy() {
        for (wrong, message) in [
            ("$remote_adr", "unknown variable `$remote_adr`; did you mean `$remote_addr`?"),
            ("$sent_http_x", "headers of responses are not logged"),
            ("$", "without the name of a variable"),
            ("${host", "unclosed brace"),
            ("combned", "did you mean `combined`?"),
            ("a\n$host", "several lines"),
            ("$http_", "unknown variable `$http_`"),
        ] {
            let problem = text(wrong).expect_err(wrong).to_string();
            assert!(problem.contains(message), "{wrong}: {problem}");
        }
    }
}
