//! nginx's variables, as placeholders of header values.

/// Properties of the place at which variables are evaluated.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Whether the listener has TLS.
    pub tls: bool,
    /// The listener's port.
    pub port: u16,
    /// The first name of the server, if it is a plain one.
    pub server_name: Option<String>,
    /// Whether the listener requests client certificates.
    pub requests_certificates: bool,
    /// The number of groups of the route's `path_regex`.
    pub groups: usize,
    /// Names of groups of the route's `path_regex`.
    pub group_names: Vec<String>,
    /// The `Host` that the servers of the route receive by default.
    pub proxy_host: Option<String>,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// The name of a variable.
    Variable(&'a str),
}

/// Splits a text at its variables: `$name` and `${name}`.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(found) = text[at..].find('$') {
        let dollar = at + found;
        let after = &text[dollar + 1..];
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}')).map(|(name, _)| name);
        let (name, length) = match braced {
            Some(name) => (name, name.len() + 3),
            None => {
                let is_group = after.starts_with(|c: char| c.is_ascii_digit());
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                let end = if is_group { 1 } else { end };
                (&after[..end], end + 1)
            }
        };
        at = dollar + length;
        if name.is_empty() {
            continue;
        }
        if begin < dollar {
            pieces.push(Piece::Text(&text[begin..dollar]));
        }
        pieces.push(Piece::Variable(name));
        begin = at;
    }
    if begin < text.len() {
        pieces.push(Piece::Text(&text[begin..]));
    }
    pieces
}

/// Converts the value of a header.
///
/// # Errors
/// With the name of a variable that has no placeholder.
pub fn header_value(text: &str, context: &Context) -> Result<String, String> {
    let mut value = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => value.push_str(&text.replace('{', "{{")),
            Piece::Variable(name) => value.push_str(&placeholder(name, context)?),
        }
    }
    let is_sendable = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
    if is_sendable { Ok(value) } else { Err("a character that a header cannot have".to_owned()) }
}

fn placeholder(name: &str, context: &Context) -> Result<String, String> {
    let known = match name {
        "remote_addr" | "realip_remote_addr" => "{client_ip}",
        "host" | "http_host" => "{host}",
        "scheme" => "{scheme}",
        "uri" | "document_uri" => "{path}",
        "args" | "query_string" => "{query}",
        "server_addr" => "{local_ip}",
        "server_protocol" => "{protocol}",
        "ssl_protocol" => "{tls_version}",
        "ssl_server_name" => "{server_name}",
        "ssl_client_s_dn" => "{client_certificate_subject}",
        _ => "",
    };
    if !known.is_empty() {
        return Ok(known.to_owned());
    }
    match name {
        "server_port" => return Ok(context.port.to_string()),
        "server_name" => {
            return context.server_name.clone().ok_or_else(|| unknown(name));
        }
        "proxy_host" => return context.proxy_host.clone().ok_or_else(|| unknown(name)),
        "https" => return Ok(if context.tls { "on" } else { "" }.to_owned()),
        _ => {}
    }
    if let Some(header) = name.strip_prefix("http_") {
        return Ok(format!("{{request:{}}}", header.replace('_', "-")));
    }
    if let Some(header) = name.strip_prefix("upstream_http_").or_else(|| name.strip_prefix("sent_http_")) {
        return Ok(format!("{{response:{}}}", header.replace('_', "-")));
    }
    group(name, context).ok_or_else(|| unknown(name))
}

/// Returns the placeholder of a group of the route's expression.
pub fn group(name: &str, context: &Context) -> Option<String> {
    let is_group = match name.parse::<usize>() {
        Ok(number) => (1..=context.groups).contains(&number),
        Err(_) => context.group_names.iter().any(|known| known == name),
    };
    is_group.then(|| format!("{{{name}}}"))
}

fn unknown(name: &str) -> String {
    format!("`${name}` has no placeholder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_at_variables() {
        use Piece::{Text, Variable};
        for (text, expected) in [
            ("a$host/b", vec![Text("a"), Variable("host"), Text("/b")]),
            ("${a}b$1c", vec![Variable("a"), Text("b"), Variable("1"), Text("c")]),
            ("5$", vec![Text("5$")]),
            ("", vec![]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }

    #[test]
    fn values_have_placeholders() {
        let context = Context { tls: true, port: 443, groups: 1, ..Context::default() };
        for (text, expected) in [
            ("$remote_addr", "{client_ip}"),
            ("$host:$server_port", "{host}:443"),
            ("$http_x_a", "{request:x-a}"),
            ("a{b}$1", "a{{b}{1}"),
        ] {
            assert_eq!(header_value(text, &context).as_deref(), Ok(expected), "{text}");
        }
        assert!(header_value("$2", &context).is_err());
        assert!(header_value("$unknown", &context).is_err());
    }
}
