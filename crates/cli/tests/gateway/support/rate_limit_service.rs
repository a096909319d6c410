//! A rate limit service that decides by its descriptors.

use super::grpc_service::{Fields, field, grpc_service};
use std::net::SocketAddr;

/// A rate limit service over gRPC: a descriptor with the value `over` is over the limit, `fail` is an error,
/// `unknown` has no decision, and others are allowed. It adds headers with the descriptors for clients and servers.
/// Serves until the process ends.
pub fn rate_limit_service() -> SocketAddr {
    grpc_service("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", should_rate_limit)
}

fn should_rate_limit(message: &[u8]) -> Option<Vec<u8>> {
    const OK: u8 = 1;
    const OVER_LIMIT: u8 = 2;
    let request = Fields::of(message);
    let told = told(&request);
    let header = |name: &str| [field(1, name.as_bytes()), field(2, told.as_bytes())].concat();
    let reported = |value: &str| told.contains(&format!("={value}"));
    if reported("fail") {
        return None;
    }
    let code = match () {
        () if reported("unknown") => 0,
        () if reported("over") => OVER_LIMIT,
        () => OK,
    };
    let statuses = [status(10, 2, "", 7, 30), status(1000, 3, "hourly", 3, 1200)].concat();
    let more = match code {
        OVER_LIMIT if reported("over-in-json") => {
            let json = [field(1, b"content-type"), field(2, b"application/json")].concat();
            [field(3, &json), field(5, b"{}")].concat()
        }
        OVER_LIMIT if reported("over-silent") => Vec::new(),
        OVER_LIMIT => field(5, told.as_bytes()),
        _ => field(4, &header("x-told-server")),
    };
    Some([&[8, code][..], &statuses, &field(3, &header("x-told-client")), &more].concat())
}

/// Encodes a `RateLimitResponse.DescriptorStatus` of a limit in a unit.
fn status(requests: u64, unit: u8, name: &str, left: u8, seconds: u64) -> Vec<u8> {
    let number = |number: u8, value: u64| [vec![number << 3], varint(value)].concat();
    let limit = [number(1, requests), vec![2 << 3, unit], field(3, name.as_bytes())].concat();
    field(2, &[vec![8, 1], field(2, &limit), vec![3 << 3, left], field(4, &number(1, seconds))].concat())
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Returns the domain and the descriptors, each with its keys and values.
fn told(request: &Fields<'_>) -> String {
    let descriptor = |bytes: &[u8]| {
        let descriptor = Fields::of(bytes);
        let entries = descriptor.all(1).map(Fields::of);
        let entries: Vec<_> = entries.map(|entry| format!("{}={}", entry.text(1), entry.text(2))).collect();
        let rest = |number, name| match descriptor.all(number).next() {
            Some(bytes) => format!(" {name}{bytes:?}"),
            None => String::new(),
        };
        entries.join(",") + &rest(2, "limit") + &rest(3, "hits")
    };
    let descriptors: Vec<_> = request.all(2).map(descriptor).collect();
    format!("{} {}", request.text(1), descriptors.join(" | "))
}
