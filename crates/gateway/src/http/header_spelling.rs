//! Names of headers as servers may read them.

/// Whether a name begins like this to a server that makes `_` of `-`, as CGI does (RFC 3875 section 4.1.18).
pub(super) fn reads_as(name: &str, beginning: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| byte == wanted || byte == b'_' && wanted == b'-';
    name.len() >= beginning.len() && name.bytes().zip(beginning.bytes()).all(same)
}
