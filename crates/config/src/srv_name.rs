//! Text format of servers that SRV records name (RFC 2782).

use crate::{model::Problem, suggest::quote};

/// Prefix of the name of SRV records, in place of an address.
const SRV: &str = "srv:";

/// Returns the name of the SRV records that an address refers to: `_http._tcp.example.com` of
/// `srv:_http._tcp.example.com`. `srv:80` is port 80 of a host.
pub fn of_address(address: &str) -> Option<&str> {
    address.strip_prefix(SRV).filter(|name| name.starts_with('_'))
}

/// Checks the name of SRV records: service, protocol and domain.
pub(crate) fn check(name: &str) -> Result<(), Problem> {
    let labels: Vec<_> = name.trim_end_matches('.').split('.').collect();
    let is_label = |label: &&str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let good = matches!(labels[..], [_, protocol, _, ..] if protocol.starts_with('_'));
    match good && labels.iter().all(is_label) {
        true => Ok(()),
        false => Err(Problem::new(
            format!("{} is not the name of SRV records", quote(name)),
            "write `srv:_http._tcp.example.com`, or the like",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_service_a_protocol_and_a_domain() {
        for (address, name) in [
            ("srv:_http._tcp.example.com", Some("_http._tcp.example.com")),
            ("srv:80", None),
            ("example.com:80", None),
        ] {
            assert_eq!(of_address(address), name);
        }
        for good in ["_http._tcp.example.com", "_x._udp.local", "_x._tcp.a_b.example."] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["_http._tcp", "_http.tcp.example", "_http._tcp..example", "_http._tcp.exa mple", "_"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
