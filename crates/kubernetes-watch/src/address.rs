//! Addresses in `status.loadBalancer.ingress`.

use serde_json::{Value, json};
use std::net::IpAddr;

/// Returns the entry of an IP address or a host name.
pub(crate) fn entry(address: &str) -> Value {
    match address.parse::<IpAddr>() {
        Ok(ip) => json!({ "ip": ip.to_string() }),
        Err(_) => json!({ "hostname": address }),
    }
}

/// Returns the addresses in the status of an Ingress or a Service.
pub(crate) fn of_status(object: &Value) -> Vec<Value> {
    let entries = object["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
    entries.iter().map(without_ports).collect()
}

/// Returns the addresses of a Service: those of its load balancer, or its external ones.
pub(crate) fn of_service(service: &Value) -> Vec<Value> {
    let balanced = of_status(service);
    if !balanced.is_empty() {
        return balanced;
    }
    let external = service["spec"]["externalIPs"].as_array().cloned().unwrap_or_default();
    external.iter().filter_map(Value::as_str).map(entry).collect()
}

/// Ports and modes of a Service's entry are not those of an Ingress.
fn without_ports(entry: &Value) -> Value {
    match (&entry["ip"], &entry["hostname"]) {
        (Value::String(ip), _) => json!({ "ip": ip }),
        (_, hostname) => json!({ "hostname": hostname }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(entry("2001:db8::1"), json!({ "ip": "2001:db8::1" }));
        assert_eq!(entry("lb.example"), json!({ "hostname": "lb.example" }));
        let balanced =
            json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1", "ipMode": "VIP" }] } } });
        assert_eq!(of_service(&balanced), [json!({ "ip": "192.0.2.1" })]);
        let external = json!({ "spec": { "externalIPs": ["192.0.2.2"] }, "status": { "loadBalancer": {} } });
        assert_eq!(of_service(&external), [json!({ "ip": "192.0.2.2" })]);
    }
}
