//! Times, sizes and addresses, in Quadrille's format.

/// Returns a time such as `30s`, `1m 30s`, `500ms` or `60` (seconds) in milliseconds.
pub fn milliseconds(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 9] = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("M", 2_592_000_000),
        ("y", 31_536_000_000),
        ("", 1_000),
    ];
    let (mut total, mut rest) = (0_u64, text.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == &rest[..letters])?;
        total = total.checked_add(number.checked_mul(*unit)?)?;
        rest = rest[letters..].trim_start();
    }
    Some(total)
}

/// Returns a time that Quadrille accepts: not zero, and at most a year.
pub fn duration(text: &str) -> Option<String> {
    shown(milliseconds(text)?)
}

/// Writes milliseconds as a duration; `None` for zero.
pub fn shown(milliseconds: u64) -> Option<String> {
    const YEAR: u64 = 365 * 86_400_000;
    match milliseconds.min(YEAR) {
        0 => None,
        time if time.is_multiple_of(86_400_000) => Some(format!("{}d", time / 86_400_000)),
        time if time.is_multiple_of(3_600_000) => Some(format!("{}h", time / 3_600_000)),
        time if time.is_multiple_of(60_000) => Some(format!("{}m", time / 60_000)),
        time if time.is_multiple_of(1_000) => Some(format!("{}s", time / 1_000)),
        time => Some(format!("{time}ms")),
    }
}

/// Returns a size such as `10m`, `8k` or `512` in bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Writes a size.
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 30) => format!("{}GiB", bytes >> 30),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// Returns the address of a server with its port: `10.0.0.1` is `10.0.0.1:80`. `None` if Quadrille cannot use it.
pub fn server_address(text: &str, port: u16) -> Option<String> {
    let bare_ipv6 = text.starts_with('[') && text.ends_with(']');
    let address = match text.starts_with("unix:") {
        true => text.trim_end_matches(':').to_owned(),
        false if bare_ipv6 || !text.contains(':') => format!("{text}:{port}"),
        false => text.to_owned(),
    };
    quadrille_config::values::server_address(&address).ok()
}

/// Returns whether the configuration may change a header of this name: not those of the connection and of framing.
pub fn is_changeable(name: &str) -> bool {
    quadrille_config::values::changeable_header(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        for (text, expected) in [
            ("30s", "30s"),
            ("60", "1m"),
            ("1m30s", "90s"),
            ("1h 30m", "90m"),
            ("500ms", "500ms"),
            ("1y", "365d"),
        ] {
            assert_eq!(duration(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!((duration("0"), duration("x"), duration("")), (None, None, None));
        assert_eq!((bytes("10m"), bytes("8K"), bytes("1x")), (Some(10 << 20), Some(8 << 10), None));
        assert_eq!(size(10 << 20), "10MiB");
        assert_eq!(server_address("10.0.0.1", 80).as_deref(), Some("10.0.0.1:80"));
        assert_eq!(server_address("[::1]", 80).as_deref(), Some("[::1]:80"));
        assert_eq!(server_address("unix:/run/a.sock:", 80).as_deref(), Some("unix:/run/a.sock"));
    }
}
