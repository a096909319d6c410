//! Descriptors of a request: what its rate is counted by.

use super::grpc::{Entry, LimitOverride, RateLimitDescriptor, UInt64Value};
use crate::http::{
    rate_limit::network,
    request::Request,
    request_view::{RequestView, decoded_parameter},
};
use quadrille_config::model::{Descriptor, DescriptorCondition, DescriptorPart, DescriptorValue};
use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// What descriptors are made of.
pub(super) struct Counted<'a> {
    pub(super) request: &'a Request,
    pub(super) view: RequestView<'a>,
    /// To which it goes.
    pub(super) upstream: &'a str,
}

impl Counted<'_> {
    /// What of these a request has: nothing if a part of it cannot be made.
    pub(super) fn descriptor(&self, model: &Descriptor) -> Option<RateLimitDescriptor> {
        let mut entries = Vec::with_capacity(model.parts.len());
        for part in &model.parts {
            match self.value(part) {
                Some(value) => entries.push(Entry { key: part.key.clone(), value }),
                None if part.optional => {}
                None => return None,
            }
        }
        if entries.is_empty() {
            return None;
        }
        Some(RateLimitDescriptor {
            entries,
            limit: model
                .limit
                .map(|limit| LimitOverride { requests_per_unit: limit.requests, unit: limit.unit.into() }),
            hits_addend: model.hits.map(|value| UInt64Value { value }),
        })
    }

    fn value(&self, part: &DescriptorPart) -> Option<String> {
        let client = self.request.sender.client.ip().to_canonical();
        match &part.value {
            DescriptorValue::Text(text) => Some(text.clone()),
            DescriptorValue::If(condition, text) => self.holds(condition).then(|| text.clone()),
            DescriptorValue::Upstream => Some(self.upstream.to_owned()),
            DescriptorValue::Header(name) => self.view.first_value(name),
            DescriptorValue::Query(name) => decoded_parameter(self.view.query, name).map(Cow::into_owned),
            DescriptorValue::Client => Some(client.to_string()),
            DescriptorValue::ClientNetwork(ipv4, ipv6) => Some(shown_network(client, *ipv4, *ipv6)),
            DescriptorValue::Metadata(filter, path, preset) => {
                let found = self.request.metadata.text(filter, path).filter(|text| !text.is_empty());
                found.or((!preset.is_empty()).then_some(preset)).map(str::to_owned)
            }
        }
    }

    fn holds(&self, condition: &DescriptorCondition) -> bool {
        match condition {
            DescriptorCondition::Headers(headers, expected) => {
                headers.iter().all(|header| self.view.matches_header(header)) == *expected
            }
            DescriptorCondition::Query(parameters, expected) => {
                parameters.iter().all(|parameter| self.view.matches_query(parameter)) == *expected
            }
            DescriptorCondition::Client(networks, expected) => {
                let client = self.request.sender.client.ip();
                networks.iter().any(|network| network.contains(client)) == *expected
            }
        }
    }
}

/// As CIDR writes it (RFC 4632).
fn shown_network(client: IpAddr, ipv4: u8, ipv6: u8) -> String {
    match network(client, ipv4, ipv6) {
        (true, _) if ipv4 == 0 => "0.0.0.0/0".to_owned(),
        (false, _) if ipv6 == 0 => "::/0".to_owned(),
        (true, bits) => {
            let address = Ipv4Addr::from_bits((bits << 32u32.saturating_sub(ipv4.into())) as u32);
            format!("{address}/{ipv4}")
        }
        (false, bits) => {
            let address = Ipv6Addr::from_bits(bits << 128u32.saturating_sub(ipv6.into()));
            format!("{address}/{ipv6}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown_network;

    #[test]
    fn networks_are_written_with_their_length() {
        let shown = |address: &str, ipv4, ipv6| shown_network(address.parse().unwrap(), ipv4, ipv6);
        assert_eq!(shown("192.0.2.77", 24, 64), "192.0.2.0/24");
        assert_eq!(shown("192.0.2.77", 32, 64), "192.0.2.77/32");
        assert_eq!(shown("::ffff:192.0.2.77", 31, 64), "192.0.2.76/31");
        assert_eq!(shown("2001:db8::1:2", 32, 64), "2001:db8::/64");
        assert_eq!(shown("2001:db8::1:2", 32, 128), "2001:db8::1:2/128");
        assert_eq!(
            (shown("192.0.2.77", 0, 0), shown("2001:db8::1", 0, 0)),
            ("0.0.0.0/0".into(), "::/0".into())
        );
    }
}
