//! Names and values of headers.

use crate::{model::Problem, suggest::quote};

/// Parses the name of a header.
pub fn header_name(text: &str) -> Result<http::HeaderName, Problem> {
    text.parse().map_err(|_| format!("{} is not the name of a header", quote(text)).into())
}

/// Parses the name of a header that may be changed: all but those that control routing, the connection and message
/// framing.
pub fn changeable_header(text: &str) -> Result<http::HeaderName, Problem> {
    const FIXED: [&str; 9] = [
        "host",
        "connection",
        "content-length",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-connection",
    ];
    let name = header_name(text)?;
    if FIXED.contains(&name.as_str()) {
        return Err(Problem::new(
            format!("`{name}` controls the connection or the framing"),
            "the gateway sets it",
        ));
    }
    Ok(name)
}

/// Parses the value of a header field.
pub fn header_value(text: &str) -> Result<String, Problem> {
    let good = !text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if good { Ok(text.to_owned()) } else { Err(format!("{} cannot be sent in a header", quote(text)).into()) }
}
