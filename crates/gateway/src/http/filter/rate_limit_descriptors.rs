//! Rate limit descriptors of a request.

use crate::http::{
    rate_limit::network,
    request::{
        Request,
        request_view::{RequestView, decoded_parameter},
    },
    route::router::MatchedRoute,
};
use quadrille_config::model::{
    Action, Descriptor, DescriptorCondition, DescriptorPart, DescriptorValue, HostDescriptors,
    MadeDescriptors, Route, RouteDescriptors,
};
use std::{
    borrow::Cow,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A descriptor: a list of keys with their values.
pub(crate) type Entries = Vec<(String, String)>;

/// Sources of descriptor values.
pub(crate) struct Counted<'a> {
    request: &'a Request,
    view: RequestView<'a>,
    /// Upstream of the route; empty if the route does not forward.
    upstream: &'a str,
}

impl<'a> Counted<'a> {
    /// Collects the sources for a request on this route.
    pub(crate) fn new(request: &'a Request, route: Option<&'a Route>, tls: bool) -> Self {
        let upstream = match route.map(|route| &route.action) {
            Some(Action::Forward(to)) => to.to.first().map_or("", |to| to.upstream.as_str()),
            _ => "",
        };
        Self { request, view: request.view(tls), upstream }
    }

    /// Builds the entries of a descriptor. Returns `None` if a required part has no value.
    pub(crate) fn entries(&self, model: &Descriptor) -> Option<Entries> {
        let mut entries = Vec::with_capacity(model.parts.len());
        for part in &model.parts {
            match self.value(part) {
                Some(value) => entries.push((part.key.clone(), value)),
                None if part.optional => {}
                None => return None,
            }
        }
        (!entries.is_empty()).then_some(entries)
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

/// Builds all descriptors of a filter for a request on this route.
pub(crate) fn made(
    model: &MadeDescriptors,
    route: Option<&MatchedRoute>,
    request: &Request,
    tls: bool,
) -> Vec<Entries> {
    let route = route.map(MatchedRoute::route);
    let counted = Counted::new(request, route, tls);
    if !model.own.is_empty() {
        return model.own.iter().filter_map(|model| counted.entries(model)).collect();
    }
    let told = route.and_then(|route| route.descriptors.as_deref());
    let of_route = told.map(|told| of_route(told, model.host, model.stage));
    of_route.into_iter().flatten().filter_map(|model| counted.entries(model)).collect()
}

/// Returns the descriptors of a route and of its virtual host for this stage.
pub(crate) fn of_route(
    told: &RouteDescriptors,
    host: HostDescriptors,
    stage: u8,
) -> impl Iterator<Item = &Descriptor> {
    let includes_host = match host {
        _ if told.includes_host => true,
        HostDescriptors::Always => true,
        HostDescriptors::UnlessOwn => told.own.is_empty(),
        HostDescriptors::Never => false,
    };
    let host = told.host.iter().filter(move |_| includes_host);
    told.own.iter().chain(host).filter(move |descriptor| descriptor.stage == stage)
}

/// Formats a network in CIDR notation (RFC 4632).
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
