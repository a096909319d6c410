//! Addresses in Envoy's form.

use serde_json::{Value, json};

/// `envoy.config.core.v3.Address`.
pub(super) fn socket_address(address: &str) -> Value {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    json!({ "socket_address": { "address": host, "port_value": port.parse::<u16>().unwrap_or_default() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let address = socket_address("[::1]:443");
        assert_eq!(address["socket_address"], json!({ "address": "::1", "port_value": 443 }));
    }
}
