//! `Content-Length` of responses, whether or not a body follows (RFC 9110 section 8.6).

use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Reason why recipients could read different lengths.
pub(super) type Ambiguous = &'static str;

/// Returns the length, and replaces a list or several lines of one repeated value by that value.
///
/// # Errors
/// Fails if there are different values, or one that is not a number of digits.
pub(super) fn unify(headers: &mut HeaderMap) -> Result<Option<u64>, Ambiguous> {
    let lines = headers.get_all(header::CONTENT_LENGTH).into_iter();
    // Empty members are invalid here, and a line that is not text has an invalid one.
    let mut members =
        lines.map(|line| line.to_str().unwrap_or("?")).flat_map(|line| line.split(',')).map(str::trim);
    let Some(first) = members.next() else { return Ok(None) };
    let mut repeated = false;
    for other in members {
        if other != first {
            return Err("several values of Content-Length");
        }
        repeated = true;
    }
    // The integer parser accepts a sign.
    let length = first.parse().ok().filter(|_| first.bytes().all(|byte| byte.is_ascii_digit()));
    let length: u64 = length.ok_or("invalid Content-Length")?;
    if repeated {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(Some(length))
}

/// Returns whether no body follows a response with this status, with any fields (RFC 9112 section 6.3).
pub(super) fn is_bodiless(status: StatusCode) -> bool {
    forbids_length(status) || status == StatusCode::NOT_MODIFIED
}

/// Returns whether a response with this status must not have a `Content-Length`.
pub(super) fn forbids_length(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified(lines: &[&str]) -> Result<(Option<u64>, usize), Ambiguous> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::CONTENT_LENGTH, HeaderValue::from_str(line).expect("a value"));
        }
        let length = unify(&mut headers)?;
        Ok((length, headers.len()))
    }

    #[test]
    fn one_value_remains() {
        assert_eq!(unified(&[]), Ok((None, 0)));
        for lines in [&["12"][..], &["12", "12"], &["12,12"], &["12 , 12", "12"]] {
            assert_eq!(unified(lines), Ok((Some(12), 1)), "{lines:?}");
        }
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        for lines in [
            &["12", "13"][..],
            &["12, 13"],
            &["+12"],
            &["-12"],
            &[""],
            &["12,"],
            &["0xc"],
            &["1 2"],
            &["012", "12"],
        ] {
            assert!(unified(lines).is_err(), "{lines:?}");
        }
    }
}
