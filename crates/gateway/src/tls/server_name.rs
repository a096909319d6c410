//! Server names of clients (SNI, RFC 6066 section 3).

/// Returns a server name as certificates and filter chains have it: in lower case, and without the trailing dot of a
/// fully qualified name, which clients must not send (RFC 6066 section 3).
pub(crate) fn normalized(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
